//! PersistentVolume and PersistentVolumeClaim.
//!
//! Not done: the protection finalizers, which only controllers could remove.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{JsonObject, keep_status_apart, made, nested_object_mut, set_if_absent, set_text_if_empty, text_at},
    names, selector,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    registry::Strategy,
    schema::quantity::Quantity,
};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

#[derive(Clone, Copy, Debug)]
pub struct VolumeClaimStrategy;

#[derive(Clone, Copy, Debug)]
pub struct PersistentVolumeStrategy;

/// The defaults of a claim in a StatefulSet.
pub(super) fn default_claim_template(claim: &mut JsonObject) {
    set_text_if_empty(claim, "apiVersion", "v1");
    set_text_if_empty(claim, "kind", "PersistentVolumeClaim");
    set_if_absent(claim, "metadata", json!({}));
    default_claim(claim);
}

fn default_claim(claim: &mut JsonObject) {
    set_if_absent(claim, "spec", json!({}));
    if let Some(spec) = nested_object_mut(claim, "spec") {
        set_text_if_empty(spec, "volumeMode", "Filesystem");
        set_if_absent(spec, "resources", json!({}));
    }
    set_if_absent(claim, "status", json!({}));
    if let Some(status) = nested_object_mut(claim, "status") {
        set_text_if_empty(status, "phase", "Pending");
    }
}

impl Strategy for VolumeClaimStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(claim) = object.as_object_mut() {
            default_claim(claim);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        super::json_object::set(object, "status", json!({"phase": "Pending"}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        modes(&spec, errors);
        selector::validate(&spec.get("selector"), errors);
        let resources = spec.get("resources");
        let requests = resources.get("requests");
        if !requests.key("storage").is_set() {
            resources.key("storage").report_required(errors, "");
        } else if Quantity::from_value(requests.key("storage").value).is_some_and(|amount| amount <= Quantity::ZERO) {
            requests.key("storage").report_invalid(errors, "must be greater than zero");
        }
        for field in ["storageClassName", "volumeAttributesClassName"] {
            let class = spec.get(field);
            if !class.is_empty() {
                class.report_invalid_each(errors, names::subdomain(class.str()));
            }
        }
        spec.get("volumeMode").require_one_of(errors, &VOLUME_MODES);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource == "status" {
            return;
        }
        self.validate_create(new, errors);
        let root = FieldValue::root(new);
        let spec = root.get("spec");
        if fixed(new, old) != fixed(old, old) {
            let words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
            spec.report_forbidden(errors, words);
        }
        let asked = |claim: &Value| claim.pointer("/spec/resources/requests/storage").and_then(Quantity::from_value);
        if asked(new) < asked(old) {
            let path = "spec.resources.requests.storage";
            errors.push(FieldError::forbidden(path, "field can not be less than previous value"));
        }
    }
}

/// The immutable part of a claim: all but its size and class, once it is bound; its volume can be set once.
fn fixed(claim: &Value, old: &Value) -> Value {
    let mut spec = claim.get("spec").cloned().unwrap_or_default();
    let Some(fields) = spec.as_object_mut() else { return spec };
    if text_at(old, &["status", "phase"]) == "Bound" {
        fields.remove("resources");
        fields.remove("volumeAttributesClassName");
    }
    if text_at(old, &["spec", "volumeName"]).is_empty() {
        fields.remove("volumeName");
    }
    if old.pointer("/spec/storageClassName").is_none() {
        fields.remove("storageClassName");
    }
    spec
}

fn modes(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let list = spec.get("accessModes");
    list.require(errors, "at least 1 access mode is required");
    for mode in list.items().filter(|mode| !MODES.contains(&mode.str())) {
        errors.push(FieldError::not_supported(list.path(), mode.value, &MODES));
    }
    if list.len() > 1 && list.items().any(|mode| mode.str() == "ReadWriteOncePod") {
        list.report_forbidden(errors, "may not use ReadWriteOncePod with other access modes");
    }
}

impl Strategy for PersistentVolumeStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(status) = made(object, "status") {
            set_text_if_empty(status, "phase", "Pending");
        }
        let Some(spec) = made(object, "spec") else { return };
        set_text_if_empty(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_text_if_empty(spec, "volumeMode", "Filesystem");
        if let Some(path) = nested_object_mut(spec, "hostPath") {
            set_if_absent(path, "type", "");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        super::json_object::set(object, "status", json!({"phase": "Pending"}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        modes(&spec, errors);
        let capacity = spec.get("capacity");
        if capacity.len() != 1 || !capacity.key("storage").is_set() {
            errors.push(FieldError::not_supported(capacity.path(), capacity.value, &["storage"]));
        }
        spec.get("persistentVolumeReclaimPolicy").require_one_of(errors, &["Delete", "Recycle", "Retain"]);
        spec.get("volumeMode").require_one_of(errors, &VOLUME_MODES);
        let sources = spec.map().into_iter().flatten().filter(|(name, _)| is_source(name)).count();
        if sources == 0 {
            spec.report_required(errors, "must specify a volume type");
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource != "status" {
            self.validate_create(new, errors);
        }
    }
}

fn is_source(field: &str) -> bool {
    const OTHERS: [&str; 8] = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeMode",
    ];
    !OTHERS.contains(&field) && field != "volumeAttributesClassName"
}
