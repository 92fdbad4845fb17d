//! The upgrade from client-side apply to server-side apply, by the annotation with the last applied
//! configuration.

use serde_json::Value;

use super::{compare::compare, fieldset::FieldSet, to_field_set::to_set, validate::validate};
use crate::{
    api::meta::{self, MetaAccessor},
    schema::Schema,
};

/// The manager to which the annotation applies.
pub(super) const KUBECTL_MANAGER: &str = "kubectl";
const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The largest total size of an object's annotations, in bytes.
const MAX_ANNOTATION_BYTES: usize = 256 << 10;

fn last_applied_annotation(object: &Value) -> Option<&str> {
    let text = object.meta("annotations")?.get(LAST_APPLIED_ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The fields that kubectl owns by the annotation: those of its last configuration that the object still has.
pub(super) fn owned_by_annotation(live: &Value, api_version: &str, schema: &Schema) -> Option<FieldSet> {
    let last: Value = serde_json::from_str(last_applied_annotation(live)?).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    validate(&last, schema).ok()?;
    let difference = compare(&last, live, schema).ok()?;
    let set = to_set(&last, schema).ok()?;
    Some(set.difference(&difference.modified).difference(&difference.added).difference(&difference.removed))
}

/// Updates the annotation of an object that has one, so that client-side apply continues to work.
pub(super) fn renew_annotation(object: &mut Value, config: &Value) {
    if last_applied_annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED_ANNOTATION);
        if annotations.is_empty() {
            meta::remove_meta(&mut config, "annotations");
        }
    }
    // kube-apiserver's encoding, with a final newline.
    let text = format!("{config}\n");
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.insert(LAST_APPLIED_ANNOTATION.to_owned(), Value::String(text));
        let size: usize = annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
        if size > MAX_ANNOTATION_BYTES {
            annotations.remove(LAST_APPLIED_ANNOTATION);
        }
    }
}
