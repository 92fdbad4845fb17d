//! Kinds with a few rules: Lease, ServiceAccount, PodTemplate, LimitRange, ControllerRevision, PriorityClass,
//! StorageClass, PodDisruptionBudget.

use serde_json::{Value, json};

use super::{
    field_value::FieldValue,
    json_object::{
        bump_generation_if_anything_changed, init_generation, keep_status_apart_and_bump_generation, made,
        nested_object_mut, object_items_mut, set, set_if_absent, set_text_if_empty, text,
    },
    names, pod, selector,
    workload::{self, int_or_percent, not_above_all},
};
use crate::{
    api::field::{FieldError, FieldErrors},
    registry::Strategy,
    schema::quantity::Quantity,
};

#[derive(Clone, Copy, Debug)]
pub struct LeaseStrategy;

#[derive(Clone, Copy, Debug)]
pub struct PodTemplateStrategy;

#[derive(Clone, Copy, Debug)]
pub struct LimitRangeStrategy;

#[derive(Clone, Copy, Debug)]
pub struct ControllerRevisionStrategy;

#[derive(Clone, Copy, Debug)]
pub struct PriorityClassStrategy;

#[derive(Clone, Copy, Debug)]
pub struct StorageClassStrategy;

#[derive(Clone, Copy, Debug)]
pub struct DisruptionBudgetStrategy;

impl Strategy for LeaseStrategy {
    fn default(&self, object: &mut Value) {
        made(object, "spec");
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        spec.get("leaseDurationSeconds").require_positive(errors);
        spec.get("leaseTransitions").require_non_negative(errors);
        let preferred = spec.get("preferredHolder");
        if !preferred.is_empty() && spec.get("strategy").is_empty() {
            preferred.report_forbidden(errors, "may only be specified if `strategy` is defined");
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }

    fn create_on_update(&self) -> bool {
        true
    }

    /// Leader election must never overwrite an unseen change.
    fn unconditional_update(&self) -> bool {
        false
    }
}

impl Strategy for PodTemplateStrategy {
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
        init_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _subresource: &str) {
        bump_generation_if_anything_changed(new, old);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        pod::validate_template(&root.get("template"), errors);
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }
}

/// Validates the quantities of a limit against each other.
fn limit_amounts(limit: &FieldValue<'_>, errors: &mut FieldErrors) {
    let lists = ["min", "max", "default", "defaultRequest"].map(|name| limit.get(name));
    let [min, max, default, request] = &lists;
    if limit.get("type").str() == "Pod" {
        for list in [default, request] {
            if !list.is_empty() {
                list.report_forbidden(errors, "may not be specified when `type` is 'Pod'");
            }
        }
    }
    let has_storage = |list: &FieldValue<'_>| list.value.get("storage").is_some();
    if limit.get("type").str() == "PersistentVolumeClaim" && !has_storage(min) && !has_storage(max) {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        limit.get("limits").report_required(errors, why);
    }
    // Of each pair, the first must not exceed the second. The error is reported at one list and shows the
    // quantity of one.
    for (low, high, words, place, shown) in [
        (min, max, "min value {} is greater than max value {}", min, min),
        (min, request, "min value {} is greater than default request value {}", request, request),
        (request, max, "default request value {} is greater than max value {}", request, request),
        (request, default, "default request value {} is greater than default limit value {}", request, request),
        (min, default, "min value {} is greater than default value {}", default, min),
        (default, max, "default value {} is greater than max value {}", default, max),
    ] {
        for (name, amount) in low.entries() {
            let Some(other) = high.value.get(name) else { continue };
            if Quantity::from_value(amount.value) > Quantity::from_value(other) {
                let text = |of: &Value| of.as_str().map_or_else(|| of.to_string(), str::to_owned);
                let why = words.replacen("{}", &text(amount.value), 1).replacen("{}", &text(other), 1);
                let shown = shown.value.get(name).unwrap_or(&Value::Null);
                errors.push(FieldError::invalid(place.key(name).path(), shown, &why));
            }
        }
    }
}

impl Strategy for LimitRangeStrategy {
    fn default(&self, object: &mut Value) {
        let Some(spec) = made(object, "spec") else { return };
        for limit in object_items_mut(spec, "limits").filter(|limit| text(limit, "type") == "Container") {
            for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
                let Some(known) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
                set_if_absent(limit, to, json!({}));
                if let Some(list) = nested_object_mut(limit, to) {
                    known.into_iter().for_each(|(name, amount)| set_if_absent(list, &name, amount));
                }
            }
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        for limit in spec.get("limits").items() {
            let kind = limit.get("type");
            kind.require(errors, "");
            limit_amounts(&limit, errors);
        }
        let kinds = || spec.get("limits").value.as_array().into_iter().flatten().filter_map(|limit| limit.get("type"));
        for (place, limit) in spec.get("limits").items().enumerate() {
            let kind = limit.get("type");
            if kinds().take(place).any(|known| known == kind.value) {
                kind.report_duplicate(errors);
            }
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        self.validate_create(new, errors);
    }

    fn create_on_update(&self) -> bool {
        true
    }
}

impl Strategy for ControllerRevisionStrategy {
    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        root.get("revision").require_non_negative(errors);
        root.get("data").require(errors, "data is mandatory");
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        root.get("revision").require_non_negative(errors);
        root.get("data").require_unchanged(errors, &old_root.get("data"));
    }
}

impl Strategy for PriorityClassStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(class) = object.as_object_mut() {
            set_text_if_empty(class, "preemptionPolicy", "PreemptLowerPriority");
            set_if_absent(class, "value", 0);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        init_generation(object);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        root.get("preemptionPolicy").require_one_of(errors, &["Never", "PreemptLowerPriority"]);
        let meta = root.get("metadata");
        let value = root.get("value");
        let name = meta.get("name");
        if name.str().starts_with("system-")
            && !["system-node-critical", "system-cluster-critical"].contains(&name.str())
        {
            let words = "priority class names with 'system-' prefix are reserved for system use only. error: ";
            name.report_forbidden(errors, &format!("{words}{} is not a known system priority class", name.str()));
        } else if value.int().is_some_and(|value| value > 1_000_000_000) && !name.str().starts_with("system-") {
            let words = "maximum allowed value of a user defined priority is 1000000000";
            value.report_forbidden(errors, words);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        if root.get("value").value != old_root.get("value").value {
            root.get("value").report_forbidden(errors, "may not be changed in an update.");
        }
        root.get("preemptionPolicy").require_unchanged(errors, &old_root.get("preemptionPolicy"));
    }
}

impl Strategy for StorageClassStrategy {
    fn default(&self, object: &mut Value) {
        if let Some(class) = object.as_object_mut() {
            set_text_if_empty(class, "reclaimPolicy", "Delete");
            set_text_if_empty(class, "volumeBindingMode", "Immediate");
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let provisioner = root.get("provisioner");
        if provisioner.require(errors, "") {
            provisioner.report_invalid_each(errors, names::qualified(&provisioner.str().to_lowercase()));
        }
        root.get("reclaimPolicy").require_one_of(errors, &["Delete", "Retain"]);
        root.get("volumeBindingMode").require_one_of(errors, &["Immediate", "WaitForFirstConsumer"]);
    }

    fn validate_update(&self, new: &Value, old: &Value, _subresource: &str, errors: &mut FieldErrors) {
        let root = FieldValue::root(new);
        let old_root = FieldValue::root(old);
        for field in ["provisioner", "parameters"] {
            if root.get(field).value != old_root.get(field).value {
                root.get(field).report_forbidden(errors, "updates to provisioner are forbidden.");
            }
        }
        for field in ["reclaimPolicy", "volumeBindingMode"] {
            root.get(field).require_unchanged(errors, &old_root.get(field));
        }
    }
}

impl Strategy for DisruptionBudgetStrategy {
    fn default(&self, object: &mut Value) {
        made(object, "spec");
        if let Some(status) = made(object, "status") {
            for count in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
                set_if_absent(status, count, 0);
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let zeros = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        set(object, "status", zeros);
        init_generation(object);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        keep_status_apart_and_bump_generation(new, old, subresource);
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        let least = spec.get("minAvailable");
        let most = spec.get("maxUnavailable");
        if least.is_set() && most.is_set() {
            let order = ["MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy"];
            let shown = spec.format_internal(&order.map(|field| (field, "null")));
            spec.report_invalid_as(errors, &shown, "minAvailable and maxUnavailable cannot be both set");
        }
        for amount in [&least, &most] {
            int_or_percent(amount, errors);
            not_above_all(amount, errors);
        }
        selector::validate(&spec.get("selector"), errors);
        let policy = spec.get("unhealthyPodEvictionPolicy");
        if policy.is_set() {
            policy.require_one_of(errors, &["AlwaysAllow", "IfHealthyBudget"]);
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, subresource: &str, errors: &mut FieldErrors) {
        if subresource == "status" {
            let root = FieldValue::root(new);
            let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
            return workload::non_negative(&root.get("status"), &counts, errors);
        }
        self.validate_create(new, errors);
    }

    /// kube-apiserver requires that the writer of a budget has seen the current one.
    fn unconditional_update(&self) -> bool {
        false
    }
}
