//! JSON patch: a list of operations on a document.

use http::StatusCode;
use serde_json::{Map, Value};

use super::MAX_DEPTH;
use crate::api::{StatusError, go_format};

const MAX_OPERATIONS: usize = 10_000;
/// The limit of what all `copy` operations of a patch add, in bytes of JSON: the size of a request, as in
/// kube-apiserver.
const MAX_COPIED_BYTES: usize = 3 << 20;
/// The limit of values that are visited to measure the depth of moved values. A moved value is at most an
/// object of some MiB, so this is only reached by thousands of moves of large values.
const MAX_MEASURED_VALUES: usize = 10_000_000;
/// The limit of list items that are shifted by insertions and removals. Shifting that many takes about a tenth
/// of a second.
const MAX_MOVED_ITEMS: usize = 10_000_000;

#[derive(Clone, Debug, PartialEq)]
pub struct JsonPatch(Vec<Map<String, Value>>);

/// Why a patch cannot be applied, with the messages of evanphx/json-patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonPatchError {
    #[error("{0}: missing value")]
    Missing(String),
    #[error("{0}")]
    Value(String),
    #[error("testing value {0} failed: test failed")]
    Test(String),
    #[error("Unexpected kind: {0}")]
    Kind(String),
    #[error("replace operation value must be object or array")]
    Root,
    #[error("the patch makes the document too large or too deep")]
    TooMuch,
}

enum PointerError {
    /// The path to the value does not exist.
    NotFound,
    /// The value itself is missing or invalid, with the reason.
    AtValue(String),
    TooMuch,
}

/// The resources that a patch has used so far.
#[derive(Default)]
struct PatchUsage {
    copied: usize,
    measured: usize,
    moved: usize,
}

impl JsonPatch {
    /// Decodes a patch. Errors have kube-apiserver's messages.
    pub fn parse(patch: Value) -> Result<Self, String> {
        let wrong = |value: &Value, wanted: &str| {
            let kind = go_format::json_kind(value);
            Err(format!("error decoding patch: json: cannot unmarshal {kind} into Go value of type {wanted}"))
        };
        let operations = match patch {
            Value::Array(operations) => operations,
            Value::Null => Vec::new(),
            other => return wrong(&other, "[]handlers.jsonPatchOp"),
        };
        let mut read = Vec::with_capacity(operations.len());
        for operation in operations {
            match operation {
                Value::Object(operation) => read.push(operation),
                Value::Null => read.push(Map::new()),
                other => return wrong(&other, "handlers.jsonPatchOp"),
            }
        }
        Ok(Self(read))
    }

    /// Refuses a patch with too many operations.
    pub fn check_count(&self) -> Result<(), StatusError> {
        if self.0.len() <= MAX_OPERATIONS {
            return Ok(());
        }
        let message = format!(
            "Request entity is too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            self.0.len()
        );
        Err(StatusError::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message))
    }

    /// Applies all operations, or stops at the first that fails.
    pub fn apply(self, document: &mut Value) -> Result<(), JsonPatchError> {
        let mut spent = PatchUsage::default();
        self.0.into_iter().try_for_each(|operation| apply(document, operation, &mut spent))
    }
}

fn apply(
    document: &mut Value,
    mut operation: Map<String, Value>,
    spent: &mut PatchUsage,
) -> Result<(), JsonPatchError> {
    let value = operation.remove("value");
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    let path =
        || text("path").ok_or_else(|| JsonPatchError::Missing(format!("{kind} operation failed to decode path")));
    let from =
        || text("from").ok_or_else(|| JsonPatchError::Missing(format!("{kind} operation failed to decode from")));
    let lost = |what: &str, path: &str| format!("{kind} operation does not apply: doc is missing {what}: {path}");
    let quoted = |path: &str| lost("path", &format!("\"{path}\""));
    let inside = |path: &str| format!("error in {kind} for path: '{path}'");
    match kind {
        "add" => {
            let path = path()?;
            add(document, path, value.unwrap_or_default(), spent)
                .map_err(|stuck| stuck.into_patch_error(quoted(path), inside(path)))
        }
        "remove" => {
            let path = path()?;
            remove(document, path, spent).map(drop).map_err(|stuck| stuck.into_patch_error(quoted(path), inside(path)))
        }
        "replace" => replace(document, path()?, value.unwrap_or_default(), spent),
        "test" => test(document, path()?, &value.unwrap_or_default()),
        "move" => {
            let from = from()?;
            let path = path()?;
            let key = from.rsplit('/').next().unwrap_or_default();
            let value = remove(document, from, spent)
                .map_err(|stuck| stuck.into_patch_error(lost("from path", from), inside(key)))?;
            let stuck = |stuck: PointerError| stuck.into_patch_error(lost("destination path", path), inside(path));
            add(document, path, value, spent).map_err(stuck)
        }
        "copy" => {
            let from = from()?;
            let path = path()?;
            let stuck = |stuck: PointerError| {
                stuck.into_patch_error(lost("from path", from), format!("error in copy for from: '{from}'"))
            };
            let value = get(document, from).map_err(stuck)?.cloned().unwrap_or_default();
            spent.copied += value.to_string().len();
            if spent.copied > MAX_COPIED_BYTES {
                return Err(JsonPatchError::TooMuch);
            }
            let during = || "error while adding value during copy".to_owned();
            add(document, path, value, spent)
                .map_err(|stuck| stuck.into_patch_error(lost("destination path", path), during()))
        }
        other => Err(JsonPatchError::Kind(other.to_owned())),
    }
}

fn add(document: &mut Value, path: &str, value: Value, spent: &mut PatchUsage) -> Result<(), PointerError> {
    spent.check_depth(path, &value)?;
    match parent(document, path)? {
        (Value::Object(members), key) => _ = members.insert(key, value),
        (Value::Array(items), key) if key == "-" => items.push(value),
        (Value::Array(items), key) => {
            let improper = |why: String| format!("value was not a proper array index: '{key}': {why}");
            let at = index(&key, items.len() + 1).map_err(|why| {
                if why.starts_with("strconv") {
                    PointerError::AtValue(improper(why))
                } else {
                    PointerError::AtValue(why)
                }
            })?;
            spent.count_moved(items.len() - at)?;
            items.insert(at, value);
        }
        _ => return Err(PointerError::NotFound),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str, spent: &mut PatchUsage) -> Result<Value, PointerError> {
    match parent(document, path)? {
        (Value::Object(members), key) => {
            let absent = || PointerError::AtValue(format!("Unable to remove nonexistent key: {key}: missing value"));
            members.remove(&key).ok_or_else(absent)
        }
        (Value::Array(items), key) => {
            let at = index(&key, items.len()).map_err(PointerError::AtValue)?;
            spent.count_moved(items.len() - at)?;
            Ok(items.remove(at))
        }
        _ => Err(PointerError::NotFound),
    }
}

fn replace(document: &mut Value, path: &str, value: Value, spent: &mut PatchUsage) -> Result<(), JsonPatchError> {
    let missing = |what: &str| {
        JsonPatchError::Missing(format!("replace operation does not apply: doc is missing {what}: {path}"))
    };
    spent.check_depth(path, &value).map_err(|_| JsonPatchError::TooMuch)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(JsonPatchError::Root);
        }
        *document = value;
        return Ok(());
    }
    match parent(document, path).map_err(|_| missing("path"))? {
        (Value::Object(members), key) => _ = members.insert(key, value),
        (Value::Array(items), key) => {
            let at = index(&key, items.len()).ok();
            let item = at.and_then(|at| items.get_mut(at)).ok_or_else(|| missing("key"))?;
            *item = value;
        }
        _ => return Err(missing("path")),
    }
    Ok(())
}

fn test(document: &mut Value, path: &str, value: &Value) -> Result<(), JsonPatchError> {
    let stuck = |stuck: PointerError| {
        let lost = format!("test operation does not apply: is missing path: {path}");
        stuck.into_patch_error(lost, format!("error in test for path: '{path}'"))
    };
    let found = if path.is_empty() { Some(&*document) } else { get(document, path).map_err(stuck)? };
    // An absent value equals null.
    if found.unwrap_or(&Value::Null) == value { Ok(()) } else { Err(JsonPatchError::Test(path.to_owned())) }
}

/// The value at a path. A missing member is none; a missing item or parent is an error.
fn get<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, PointerError> {
    match parent(document, path)? {
        (Value::Object(members), key) => Ok(members.get(&key)),
        (Value::Array(items), key) => {
            let at = index(&key, items.len()).map_err(PointerError::AtValue)?;
            Ok(items.get(at))
        }
        _ => Err(PointerError::NotFound),
    }
}

impl PointerError {
    /// Converts to a patch error, with the messages for a missing path and a missing value.
    fn into_patch_error(self, lost: String, there: String) -> JsonPatchError {
        match self {
            PointerError::NotFound => JsonPatchError::Missing(lost),
            PointerError::AtValue(why) => JsonPatchError::Value(format!("{there}: {why}")),
            PointerError::TooMuch => JsonPatchError::TooMuch,
        }
    }
}

/// The parent of the value at a path, and the value's own key.
fn parent<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), PointerError> {
    // Text before the first slash is ignored, as in kube-apiserver.
    let (_, inner) = path.split_once('/').ok_or(PointerError::NotFound)?;
    let (way, key) = inner.rsplit_once('/').map_or((None, inner), |(way, key)| (Some(way), key));
    let mut at = document;
    for part in way.into_iter().flat_map(|way| way.split('/')) {
        let part = unescape(part);
        let next = match at {
            Value::Object(members) => members.get_mut(&part),
            Value::Array(items) => index(&part, items.len()).ok().and_then(|at| items.get_mut(at)),
            _ => None,
        };
        at = next.ok_or(PointerError::NotFound)?;
    }
    Ok((at, unescape(key)))
}

/// Unescapes a key of a JSON pointer.
fn unescape(key: &str) -> String {
    if !key.contains('~') {
        return key.to_owned();
    }
    key.replace("~1", "/").replace("~0", "~")
}

/// An index in a list of `places` positions. Negative ones count from the end.
fn index(key: &str, places: usize) -> Result<usize, String> {
    let at: i64 = key.parse().map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let invalid = || format!("Unable to access invalid index: {at}: invalid index referenced");
    let length = i64::try_from(places).map_err(|_| invalid())?;
    let from_start = if at < 0 { at.saturating_add(length) } else { at };
    usize::try_from(from_start).ok().filter(|at| *at < places).ok_or_else(invalid)
}

impl PatchUsage {
    /// Counts shifted items against the limit.
    fn count_moved(&mut self, items: usize) -> Result<(), PointerError> {
        self.moved = self.moved.saturating_add(items);
        if self.moved > MAX_MOVED_ITEMS { Err(PointerError::TooMuch) } else { Ok(()) }
    }

    /// Checks the depth of a value at a path.
    fn check_depth(&mut self, path: &str, value: &Value) -> Result<(), PointerError> {
        let at = path.bytes().filter(|byte| *byte == b'/').count();
        let room = MAX_DEPTH.checked_sub(at).ok_or(PointerError::TooMuch)?;
        if self.fits(value, room) { Ok(()) } else { Err(PointerError::TooMuch) }
    }

    fn fits(&mut self, value: &Value, room: usize) -> bool {
        self.measured += 1;
        if self.measured > MAX_MEASURED_VALUES {
            return false;
        }
        match value {
            Value::Object(members) => room > 0 && members.values().all(|member| self.fits(member, room - 1)),
            Value::Array(items) => room > 0 && items.iter().all(|item| self.fits(item, room - 1)),
            _ => true,
        }
    }
}
