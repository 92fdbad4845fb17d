//! Node. A new one is tainted until it is ready.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{
        JsonObject, keep_status_apart, list_at, made, nested_object_mut, object_items_mut, set_if_absent, text_at,
        value_at,
    },
    names,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    registry::Strategy,
    schema::quantity::Quantity,
};

const NODE_INFO_FIELDS: [&str; 10] = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
];
const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";

#[derive(Clone, Copy, Debug)]
pub struct NodeStrategy;

impl Strategy for NodeStrategy {
    fn default(&self, object: &mut Value) {
        made(object, "spec");
        if let Some(status) = made(object, "status") {
            default_status(status);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let Some(spec) = made(object, "spec") else { return };
        let taints = spec.entry("taints").or_insert_with(|| json!([]));
        let Some(taints) = taints.as_array_mut() else { return };
        let told =
            |taint: &Value| text_at(taint, &["key"]) == NOT_READY_TAINT && text_at(taint, &["effect"]) == "NoSchedule";
        if !taints.iter().any(told) {
            taints.push(json!({"key": NOT_READY_TAINT, "effect": "NoSchedule"}));
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        taints(&spec.get("taints"), errors);
        let status = root.get("status");
        for list in ["capacity", "allocatable"] {
            for (_, amount) in status.get(list).entries() {
                if Quantity::from_value(amount.value).is_some_and(Quantity::is_negative) {
                    amount.report_invalid(errors, "must be greater than or equal to 0");
                }
            }
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
        if subresource == "status" {
            return;
        }
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        let spec = root.get("spec");
        let old_spec = old_root.get("spec");
        for field in ["podCIDR", "providerID"] {
            if !old_spec.get(field).is_empty() && old_spec.get(field).value != spec.get(field).value {
                let words = "node updates may not change podCIDR except from \"\" to valid";
                let words = if field == "podCIDR" {
                    words
                } else {
                    "node updates may not change providerID except from \"\" to valid"
                };
                spec.get(field).report_forbidden(errors, words);
            }
        }
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        let value = value_at(object, &["spec", "unschedulable"]).and_then(Value::as_bool).unwrap_or(false);
        (path == "spec.unschedulable").then(|| value.to_string())
    }
}

fn default_status(status: &mut JsonObject) {
    let capacity = status.get("capacity").filter(|capacity| capacity.is_object()).cloned();
    if let Some(capacity) = capacity {
        set_if_absent(status, "allocatable", capacity);
    }
    set_if_absent(status, "daemonEndpoints", json!({}));
    if let Some(endpoints) = nested_object_mut(status, "daemonEndpoints") {
        set_if_absent(endpoints, "kubeletEndpoint", json!({"Port": 0}));
    }
    set_if_absent(status, "nodeInfo", json!({}));
    if let Some(info) = nested_object_mut(status, "nodeInfo") {
        NODE_INFO_FIELDS.iter().for_each(|field| set_if_absent(info, field, ""));
    }
    for condition in object_items_mut(status, "conditions") {
        for time in ["lastHeartbeatTime", "lastTransitionTime"] {
            condition.entry(time).or_insert(Value::Null);
        }
    }
}

fn taints(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for taint in list.items() {
        let key = taint.get("key");
        key.report_invalid_each(errors, names::qualified(key.str()));
        let value = taint.get("value");
        value.report_invalid_each(errors, names::label_value(value.str()));
        let effect = taint.get("effect");
        if effect.require(errors, "") {
            effect.require_one_of(errors, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
        let this = (text_at(taint.value, &["key"]), text_at(taint.value, &["effect"]));
        if seen.contains(&this) {
            let fields = [("Key", "\"\""), ("Value", "\"\""), ("Effect", "\"\""), ("TimeAdded", "null")];
            let shown = taint.format_internal(&fields);
            let kind = crate::api::field::FieldErrorType::Duplicate;
            errors.push(FieldError::new(
                taint.path(),
                kind,
                format!("Duplicate value: {shown}: taints must be unique by key and effect pair"),
            ));
        }
        seen.push(this);
    }
}

/// Whether a node has the condition `Ready`.
pub fn is_ready(node: &Value) -> bool {
    let conditions = list_at(node, &["status", "conditions"]);
    conditions.iter().any(|one| text_at(one, &["type"]) == "Ready" && text_at(one, &["status"]) == "True")
}
