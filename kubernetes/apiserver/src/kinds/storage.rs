//! PersistentVolume and PersistentVolumeClaim.
//!
//! Not done: the protection finalizers, which only controllers could remove.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{JsonObject, keep_status_apart, made, nested_object_mut, set_if_absent, set_text_if_empty, text_at},
    names, pod, selector,
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
        claim_spec(&spec, errors);
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

/// Validates the spec of a claim, also in a StatefulSet.
pub(super) fn claim_spec(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    spec.get("accessModes").require(errors, "at least 1 access mode is required");
    selector::validate(&spec.get("selector"), errors);
    modes(spec, errors);
    let resources = spec.get("resources");
    let requests = resources.get("requests");
    let asked = requests.key("storage");
    let at = resources.key("storage").path();
    match Quantity::from_value(asked.value) {
        None => errors.push(FieldError::required(at, "")),
        Some(amount) if amount <= Quantity::ZERO => {
            errors.push(FieldError::invalid(at, asked.value, "must be greater than zero"));
        }
        Some(_) => {}
    }
    class_name(&spec.get("storageClassName"), errors);
    spec.get("volumeMode").require_one_of(errors, &VOLUME_MODES);
    let source = spec.get("dataSource");
    let reference = spec.get("dataSourceRef");
    for given in [&source, &reference].into_iter().filter(|given| given.is_set()) {
        data_source(given, errors);
    }
    let has_namespace = !reference.get("namespace").is_empty();
    let part = |of: &FieldValue<'_>, field: &str| of.value.get(field).filter(|value| !value.is_null()).cloned();
    let differs = ["apiGroup", "kind", "name"].iter().any(|field| part(&source, field) != part(&reference, field));
    let wrong = match (source.is_set() && reference.is_set(), has_namespace) {
        (true, true) => "may not be specified when dataSourceRef.namespace is specified",
        (true, false) if differs => "must match dataSourceRef",
        _ => "",
    };
    if !wrong.is_empty() {
        // kube-apiserver shows the path of the field as its value, whose type has no public fields.
        spec.report_invalid_as(errors, "{}", wrong);
    }
    class_name(&spec.get("volumeAttributesClassName"), errors);
}

fn class_name(class: &FieldValue<'_>, errors: &mut FieldErrors) {
    if !class.is_empty() {
        class.report_invalid_each(errors, names::subdomain(class.str()));
    }
}

/// What the volume of a claim is filled with.
fn data_source(source: &FieldValue<'_>, errors: &mut FieldErrors) {
    source.get("name").require(errors, "");
    let kind = source.get("kind");
    kind.require(errors, "");
    let group = source.get("apiGroup");
    if group.is_empty() && kind.str() != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(source.path(), &kind.str().into(), detail));
    }
    if !group.is_empty() {
        group.report_invalid_each(errors, names::subdomain(group.str()));
    }
    let namespace = source.get("namespace");
    if !namespace.is_empty() {
        namespace.report_invalid_each(errors, names::label(namespace.str()));
    }
}

fn modes(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let list = spec.get("accessModes");
    for mode in list.items().filter(|mode| !MODES.contains(&mode.str())) {
        errors.push(FieldError::not_supported(list.path(), mode.value, &MODES));
    }
    let has = |wanted: fn(&str) -> bool| list.items().any(|mode| MODES.contains(&mode.str()) && wanted(mode.str()));
    if has(|mode| mode == "ReadWriteOncePod") && has(|mode| mode != "ReadWriteOncePod") {
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
        volume_spec(&spec, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource == "status" {
            return;
        }
        self.validate_create(new, errors);
        let source = |volume: &Value| {
            let spec = volume.get("spec").and_then(Value::as_object).into_iter().flatten();
            spec.filter(|(name, _)| is_source(name))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect::<Vec<_>>()
        };
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        let spec = root.get("spec");
        let old_spec = old_root.get("spec");
        if source(new) != source(old) {
            let detail = "spec.persistentvolumesource is immutable after creation\n";
            spec.get("persistentvolumesource").report_forbidden(errors, detail);
        }
        if spec.get("volumeMode").value != old_spec.get("volumeMode").value {
            errors.push(FieldError::invalid("volumeMode", spec.get("volumeMode").value, "field is immutable"));
        }
    }
}

fn volume_spec(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    spec.get("accessModes").require(errors, "");
    modes(spec, errors);
    let capacity = spec.get("capacity");
    capacity.require(errors, "");
    if capacity.len() != 1 || !capacity.key("storage").is_set() {
        errors.push(FieldError::not_supported(capacity.path(), capacity.value, &["storage"]));
    }
    for (_, amount) in capacity.entries() {
        let quantity = Quantity::from_value(amount.value);
        if quantity.is_some_and(Quantity::is_negative) {
            amount.report_invalid(errors, "must be a valid resource quantity");
        }
        if quantity.is_some_and(|quantity| quantity <= Quantity::ZERO) {
            amount.report_invalid(errors, "must be greater than zero");
        }
    }
    spec.get("persistentVolumeReclaimPolicy").require_one_of(errors, &["Delete", "Recycle", "Retain"]);
    let affinity = spec.get("nodeAffinity");
    let required = affinity.get("required");
    if affinity.is_set() {
        if required.is_set() {
            pod::node_selector(&required, errors);
        } else {
            required.report_required(errors, "must specify required node constraints");
        }
    }
    pod::volume_sources(spec, &["hostPath", "nfs", "local"], errors);
    if spec.map().into_iter().flatten().all(|(name, _)| !is_source(name)) {
        spec.report_required(errors, "must specify a volume type");
    }
    let host = spec.get("hostPath");
    let is_root = !host.get("path").is_empty() && host.get("path").str().trim_matches('/').is_empty();
    if is_root && spec.get("persistentVolumeReclaimPolicy").str() == "Recycle" {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        spec.get("persistentVolumeReclaimPolicy").report_forbidden(errors, detail);
    }
    class_name(&spec.get("storageClassName"), errors);
    spec.get("volumeMode").require_one_of(errors, &VOLUME_MODES);
    let attributes = spec.get("volumeAttributesClassName");
    if attributes.is_set() {
        if attributes.require(errors, "an empty string is disallowed") {
            class_name(&attributes, errors);
        }
        if !spec.get("csi").is_set() {
            spec.get("csi").report_required(errors, "has to be specified when using volumeAttributesClassName");
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
