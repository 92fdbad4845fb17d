//! ResourceQuota: its names of resources, and which scopes they can have.
//!
//! Not done: the selector of scopes; nothing counts against a quota.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{keep_status_apart, set},
    names,
};
use crate::{
    api::field::{FieldError, FieldErrors},
    registry::Strategy,
    schema::quantity::Quantity,
};

/// Resources that containers use. All of them count for pods of any scope but `BestEffort`.
const COMPUTE: [&str; 6] = ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
/// The others that a quota can have without a domain.
const OTHERS: [&str; 13] = [
    "ephemeral-storage",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.ephemeral-storage",
    "persistentvolumeclaims",
    "configmaps",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "services.loadbalancers",
    "services.nodeports",
];
/// Resources that are counted in whole numbers.
const WHOLE: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

#[derive(Clone, Copy, Debug)]
pub struct ResourceQuotaStrategy;

impl Strategy for ResourceQuotaStrategy {
    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({}));
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        amounts(&spec.get("hard"), errors);
        scopes(&spec, errors);
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        if subresource == "status" {
            let status = root.get("status");
            amounts(&status.get("hard"), errors);
            return amounts(&status.get("used"), errors);
        }
        self.validate_create(new, errors);
        let sorted = |quota: &Value| {
            let scopes = quota.pointer("/spec/scopes").and_then(Value::as_array).into_iter().flatten();
            let mut scopes: Vec<String> = scopes.filter_map(Value::as_str).map(str::to_owned).collect();
            scopes.sort();
            scopes.dedup();
            scopes
        };
        if sorted(new) != sorted(old) {
            let spec = root.get("spec");
            spec.get("scopes").report_invalid(errors, "field is immutable");
        }
    }
}

fn amounts(list: &FieldValue<'_>, errors: &mut FieldErrors) {
    for (name, amount) in list.entries() {
        let mut refuse = |detail: &str| errors.push(FieldError::invalid(amount.path(), &name.into(), detail));
        let wrong = names::qualified(name);
        wrong.iter().for_each(|detail| refuse(detail));
        let is_huge = ["hugepages-", "requests.hugepages-"].iter().any(|prefix| name.starts_with(prefix));
        if wrong.is_empty() && !name.contains('/') && !is_huge && !is_standard(name) {
            if name != "storage" {
                refuse("must be a standard resource type or fully qualified");
            }
            refuse("must be a standard resource for quota");
        }
        let quantity = Quantity::from_value(amount.value);
        if quantity.is_some_and(Quantity::is_negative) {
            amount.report_invalid(errors, "must be greater than or equal to 0");
        }
        let is_whole = name.contains('/') || WHOLE.contains(&name);
        if is_whole && quantity.is_some_and(|quantity| !quantity.is_integer()) {
            amount.report_invalid(errors, "must be an integer");
        }
    }
}

fn is_standard(name: &str) -> bool {
    COMPUTE.contains(&name) || OTHERS.contains(&name)
}

fn scopes(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    let scopes = spec.get("scopes");
    let hard = spec.get("hard");
    for scope in scopes.items() {
        if !SCOPES.contains(&scope.str()) {
            scopes.report_invalid(errors, "unsupported scope");
        }
        for (name, _) in hard.entries().filter(|(name, _)| is_standard(name)) {
            let allowed = match scope.str() {
                "BestEffort" => name == "pods",
                "Terminating" | "NotTerminating" | "NotBestEffort" | "PriorityClass" | "CrossNamespacePodAffinity" => {
                    name == "pods" || COMPUTE.contains(&name)
                }
                "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&name),
                _ => true,
            };
            if !allowed {
                scopes.report_invalid(errors, "unsupported scope applied to resource");
            }
        }
    }
    for pair in [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]] {
        if pair.iter().all(|wanted| scopes.items().any(|scope| scope.str() == *wanted)) {
            scopes.report_invalid(errors, "conflicting scopes");
        }
    }
}
