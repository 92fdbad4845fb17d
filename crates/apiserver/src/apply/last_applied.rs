//! kubectl's way from client-side apply to server-side apply: the annotation that says what it applied last.

use serde_json::Value;

use super::{compare::compare, fieldset::Set, toset::to_set, validate::validate};
use crate::{
    api::meta::{self, Meta},
    schema::Schema,
};

/// The manager for whom the annotation counts.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What all annotations of an object may hold together, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

fn annotation(object: &Value) -> Option<&str> {
    let text = object.meta("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// What kubectl owns by the annotation: what it applied last, as far as the object still has it so.
pub(super) fn owned(live: &Value, api_version: &str, schema: &Schema) -> Option<Set> {
    let last: Value = serde_json::from_str(annotation(live)?).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    validate(&last, schema).ok()?;
    let difference = compare(&last, live, schema).ok()?;
    let set = to_set(&last, schema).ok()?;
    Some(set.difference(&difference.modified).difference(&difference.added).difference(&difference.removed))
}

/// Renews the annotation of an object that has one, so that client-side apply goes on to work.
pub(super) fn renew(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
        if annotations.is_empty() {
            meta::remove_meta(&mut config, "annotations");
        }
    }
    // As kube-apiserver encodes it, with a new line at the end.
    let text = format!("{config}\n");
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.insert(ANNOTATION.to_owned(), Value::String(text));
        let size: usize = annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        if size > MAX_ANNOTATIONS {
            annotations.remove(ANNOTATION);
        }
    }
}
