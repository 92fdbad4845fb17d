//! From the bytes of a request to an object of its resource.

use serde_json::Value;

use super::call::On;
use crate::{
    api::{GroupKind, Status, field, go, meta::set_meta},
    codec::{
        Media, body,
        content_type::{self, PatchType},
        query::{FieldValidation, WriteOptions},
    },
    schema::{decode, defaults, prune},
};

/// The object of a create or an update.
pub fn object(on: On<'_>, bytes: &[u8], options: &WriteOptions) -> Result<Value, Status> {
    let media = content_type::object(on.content_type())?;
    object_as(on, media, bytes, options)
}

/// The object of an apply, which is YAML and therefore may be JSON. What is in it is told apart from what is not, so that nothing
/// is filled in or dropped here; its types are checked where it is merged.
pub fn applied(on: On<'_>, bytes: &[u8]) -> Result<Value, Status> {
    let decoded = body::decode(Media::Yaml, bytes, &on.wanted_gv(), on.wanted_kind())?;
    let mut value = decoded.value;
    check_kind(on, &mut value)?;
    Ok(value)
}

fn object_as(on: On<'_>, media: Media, bytes: &[u8], options: &WriteOptions) -> Result<Value, Status> {
    let mut decoded = body::decode(media, bytes, &on.wanted_gv(), on.wanted_kind())?;
    let mut value = decoded.value.take();
    if value.is_null() {
        value = Value::Object(serde_json::Map::new());
    }
    check_kind_given(on, &value, bytes)?;
    check_kind(on, &mut value)?;
    let reset = resets_managers(&value);
    let refuse = |why: &str| body::cannot_be_handled(on.wanted_kind(), &on.wanted_gv().version, on.wanted_kind(), why);
    let unknown = typed(on, &mut value).map_err(|why| refuse(&why))?;
    let problems = decoded.problems(bytes, &unknown);
    match options.field_validation {
        FieldValidation::Strict if !problems.is_empty() => return Err(refuse(&body::strict_error(&problems))),
        FieldValidation::Warn => body::warnings(&problems).for_each(|warning| on.call.warnings.add(warning)),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    if let Some(reset) = reset {
        set_meta(&mut value, "managedFields", reset);
    }
    on.to_stored(&mut value);
    Ok(value)
}

/// What a patch has made, read again as if it had been sent.
pub fn patched(
    on: On<'_>,
    value: &mut Value,
    patch: &[u8],
    form: PatchType,
    options: &WriteOptions,
) -> Result<(), Status> {
    let before = shown_object(value);
    let invalid = |shown: &str, why: &str| {
        let error = field::Error::invalid("patch", &shown.into(), why);
        Status::invalid(&GroupKind::new("", ""), "", &[error])
    };
    check_patched_kind(on, value).map_err(|why| invalid(&before, &why))?;
    let unknown = typed(on, value).map_err(|why| invalid(&before, &why))?;
    let unknown: Vec<String> = unknown.iter().map(|path| body::unknown_field(path)).collect();
    match options.field_validation {
        FieldValidation::Strict if !unknown.is_empty() => {
            let shown = match form {
                PatchType::StrategicMerge => shown_map(patch),
                _ => before,
            };
            Err(invalid(&shown, &body::strict_error(&unknown)))
        }
        FieldValidation::Warn => {
            body::warnings(&unknown).for_each(|warning| on.call.warnings.add(warning));
            Ok(())
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok(()),
    }
}

/// Checks types, drops what the schema does not know, and fills in its defaults. Gives the paths of what it dropped.
fn typed(on: On<'_>, value: &mut Value) -> Result<Vec<String>, String> {
    let schema = on.wanted_schema();
    if on.resource.custom.is_some() && !on.is_scale() {
        let dropped = prune::prune(value, schema).map_err(|error| error.to_string())?;
        defaults::apply_defaults(value, schema);
        Ok(dropped)
    } else {
        decode::check(value, schema).map_err(|error| error.to_string())
    }
}

/// Custom resources must say what they are.
fn check_kind_given(on: On<'_>, value: &Value, bytes: &[u8]) -> Result<(), Status> {
    let given = value.get("kind").and_then(Value::as_str).is_some_and(|kind| !kind.is_empty());
    if given || on.resource.custom.is_none() || on.is_scale() {
        return Ok(());
    }
    let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(bytes));
    Err(body::unrecognized(on.wanted_kind(), &why, bytes))
}

/// A body without a kind is of the path's; one of another kind is refused.
fn check_kind(on: On<'_>, value: &mut Value) -> Result<(), Status> {
    let (kind, version) = (on.wanted_kind(), on.wanted_gv().to_string());
    let text = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (given_kind, given_version) = (text("kind").unwrap_or(kind), text("apiVersion").unwrap_or(version.as_str()));
    // Of custom resources another kind is no error of decoding, but of validation.
    let custom = on.resource.custom.is_some() && !on.is_scale();
    if (given_kind != kind && !custom) || given_version != version {
        return Err(wrong_kind(on, given_kind, given_version));
    }
    let kind = given_kind.to_owned();
    if let Some(object) = value.as_object_mut() {
        object.insert("kind".into(), kind.into());
        object.insert("apiVersion".into(), version.into());
    }
    Ok(())
}

fn wrong_kind(on: On<'_>, kind: &str, version: &str) -> Status {
    let gv = crate::api::GroupVersion::parse(version).unwrap_or_else(|| crate::api::GroupVersion::new("", version));
    let known = on.call.catalog.by_kind(&gv, kind).is_some();
    if known || on.resource.custom.is_some() {
        let wanted = on.wanted_gv().to_string();
        let message = if version == wanted {
            format!("the API kind in the data ({kind}) does not match the expected kind ({})", on.wanted_kind())
        } else {
            format!("the API version in the data ({version}) does not match the expected API version ({wanted})")
        };
        return Status::bad_request(message);
    }
    let why = format!(
        "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/api/legacyscheme/scheme.go:30\""
    );
    body::cannot_be_handled(kind, &gv.version, on.wanted_kind(), &why)
}

/// A patch as Go prints a map.
fn shown_map(patch: &[u8]) -> String {
    serde_json::from_slice(patch).map_or_else(|_| String::new(), |patch| go::printed(&patch))
}

/// Whether the writer asks for an end of the bookkeeping about managers: by an empty list, or a list of one empty entry. Both would
/// look like no list at all once they are checked.
fn resets_managers(object: &Value) -> Option<Value> {
    let entries = object.pointer("/metadata/managedFields")?;
    let reset = match entries.as_array()?.as_slice() {
        [] => true,
        [one] => one.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    reset.then(|| entries.clone())
}

/// A patch cannot make another kind of an object.
fn check_patched_kind(on: On<'_>, value: &Value) -> Result<(), String> {
    let given = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    if on.resource.custom.is_some() || given == on.wanted_kind() {
        return Ok(());
    }
    let gv = on.wanted_gv();
    let package = if gv.group.is_empty() { "core" } else { gv.group.split('.').next().unwrap_or_default() };
    let (version, wanted) = (&gv.version, on.wanted_kind());
    Err(format!("converting ({version}.{given}) to ({package}.{wanted}): unknown conversion"))
}

/// The order in which Go writes metadata, and an entry of its `managedFields`.
const META: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
const MANAGED: [&str; 7] = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

/// A patched object as kube-apiserver shows it in a refusal: what the patch did not touch is in the order of Go's types.
fn shown_object(value: &Value) -> String {
    let Some(members) = value.as_object() else { return value.to_string() };
    let members: Vec<String> = members
        .iter()
        .map(|(key, value)| {
            let text = if key == "metadata" { in_order(value, &META) } else { value.to_string() };
            format!("{}:{text}", Value::from(key.as_str()))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn in_order(value: &Value, order: &[&str]) -> String {
    let Some(members) = value.as_object() else { return value.to_string() };
    let known = order.iter().filter_map(|name| members.get_key_value(*name));
    let others = members.iter().filter(|(name, _)| !order.contains(&name.as_str()));
    let members: Vec<String> = known
        .chain(others)
        .map(|(name, value)| match (name.as_str(), value) {
            ("managedFields", Value::Array(entries)) => {
                let entries: Vec<String> = entries.iter().map(|entry| in_order(entry, &MANAGED)).collect();
                format!("\"managedFields\":[{}]", entries.join(","))
            }
            _ => format!("{}:{value}", Value::from(name.as_str())),
        })
        .collect();
    format!("{{{}}}", members.join(","))
}
