//! temporary
use serde_json::Value;
use crate::registry::Resource;
/// t
pub fn cells(_: &Resource, object: &Value, _: jiff::Timestamp) -> Vec<Value> { vec![object.pointer("/metadata/name").cloned().unwrap_or_default()] }
/// t
pub fn columns(_: &Resource) -> Vec<Value> { vec![] }
