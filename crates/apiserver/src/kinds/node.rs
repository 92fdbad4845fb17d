//! Node. A new one is tainted until somebody says that it is ready.

use serde_json::{Value, json};

use super::{
    at::At,
    metadata, names,
    object::{Object, at, each, fill, keep_status_apart, list_at, made, sub, text_at},
};
use crate::{
    api::field::{Error, Errors},
    registry::Strategy,
    schema::quantity::Quantity,
};

const INFO: [&str; 10] = [
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
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Rules of Node.
#[derive(Clone, Copy, Debug)]
pub struct Node;

impl Strategy for Node {
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
        let told = |taint: &Value| text_at(taint, &["key"]) == NOT_READY && text_at(taint, &["effect"]) == "NoSchedule";
        if !taints.iter().any(told) {
            taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        taints(&spec.get("taints"), errors);
        let status = root.get("status");
        for list in ["capacity", "allocatable"] {
            for (_, amount) in status.get(list).entries() {
                if Quantity::of(amount.value).is_some_and(Quantity::is_negative) {
                    amount.invalid(errors, "must be greater than or equal to 0");
                }
            }
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
        if subresource == "status" {
            return;
        }
        let (root, old_root) = (At::root(new), At::root(old));
        let (spec, old_spec) = (root.get("spec"), old_root.get("spec"));
        for field in ["podCIDR", "providerID"] {
            if !old_spec.get(field).is_empty() && old_spec.get(field).value != spec.get(field).value {
                let words = "node updates may not change podCIDR except from \"\" to valid";
                let words = if field == "podCIDR" {
                    words
                } else {
                    "node updates may not change providerID except from \"\" to valid"
                };
                spec.get(field).forbidden(errors, words);
            }
        }
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        let value = at(object, &["spec", "unschedulable"]).and_then(Value::as_bool).unwrap_or(false);
        (path == "spec.unschedulable").then(|| value.to_string())
    }
}

fn default_status(status: &mut Object) {
    let capacity = status.get("capacity").filter(|capacity| capacity.is_object()).cloned();
    if let Some(capacity) = capacity {
        fill(status, "allocatable", capacity);
    }
    fill(status, "daemonEndpoints", json!({}));
    if let Some(endpoints) = sub(status, "daemonEndpoints") {
        fill(endpoints, "kubeletEndpoint", json!({"Port": 0}));
    }
    fill(status, "nodeInfo", json!({}));
    if let Some(info) = sub(status, "nodeInfo") {
        INFO.iter().for_each(|field| fill(info, field, ""));
    }
    for condition in each(status, "conditions") {
        for time in ["lastHeartbeatTime", "lastTransitionTime"] {
            condition.entry(time).or_insert(Value::Null);
        }
    }
}

fn taints(list: &At<'_>, errors: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for taint in list.items() {
        let key = taint.get("key");
        key.invalid_each(errors, names::qualified(key.str()));
        let value = taint.get("value");
        value.invalid_each(errors, names::label_value(value.str()));
        let effect = taint.get("effect");
        if effect.require(errors, "") {
            effect.one_of(errors, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        }
        let this = (text_at(taint.value, &["key"]), text_at(taint.value, &["effect"]));
        if seen.contains(&this) {
            let shown = metadata::shown_in_order(taint.value, &["key", "value", "effect", "timeAdded"]);
            let kind = crate::api::field::Kind::Duplicate;
            errors.push(Error::of(
                taint.path(),
                kind,
                format!("Duplicate value: {shown}: taints must be unique by key and effect pair"),
            ));
        }
        seen.push(this);
    }
}

/// Whether a node says that it is ready.
pub fn is_ready(node: &Value) -> bool {
    let conditions = list_at(node, &["status", "conditions"]);
    conditions.iter().any(|one| text_at(one, &["type"]) == "Ready" && text_at(one, &["status"]) == "True")
}
