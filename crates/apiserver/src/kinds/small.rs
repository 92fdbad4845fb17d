//! Kinds with a few rules: Lease, ServiceAccount, PodTemplate, LimitRange, ControllerRevision, PriorityClass, StorageClass,
//! PodDisruptionBudget.

use serde_json::{Value, json};

use super::{
    at::At,
    metadata, names,
    object::{
        each, fill, fill_text, first_generation, keep_status_apart_and_count, made, next_generation_of_all, set, sub,
        text,
    },
    pod, selector,
    workload::{self, int_or_percent, not_above_all},
};
use crate::{api::field::Errors, registry::Strategy};

/// Rules of Lease.
#[derive(Clone, Copy, Debug)]
pub struct Lease;

/// Rules of PodTemplate.
#[derive(Clone, Copy, Debug)]
pub struct PodTemplate;

/// Rules of LimitRange.
#[derive(Clone, Copy, Debug)]
pub struct LimitRange;

/// Rules of ControllerRevision.
#[derive(Clone, Copy, Debug)]
pub struct ControllerRevision;

/// Rules of PriorityClass.
#[derive(Clone, Copy, Debug)]
pub struct PriorityClass;

/// Rules of StorageClass.
#[derive(Clone, Copy, Debug)]
pub struct StorageClass;

/// Rules of PodDisruptionBudget.
#[derive(Clone, Copy, Debug)]
pub struct DisruptionBudget;

impl Strategy for Lease {
    fn default(&self, object: &mut Value) {
        made(object, "spec");
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        spec.get("leaseDurationSeconds").positive(errors);
        spec.get("leaseTransitions").non_negative(errors);
        let preferred = spec.get("preferredHolder");
        if !preferred.is_empty() && spec.get("strategy").is_empty() {
            preferred.forbidden(errors, "may only be specified if `strategy` is defined");
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }

    fn create_on_update(&self) -> bool {
        true
    }

    /// Leader election must never overwrite what it has not seen.
    fn unconditional_update(&self) -> bool {
        false
    }
}

impl Strategy for PodTemplate {
    fn warnings(&self, object: &Value) -> Vec<String> {
        super::pod::template_warnings(object, &["template"])
    }

    fn warnings_on_update(&self, new: &Value, old: &Value) -> Vec<String> {
        super::pod::template_warnings_on_update(new, old, &["template"])
    }

    fn default(&self, object: &mut Value) {
        if let Some(template) = made(object, "template") {
            pod::default_template(template);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        next_generation_of_all(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        pod::validate_template(&root.get("template"), errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }
}

impl Strategy for LimitRange {
    fn default(&self, object: &mut Value) {
        let Some(spec) = made(object, "spec") else { return };
        for limit in each(spec, "limits").filter(|limit| text(limit, "type") == "Container") {
            for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
                let Some(known) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
                fill(limit, to, json!({}));
                if let Some(list) = sub(limit, to) {
                    known.into_iter().for_each(|(name, amount)| fill(list, &name, amount));
                }
            }
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        for limit in spec.get("limits").items() {
            let kind = limit.get("type");
            kind.require(errors, "");
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut Errors) {
        self.validate_create(new, errors);
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

impl Strategy for ControllerRevision {
    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        root.get("revision").non_negative(errors);
        root.get("data").require(errors, "data is mandatory");
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        let (root, old_root) = (At::root(new), At::root(old));
        root.get("revision").non_negative(errors);
        root.get("data").immutable(errors, &old_root.get("data"));
    }
}

impl Strategy for PriorityClass {
    fn default(&self, object: &mut Value) {
        if let Some(class) = object.as_object_mut() {
            fill_text(class, "preemptionPolicy", "PreemptLowerPriority");
            fill(class, "value", 0);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        first_generation(object);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        root.get("preemptionPolicy").one_of(errors, &["Never", "PreemptLowerPriority"]);
        let (meta, value) = (root.get("metadata"), root.get("value"));
        let name = meta.get("name");
        if name.str().starts_with("system-")
            && !["system-node-critical", "system-cluster-critical"].contains(&name.str())
        {
            let words = "priority class names with 'system-' prefix are reserved for system use only. error: ";
            name.forbidden(errors, &format!("{words}{} is not a known system priority class", name.str()));
        } else if value.int().is_some_and(|value| value > 1_000_000_000) && !name.str().starts_with("system-") {
            let words = "maximum allowed value of a user defined priority is 1000000000";
            value.forbidden(errors, words);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        let (root, old_root) = (At::root(new), At::root(old));
        if root.get("value").value != old_root.get("value").value {
            root.get("value").forbidden(errors, "may not be changed in an update.");
        }
        root.get("preemptionPolicy").immutable(errors, &old_root.get("preemptionPolicy"));
    }
}

impl Strategy for StorageClass {
    fn default(&self, object: &mut Value) {
        if let Some(class) = object.as_object_mut() {
            fill_text(class, "reclaimPolicy", "Delete");
            fill_text(class, "volumeBindingMode", "Immediate");
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let provisioner = root.get("provisioner");
        if provisioner.require(errors, "") {
            provisioner.invalid_each(errors, names::qualified(&provisioner.str().to_lowercase()));
        }
        root.get("reclaimPolicy").one_of(errors, &["Delete", "Retain"]);
        root.get("volumeBindingMode").one_of(errors, &["Immediate", "WaitForFirstConsumer"]);
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut Errors) {
        let (root, old_root) = (At::root(new), At::root(old));
        for field in ["provisioner", "parameters"] {
            if root.get(field).value != old_root.get(field).value {
                root.get(field).forbidden(errors, "updates to provisioner are forbidden.");
            }
        }
        for field in ["reclaimPolicy", "volumeBindingMode"] {
            root.get(field).immutable(errors, &old_root.get(field));
        }
    }
}

impl Strategy for DisruptionBudget {
    fn default(&self, object: &mut Value) {
        made(object, "spec");
        if let Some(status) = made(object, "status") {
            for count in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
                fill(status, count, 0);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let zeros = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        set(object, "status", zeros);
        first_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart_and_count(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut Errors) {
        let root = At::root(object);
        let spec = root.get("spec");
        let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
        if least.is_set() && most.is_set() {
            let order = ["minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy"];
            let shown = metadata::shown_in_order(spec.value, &order);
            spec.invalid_as(errors, &shown, "minAvailable and maxUnavailable cannot be both set");
        }
        for amount in [&least, &most] {
            int_or_percent(amount, errors);
            not_above_all(amount, errors);
        }
        selector::validate(&spec.get("selector"), errors);
        let policy = spec.get("unhealthyPodEvictionPolicy");
        if policy.is_set() {
            policy.one_of(errors, &["AlwaysAllow", "IfHealthyBudget"]);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut Errors) {
        if subresource == "status" {
            let root = At::root(new);
            let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
            return workload::non_negative(&root.get("status"), &counts, errors);
        }
        self.validate_create(new, errors);
    }

    /// kube-apiserver refuses to guess what a writer of a budget has seen.
    fn unconditional_update(&self) -> bool {
        false
    }
}
