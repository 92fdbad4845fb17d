//! Namespace: the label with its name, and the finalizers that keep it while it is emptied.

use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{fill_text, keep, keep_all_but_status, made, text_at},
};
use crate::{
    api::{
        field::Errors,
        meta::{Meta, child_mut, meta_mut},
    },
    registry::{NameRule, Strategy},
};

/// The label that every namespace has.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";
/// The finalizer of the server itself.
pub const FINALIZER: &str = "kubernetes";

/// Rules of Namespace.
#[derive(Clone, Copy, Debug)]
pub struct Namespace;

impl Strategy for Namespace {
    fn default(&self, object: &mut Value) {
        let name = object.name().to_owned();
        if !name.is_empty()
            && let Some(labels) = meta_mut(object).and_then(|meta| child_mut(meta, "labels"))
        {
            labels.insert(NAME_LABEL.to_owned(), name.into());
        }
        made(object, "spec");
        if let Some(status) = made(object, "status") {
            fill_text(status, "phase", "Active");
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
            "finalize" => keep(new, old, "status"),
            _ => {
                keep(new, old, "status");
                keep(new, old, "spec");
            }
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        for finalizer in spec.get("finalizers").items() {
            let wrong = names::qualified(finalizer.str());
            if wrong.is_empty() && !finalizer.str().contains('/') && finalizer.str() != FINALIZER {
                finalizer.invalid(errors, "name is neither a standard finalizer name nor is it fully qualified");
            }
            finalizer.invalid_each(errors, wrong);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
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

/// The phase tells whether it is being deleted.
fn phase(object: &Value, errors: &mut Errors) {
    let root = At::root(object);
    let status = root.get("status");
    let phase = status.get("phase");
    if object.is_deleting() && phase.str() != "Terminating" {
        phase.invalid(errors, "may only be 'Terminating' if `deletionTimestamp` is not empty");
    }
    if !object.is_deleting() && phase.str() != "Active" {
        phase.invalid(errors, "may only be 'Active' if `deletionTimestamp` is empty");
    }
}
