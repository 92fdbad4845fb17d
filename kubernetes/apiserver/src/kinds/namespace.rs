//! Namespace: the label with its name, and the finalizers that keep it until it is empty.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{keep_all_but_status, made, restore_field, set_text_if_empty, text_at},
    names,
};
use crate::{
    api::{
        field::FieldErrors,
        meta::{MetaAccessor, child_mut, meta_mut},
    },
    registry::{NameRule, Strategy},
};

pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The finalizer of the server itself.
pub const FINALIZER: &str = "kubernetes";

#[derive(Clone, Copy, Debug)]
pub struct NamespaceStrategy;

impl Strategy for NamespaceStrategy {
    fn default(&self, object: &mut Value) {
        let name = object.name().to_owned();
        if !name.is_empty()
            && let Some(labels) = meta_mut(object).and_then(|meta| child_mut(meta, "labels"))
        {
            labels.insert(NAME_LABEL.to_owned(), name.into());
        }
        made(object, "spec");
        if let Some(status) = made(object, "status") {
            set_text_if_empty(status, "phase", "Active");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.insert("status".to_owned(), json!({"phase": "Active"}));
        }
        let Some(spec) = made(object, "spec") else { return };
        let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
        match finalizers.as_array_mut() {
            Some(list) if list.iter().any(|one| one == FINALIZER) => {}
            Some(list) => list.push(FINALIZER.into()),
            None => *finalizers = json!([FINALIZER]),
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        match subresource {
            "status" => keep_all_but_status(new, old),
            "finalize" => restore_field(new, old, "status"),
            _ => {
                restore_field(new, old, "status");
                restore_field(new, old, "spec");
            }
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        for finalizer in spec.get("finalizers").items() {
            let wrong = names::qualified(finalizer.str());
            if wrong.is_empty() && !finalizer.str().contains('/') && finalizer.str() != FINALIZER {
                finalizer.report_invalid(errors, "name is neither a standard finalizer name nor is it fully qualified");
            }
            finalizer.report_invalid_each(errors, wrong);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        match subresource {
            "finalize" => self.validate_create(new, errors),
            "status" => phase(new, errors),
            _ => {}
        }
    }

    fn names(&self) -> NameRule {
        NameRule::Label
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        (path == "status.phase").then(|| text_at(object, &["status", "phase"]).to_owned())
    }
}

/// The phase must agree with the deletion timestamp.
fn phase(object: &Value, errors: &mut FieldErrors) {
    let root = FieldValue::root(object);
    let status = root.get("status");
    let phase = status.get("phase");
    if object.is_deleting() && phase.str() != "Terminating" {
        phase.report_invalid(errors, "may only be 'Terminating' if `deletionTimestamp` is not empty");
    }
    if !object.is_deleting() && phase.str() != "Active" {
        phase.report_invalid(errors, "may only be 'Active' if `deletionTimestamp` is empty");
    }
}
