//! What can be seen of Kubewake in a cluster, for `status` and `check`. Only reads.
//!
//! - [`collectors`]: their pods, and what each says of itself;
//! - [`pipelines`]: the resources, as far as their status goes;
//! - [`lease`]: who leads;
//! - [`pods`]: why pods do not start;
//! - [`viewer`]: what the viewer says of itself.
//!
//! Objects are read as they are and not as this version knows them, so that one of another version is shown, too.

pub(crate) mod collectors;
pub(crate) mod lease;
pub(crate) mod pipelines;
pub(crate) mod pods;
pub(crate) mod viewer;

use serde_json::Value;

/// The text at a pointer, or nothing.
pub(crate) fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
