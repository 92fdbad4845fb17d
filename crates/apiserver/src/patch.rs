//! The three kinds of patches that change an object without owning its fields: JSON patch, merge patch, strategic merge patch.
//!
//! - A patch that is refused leaves the object in an unknown state: the caller works on a copy and drops it.
//! - What is refused, with which status and words, follows kube-apiserver.
//! - The result is not checked against the schema. The caller decodes it as it decodes a PUT.
//! - No patch makes an object deeper than [`MAX_DEPTH`], so that whatever is stored can be read again.

mod merge;
mod operations;
mod order;
mod strategic;

use http::StatusCode;
use serde_json::{Map, Value};

pub use self::{
    operations::{Failure, Operations},
    strategic::strategic,
};
use crate::api::{Status, go, status::Details};

/// The deepest object that a patch may make: as deep as one that is sent as a whole.
pub use crate::codec::json::MAX_DEPTH;

/// JSON patch (RFC 6902), as evanphx/json-patch reads it: `replace` also adds, indices may be negative, null is absent to `test`.
pub fn json(object: &mut Value, patch: &[u8]) -> Result<(), Status> {
    let operations = Operations::parse(parse(patch)?).map_err(Status::bad_request)?;
    operations.check_count()?;
    operations.apply(object).map_err(|_| rejected())
}

/// Merge patch (RFC 7386).
pub fn merge(object: &mut Value, patch: &[u8]) -> Result<(), Status> {
    match parse(patch)? {
        Value::Object(patch) => {
            check_depth(&patch)?;
            merge::merge(object, patch);
        }
        Value::Null => return Err(Status::bad_request(INVALID)),
        other => return Err(Status::bad_request(format!("error decoding patch: {}", no_object(&other)))),
    }
    Ok(())
}

/// The text of a strategic merge patch, which must be an object.
pub fn parse_object(patch: &[u8]) -> Result<Map<String, Value>, Status> {
    match parse(patch)? {
        Value::Object(patch) => check_depth(&patch).map(|()| patch),
        Value::Null => Ok(Map::new()),
        other => Err(Status::bad_request(no_object(&other))),
    }
}

fn no_object(value: &Value) -> String {
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", go::json_kind(value))
}

const INVALID: &str = "invalid JSON patch";

fn parse(patch: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(patch).map_err(|_| Status::bad_request(INVALID))
}

/// A merged object is as deep as the deeper of the object and the patch, so that only the patch needs to be looked at.
fn check_depth(patch: &Map<String, Value>) -> Result<(), Status> {
    if patch.values().all(|member| fits(member, MAX_DEPTH - 1)) { Ok(()) } else { Err(rejected()) }
}

/// Whether a value is nested at most so deep.
fn fits(value: &Value, room: usize) -> bool {
    let Some(inside) = room.checked_sub(1) else { return !value.is_object() && !value.is_array() };
    match value {
        Value::Object(members) => members.values().all(|member| fits(member, inside)),
        Value::Array(items) => items.iter().all(|item| fits(item, inside)),
        _ => true,
    }
}

/// A patch that makes sense and cannot be applied to this object. kube-apiserver does not say why.
fn rejected() -> Status {
    let message = "the server rejected our request due to an error in our request";
    Status::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with(Details::default())
}

#[cfg(test)]
mod tests;
