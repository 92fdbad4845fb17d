//! JSON patch: a list of operations on a document.

use http::StatusCode;
use serde_json::{Map, Value};

use super::MAX_DEPTH;
use crate::api::{Status, go};

/// As in kube-apiserver.
const MAX_OPERATIONS: usize = 10_000;
/// What all `copy` operations of a patch may add, in bytes of JSON. As in kube-apiserver: the size of a request.
const MAX_COPIED: usize = 3 << 20;
/// How many values may be looked at to find out how deep a moved value is. A moved value is at most an object of some MiB, so this
/// is only reached by thousands of moves of large values.
const MAX_MEASURED: usize = 10_000_000;
/// How many items of lists may move to make or close a gap for another one. It takes about a tenth of a second.
const MAX_MOVED: usize = 10_000_000;

/// A JSON patch that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct Operations(Vec<Map<String, Value>>);

/// Why a patch cannot be applied, in the words of evanphx/json-patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Failure {
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

/// Where an operation stopped.
enum Stuck {
    /// On the way to the value.
    Lost,
    /// At the value; this is why.
    There(String),
    TooMuch,
}

/// What a patch has used up so far.
#[derive(Default)]
struct Spent {
    copied: usize,
    measured: usize,
    moved: usize,
}

impl Operations {
    /// Reads a patch. The error is in the words of kube-apiserver.
    pub fn parse(patch: Value) -> Result<Self, String> {
        let wrong = |value: &Value, wanted: &str| {
            let kind = go::json_kind(value);
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

    /// Refuses a patch of too many operations.
    pub fn check_count(&self) -> Result<(), Status> {
        if self.0.len() <= MAX_OPERATIONS {
            return Ok(());
        }
        let message = format!(
            "Request entity is too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            self.0.len()
        );
        Err(Status::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message))
    }

    /// Applies all operations, or stops at the first that fails.
    pub fn apply(self, document: &mut Value) -> Result<(), Failure> {
        let mut spent = Spent::default();
        self.0.into_iter().try_for_each(|operation| apply(document, operation, &mut spent))
    }
}

fn apply(document: &mut Value, mut operation: Map<String, Value>, spent: &mut Spent) -> Result<(), Failure> {
    let value = operation.remove("value");
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let kind = text("op").unwrap_or("unknown");
    let path = || text("path").ok_or_else(|| Failure::Missing(format!("{kind} operation failed to decode path")));
    let from = || text("from").ok_or_else(|| Failure::Missing(format!("{kind} operation failed to decode from")));
    let lost = |what: &str, path: &str| format!("{kind} operation does not apply: doc is missing {what}: {path}");
    let quoted = |path: &str| lost("path", &format!("\"{path}\""));
    let inside = |path: &str| format!("error in {kind} for path: '{path}'");
    match kind {
        "add" => {
            let path = path()?;
            add(document, path, value.unwrap_or_default(), spent).map_err(|stuck| stuck.at(quoted(path), inside(path)))
        }
        "remove" => {
            let path = path()?;
            remove(document, path, spent).map(drop).map_err(|stuck| stuck.at(quoted(path), inside(path)))
        }
        "replace" => replace(document, path()?, value.unwrap_or_default(), spent),
        "test" => test(document, path()?, &value.unwrap_or_default()),
        "move" => {
            let (from, path) = (from()?, path()?);
            let key = from.rsplit('/').next().unwrap_or_default();
            let value =
                remove(document, from, spent).map_err(|stuck| stuck.at(lost("from path", from), inside(key)))?;
            let stuck = |stuck: Stuck| stuck.at(lost("destination path", path), inside(path));
            add(document, path, value, spent).map_err(stuck)
        }
        "copy" => {
            let (from, path) = (from()?, path()?);
            let stuck = |stuck: Stuck| stuck.at(lost("from path", from), format!("error in copy for from: '{from}'"));
            let value = get(document, from).map_err(stuck)?.cloned().unwrap_or_default();
            spent.copied += value.to_string().len();
            if spent.copied > MAX_COPIED {
                return Err(Failure::TooMuch);
            }
            let during = || "error while adding value during copy".to_owned();
            add(document, path, value, spent).map_err(|stuck| stuck.at(lost("destination path", path), during()))
        }
        other => Err(Failure::Kind(other.to_owned())),
    }
}

fn add(document: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), Stuck> {
    spent.check_depth(path, &value)?;
    match parent(document, path)? {
        (Value::Object(members), key) => _ = members.insert(key, value),
        (Value::Array(items), key) if key == "-" => items.push(value),
        (Value::Array(items), key) => {
            let improper = |why: String| format!("value was not a proper array index: '{key}': {why}");
            let at = index(&key, items.len() + 1).map_err(|why| match why.starts_with("strconv") {
                true => Stuck::There(improper(why)),
                false => Stuck::There(why),
            })?;
            spent.count_moved(items.len() - at)?;
            items.insert(at, value);
        }
        _ => return Err(Stuck::Lost),
    }
    Ok(())
}

fn remove(document: &mut Value, path: &str, spent: &mut Spent) -> Result<Value, Stuck> {
    match parent(document, path)? {
        (Value::Object(members), key) => {
            let absent = || Stuck::There(format!("Unable to remove nonexistent key: {key}: missing value"));
            members.remove(&key).ok_or_else(absent)
        }
        (Value::Array(items), key) => {
            let at = index(&key, items.len()).map_err(Stuck::There)?;
            spent.count_moved(items.len() - at)?;
            Ok(items.remove(at))
        }
        _ => Err(Stuck::Lost),
    }
}

fn replace(document: &mut Value, path: &str, value: Value, spent: &mut Spent) -> Result<(), Failure> {
    let missing =
        |what: &str| Failure::Missing(format!("replace operation does not apply: doc is missing {what}: {path}"));
    spent.check_depth(path, &value).map_err(|_| Failure::TooMuch)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(Failure::Root);
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

fn test(document: &mut Value, path: &str, value: &Value) -> Result<(), Failure> {
    let stuck = |stuck: Stuck| {
        let lost = format!("test operation does not apply: is missing path: {path}");
        stuck.at(lost, format!("error in test for path: '{path}'"))
    };
    let found = if path.is_empty() { Some(&*document) } else { get(document, path).map_err(stuck)? };
    // What is absent equals null.
    if found.unwrap_or(&Value::Null) == value { Ok(()) } else { Err(Failure::Test(path.to_owned())) }
}

/// A value. A member that is not there is none; an item that is not there, or a missing parent, is an error.
fn get<'a>(document: &'a mut Value, path: &str) -> Result<Option<&'a Value>, Stuck> {
    match parent(document, path)? {
        (Value::Object(members), key) => Ok(members.get(&key)),
        (Value::Array(items), key) => {
            let at = index(&key, items.len()).map_err(Stuck::There)?;
            Ok(items.get(at))
        }
        _ => Err(Stuck::Lost),
    }
}

impl Stuck {
    /// As a failure, with what is said when the way or the value is missing.
    fn at(self, lost: String, there: String) -> Failure {
        match self {
            Stuck::Lost => Failure::Missing(lost),
            Stuck::There(why) => Failure::Value(format!("{there}: {why}")),
            Stuck::TooMuch => Failure::TooMuch,
        }
    }
}

/// What holds the value at a path, and the value's own key.
fn parent<'a>(document: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), Stuck> {
    // What is before the first slash is ignored, as kube-apiserver does.
    let (_, inner) = path.split_once('/').ok_or(Stuck::Lost)?;
    let (way, key) = inner.rsplit_once('/').map_or((None, inner), |(way, key)| (Some(way), key));
    let mut at = document;
    for part in way.into_iter().flat_map(|way| way.split('/')) {
        let part = unescape(part);
        let next = match at {
            Value::Object(members) => members.get_mut(&part),
            Value::Array(items) => index(&part, items.len()).ok().and_then(|at| items.get_mut(at)),
            _ => None,
        };
        at = next.ok_or(Stuck::Lost)?;
    }
    Ok((at, unescape(key)))
}

/// A key of a JSON pointer as it is meant.
fn unescape(key: &str) -> String {
    if !key.contains('~') {
        return key.to_owned();
    }
    key.replace("~1", "/").replace("~0", "~")
}

/// A place in a list of so many places. Negative ones count from the end. Without one, why.
fn index(key: &str, places: usize) -> Result<usize, String> {
    let at: i64 = key.parse().map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let invalid = || format!("Unable to access invalid index: {at}: invalid index referenced");
    let length = i64::try_from(places).map_err(|_| invalid())?;
    let from_start = if at < 0 { at.saturating_add(length) } else { at };
    usize::try_from(from_start).ok().filter(|at| *at < places).ok_or_else(invalid)
}

impl Spent {
    /// Whether so many more items may move.
    fn count_moved(&mut self, items: usize) -> Result<(), Stuck> {
        self.moved = self.moved.saturating_add(items);
        if self.moved > MAX_MOVED { Err(Stuck::TooMuch) } else { Ok(()) }
    }

    /// Whether a value may be put at a path.
    fn check_depth(&mut self, path: &str, value: &Value) -> Result<(), Stuck> {
        let at = path.bytes().filter(|byte| *byte == b'/').count();
        let room = MAX_DEPTH.checked_sub(at).ok_or(Stuck::TooMuch)?;
        if self.fits(value, room) { Ok(()) } else { Err(Stuck::TooMuch) }
    }

    fn fits(&mut self, value: &Value, room: usize) -> bool {
        self.measured += 1;
        if self.measured > MAX_MEASURED {
            return false;
        }
        match value {
            Value::Object(members) => room > 0 && members.values().all(|member| self.fits(member, room - 1)),
            Value::Array(items) => room > 0 && items.iter().all(|item| self.fits(item, room - 1)),
            _ => true,
        }
    }
}
