//! The inventory of Kubewake in a cluster, for `status` and `check`. Read-only.
//!
//! - [`collectors`]: collector pods and the status that each reports;
//! - [`pipelines`]: the resources with their status;
//! - [`lease`]: the leader of the operators;
//! - [`pods`]: why pods do not start;
//! - [`viewer`]: the status of the viewer.
//!
//! Objects are read without the types of this version, so that those of other versions are shown, too.

pub(crate) mod collectors;
pub(crate) mod lease;
pub(crate) mod pipelines;
pub(crate) mod pods;
pub(crate) mod viewer;

use serde_json::Value;

/// The text at a JSON pointer, or an empty string.
pub(crate) fn text_at_pointer(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}
