//! PersistentVolume and PersistentVolumeClaim.
//!
//! Not done: the protection finalizers, which only controllers could remove.

use serde_json::{Value, json};

use super::{
    at::At,
    names,
    object::{Object, fill, fill_text, keep_status_apart, made, sub, text_at},
    selector,
};
use crate::{
    api::field::{Error, Errors},
    registry::Strategy,
    schema::quantity::Quantity,
};

const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Rules of PersistentVolumeClaim.
#[derive(Clone, Copy, Debug)]
pub struct Claim;

/// Rules of PersistentVolume.
#[derive(Clone, Copy, Debug)]
pub struct Volume;

/// The defaults of a claim that stands in a StatefulSet.
pub(super) fn default_claim_template(claim: &mut Object) {
    fill_text(claim, "apiVersion", "v1");
    fill_text(claim, "kind", "PersistentVolumeClaim");
    fill(claim, "metadata", json!({}));
    default_claim(claim);
}

fn default_claim(claim: &mut Object) {
    fill(claim, "spec", json!({}));
    if let Some(spec) = sub(claim, "spec") {
        fill_text(spec, "volumeMode", "Filesystem");
        fill(spec, "resources", json!({}));
    }
    fill(claim, "status", json!({}));
    if let Some(status) = sub(claim, "status") {
        fill_text(status, "phase", "Pending");
    }
}

impl Strategy for Claim {
    fn default(&self, object: &mut Value) {
        if let Some(claim) = object.as_object_mut() {
            default_claim(claim);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        super::object::set(object, "status", json!({"phase": "Pending"}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        modes(&spec, errors);
        selector::validate(&spec.get("selector"), errors);
        let resources = spec.get("resources");
        let requests = resources.get("requests");
        if !requests.key("storage").is_set() {
            resources.key("storage").required(errors, "");
        } else if Quantity::of(requests.key("storage").value).is_some_and(|amount| amount <= Quantity::ZERO) {
            requests.key("storage").invalid(errors, "must be greater than zero");
        }
        for field in ["storageClassName", "volumeAttributesClassName"] {
            let class = spec.get(field);
            if !class.is_empty() {
                class.invalid_each(errors, names::subdomain(class.str()));
            }
        }
        spec.get("volumeMode").one_of(errors, &VOLUME_MODES);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource == "status" {
            return;
        }
        self.validate_create(new, errors);
        let root = At::root(new);
        let spec = root.get("spec");
        if fixed(new, old) != fixed(old, old) {
            let words = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
            spec.forbidden(errors, words);
        }
        let asked = |claim: &Value| claim.pointer("/spec/resources/requests/storage").and_then(Quantity::of);
        if asked(new) < asked(old) {
            let path = "spec.resources.requests.storage";
            errors.push(Error::forbidden(path, "field can not be less than previous value"));
        }
    }
}

/// What of a claim never changes: all but its size and class, once it is bound; its volume can be set once.
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

fn modes(spec: &At<'_>, errors: &mut Errors) {
    let list = spec.get("accessModes");
    list.require(errors, "at least 1 access mode is required");
    for mode in list.items().filter(|mode| !MODES.contains(&mode.str())) {
        errors.push(Error::not_supported(list.path(), mode.value, &MODES));
    }
    if list.len() > 1 && list.items().any(|mode| mode.str() == "ReadWriteOncePod") {
        list.forbidden(errors, "may not use ReadWriteOncePod with other access modes");
    }
}

impl Strategy for Volume {
    fn default(&self, object: &mut Value) {
        if let Some(status) = made(object, "status") {
            fill_text(status, "phase", "Pending");
        }
        let Some(spec) = made(object, "spec") else { return };
        fill_text(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill_text(spec, "volumeMode", "Filesystem");
        if let Some(path) = sub(spec, "hostPath") {
            fill(path, "type", "");
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        super::object::set(object, "status", json!({"phase": "Pending"}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        modes(&spec, errors);
        let capacity = spec.get("capacity");
        if capacity.len() != 1 || !capacity.key("storage").is_set() {
            errors.push(Error::not_supported(capacity.path(), capacity.value, &["storage"]));
        }
        spec.get("persistentVolumeReclaimPolicy").one_of(errors, &["Delete", "Recycle", "Retain"]);
        spec.get("volumeMode").one_of(errors, &VOLUME_MODES);
        let sources = spec.map().into_iter().flatten().filter(|(name, _)| is_source(name)).count();
        if sources == 0 {
            spec.required(errors, "must specify a volume type");
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
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
