//! ReplicaSet and its predecessor, ReplicationController.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{made, number_at, set_if_absent},
    metadata, pod,
    workload::{self, at_most, non_negative},
};
use crate::{
    api::{
        field::FieldErrors,
        meta::{MetaAccessor, set_meta},
    },
    registry::Strategy,
};

#[derive(Clone, Copy, Debug)]
pub struct ReplicaSetStrategy;

#[derive(Clone, Copy, Debug)]
pub struct ReplicationControllerStrategy;

impl Strategy for ReplicaSetStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        let mut found = super::pod::host_name_warnings(object, super::pod::POD_NAMES);
        found.extend(super::pod::template_warnings(object, &["spec", "template"]));
        found
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        super::pod::template_warnings_on_update(new, old, &["spec", "template"])
    }

    fn default(&self, object: &mut Value) {
        count_default(object);
        let Some(spec) = made(object, "spec") else { return };
        workload::defaults(spec);
        set_if_absent(spec, "replicas", 1);
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::prepare_create(object, json!({"replicas": 0}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        non_negative(&spec, &["replicas", "minReadySeconds"], errors);
        workload::validate(&spec, "deployment", errors);
        workload::always_restarts(&spec, "ReplicaSet", errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        if subresource == "status" {
            return status(&root.get("status"), errors);
        }
        self.validate_create(new, errors);
        workload::same_selector(&root.get("spec"), &old_root.get("spec"), errors);
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        (path == "status.replicas").then(|| number_at(object, &["status", "replicas"]).to_string())
    }
}

impl Strategy for ReplicationControllerStrategy {
    fn warnings(&self, object: &Value) -> Vec<String> {
        let mut found = super::pod::host_name_warnings(object, super::pod::POD_NAMES);
        found.extend(super::pod::template_warnings(object, &["spec", "template"]));
        found
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        super::pod::template_warnings_on_update(new, old, &["spec", "template"])
    }

    fn default(&self, object: &mut Value) {
        count_default(object);
        let Some(spec) = made(object, "spec") else { return };
        workload::defaults(spec);
        set_if_absent(spec, "replicas", 1);
        let labels = object.pointer("/spec/template/metadata/labels").filter(|labels| labels.is_object()).cloned();
        let Some(labels) = labels else { return };
        if object.meta("labels").is_none_or(Value::is_null) {
            set_meta(object, "labels", labels.clone());
        }
        if let Some(spec) = made(object, "spec") {
            set_if_absent(spec, "selector", labels);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        workload::prepare_create(object, json!({"replicas": 0}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        workload::prepare_update(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        non_negative(&spec, &["replicas", "minReadySeconds"], errors);
        let selector = spec.get("selector");
        selector.require(errors, "");
        metadata::labels(&selector, errors);
        let template = spec.get("template");
        let meta = template.get("metadata");
        let labels = meta.get("labels");
        let selected = |(key, value): (&str, FieldValue<'_>)| labels.value.get(key) == Some(value.value);
        if !selector.is_empty() && !selector.entries().all(selected) {
            labels.report_invalid(errors, "`selector` does not match template `labels`");
        }
        pod::validate_template(&template, errors);
        workload::always_restarts(&spec, "ReplicationController", errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        match subresource {
            "status" => status(&root.get("status"), errors),
            _ => self.validate_create(new, errors),
        }
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        (path == "status.replicas").then(|| number_at(object, &["status", "replicas"]).to_string())
    }
}

fn count_default(object: &mut Value) {
    if let Some(status) = made(object, "status") {
        set_if_absent(status, "replicas", 0);
    }
}

fn status(status: &FieldValue<'_>, errors: &mut FieldErrors) {
    let counts = ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    non_negative(status, &counts, errors);
    for part in ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
        at_most(status, part, "replicas", "status.replicas", errors);
    }
    at_most(status, "availableReplicas", "readyReplicas", "readyReplicas", errors);
}
