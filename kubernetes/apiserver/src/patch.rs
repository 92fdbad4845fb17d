//! Patches that do not track field ownership: JSON patch, merge patch and strategic merge patch.
//!
//! - A refused patch leaves the object in an unknown state: the caller works on a copy and drops it.
//! - Refusals, with their statuses and messages, follow kube-apiserver.
//! - The result is not checked against the schema. The caller decodes it as it decodes a PUT.
//! - No patch makes an object deeper than [`MAX_DEPTH`], so that every stored object can be decoded again.

mod merge;
mod operations;
mod order;
mod strategic;

use http::StatusCode;
use serde_json::{Map, Value};

pub use self::{
    operations::{JsonPatch, JsonPatchError},
    strategic::apply_strategic_merge,
};
use crate::api::{StatusError, go_format, status::StatusDetails};

/// The deepest object that a patch may make, which is the limit of decoded bodies.
pub use crate::codec::json::MAX_DEPTH;

/// JSON patch (RFC 6902), as evanphx/json-patch reads it: `replace` also adds, indices may be negative, null is
/// absent to `test`.
pub fn apply_json_patch(object: &mut Value, patch: &[u8]) -> Result<(), StatusError> {
    let operations = JsonPatch::parse(parse(patch)?).map_err(StatusError::bad_request)?;
    operations.check_count()?;
    operations.apply(object).map_err(|_| unprocessable_patch())
}

/// Merge patch (RFC 7386).
pub fn apply_merge_patch(object: &mut Value, patch: &[u8]) -> Result<(), StatusError> {
    match parse(patch)? {
        Value::Object(patch) => {
            check_depth(&patch)?;
            merge::merge(object, patch);
        }
        Value::Null => return Err(StatusError::bad_request(INVALID)),
        other => {
            return Err(StatusError::bad_request(format!("error decoding patch: {}", not_an_object_message(&other))));
        }
    }
    Ok(())
}

/// The content of a strategic merge patch, which must be an object.
pub fn parse_object(patch: &[u8]) -> Result<Map<String, Value>, StatusError> {
    match parse(patch)? {
        Value::Object(patch) => check_depth(&patch).map(|()| patch),
        Value::Null => Ok(Map::new()),
        other => Err(StatusError::bad_request(not_an_object_message(&other))),
    }
}

fn not_an_object_message(value: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", go_format::json_kind(value))
}

const INVALID: &str = "invalid JSON patch";

fn parse(patch: &[u8]) -> Result<Value, StatusError> {
    serde_json::from_slice(patch).map_err(|_| StatusError::bad_request(INVALID))
}

/// The merged object is as deep as the deeper of the object and the patch, so only the patch needs to be
/// checked.
fn check_depth(patch: &Map<String, Value>) -> Result<(), StatusError> {
    if patch.values().all(|member| is_within_depth(member, MAX_DEPTH - 1)) {
        Ok(())
    } else {
        Err(unprocessable_patch())
    }
}

/// Whether a value nests at most `room` levels deep.
fn is_within_depth(value: &Value, room: usize) -> bool {
    let Some(inside) = room.checked_sub(1) else { return !value.is_object() && !value.is_array() };
    match value {
        Value::Object(members) => members.values().all(|member| is_within_depth(member, inside)),
        Value::Array(items) => items.iter().all(|item| is_within_depth(item, inside)),
        _ => true,
    }
}

/// A valid patch that cannot be applied to this object. kube-apiserver does not say why.
fn unprocessable_patch() -> StatusError {
    let message = "the server rejected our request due to an error in our request";
    StatusError::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(StatusDetails::default())
}

#[cfg(test)]
mod tests;
