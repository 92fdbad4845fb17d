//! Pod: its defaults, the fields that the server sets, valid changes, and its subresources `binding` and
//! `eviction`.
//!
//! These of kube-apiserver's admission plugins are included: the tolerations of failed nodes, the priority (of
//! the built-in classes), and, if ServiceAccounts are enabled, the injection of the ServiceAccount.

mod binding;
mod container;
mod defaults;
mod env;
mod eviction;
mod probe;
mod scheduling;
mod security;
mod service_account;
mod spec;
mod update;
mod volume;
mod warnings;

use serde_json::{Value, json};

pub use self::{
    binding::bind,
    eviction::{BudgetUpdate, check_eviction},
    service_account::{DEFAULT_SERVICE_ACCOUNT as DEFAULT_ACCOUNT, inject_service_account, service_account_name},
};
pub(super) use self::{
    defaults::template as default_template,
    probe::port,
    scheduling::node_selector,
    spec::validate_template,
    volume::sources as volume_sources,
    warnings::{
        POD_NAMES, host_name as host_name_warnings, template as template_warnings,
        template_on_update as template_warnings_on_update,
    },
};
use super::{
    field_value::FieldValue,
    json_object::{
        JsonObject, bump_generation_if_changed, init_generation, keep_all_but_status, list_at, made, number_at,
        object_member_mut, restore_field, set, set_if_absent, text_at, value_at,
    },
    metadata,
};
use crate::{
    api::{
        field::FieldErrors,
        meta::{MetaAccessor, remove_meta},
    },
    registry::Strategy,
    schema::quantity::Quantity,
};

#[derive(Clone, Copy, Debug)]
pub struct Pod;

impl Strategy for Pod {
    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings::pod(object)
    }

    /// Users change workloads and not their pods, which controllers change often.
    fn warnings_on_update(&self, _new: &Value, _old: &Value) -> Vec<String> {
        Vec::new()
    }

    fn default(&self, object: &mut Value) {
        if let Some(spec) = made(object, "spec") {
            defaults::pod(spec);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        init_generation(object);
        let status = json!({"phase": "Pending", "qosClass": qos_class(object)});
        set(object, "status", status);
        if !list_at(object, &["spec", "schedulingGates"]).is_empty()
            && let Some(status) = object_member_mut(object, "status")
        {
            status.insert("conditions".to_owned(), scheduling_gated_condition());
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, subresource: &str) {
        match subresource {
            "status" => prepare_status(new, old),
            _ => {
                restore_field(new, old, "status");
                if let Some(spec) = object_member_mut(new, "spec") {
                    tolerate_failing_nodes(spec);
                    keep_priority(spec, old);
                }
                bump_generation_if_changed(new, old, &["spec"]);
            }
        }
    }

    fn validate_create(&self, object: &Value, errors: &mut FieldErrors) {
        let root = FieldValue::root(object);
        let spec = root.get("spec");
        spec::validate(&spec, errors);
        image_whitespace(&spec, errors);
        if !spec.get("ephemeralContainers").is_empty() {
            spec.get("ephemeralContainers").report_forbidden(errors, "cannot be set on create");
        }
        if !spec.get("schedulingGates").is_empty() && !spec.get("nodeName").is_empty() {
            spec.get("nodeName").report_forbidden(errors, "cannot be set until all schedulingGates have been cleared");
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, subresource: &str, errors: &mut FieldErrors) {
        match subresource {
            "status" => update::validate_status(new, old, errors),
            "ephemeralcontainers" => update::validate_ephemeral(new, old, errors),
            "resize" => update::validate_resize(new, old, errors),
            _ => {
                let root = FieldValue::root(new);
                let spec = root.get("spec");
                spec::validate(&spec, errors);
                image_whitespace(&spec, errors);
                update::validate(new, old, errors);
            }
        }
    }

    fn grace_period(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        let done = ["Failed", "Succeeded"].contains(&text_at(object, &["status", "phase"]));
        if text_at(object, &["spec", "nodeName"]).is_empty() || done {
            return Some(0);
        }
        let seconds = asked.unwrap_or_else(|| number_at(object, &["spec", "terminationGracePeriodSeconds"]));
        Some(if seconds < 0 { 1 } else { seconds })
    }

    fn field_value(&self, object: &Value, path: &str) -> Option<String> {
        match path {
            "spec.hostNetwork" => {
                let host = value_at(object, &["spec", "hostNetwork"]).and_then(Value::as_bool).unwrap_or(false);
                Some(host.to_string())
            }
            "status.podIP" | "status.podIPs" => {
                let first = list_at(object, &["status", "podIPs"]).first();
                Some(first.map_or("", |ip| text_at(ip, &["ip"])).to_owned())
            }
            _ => {
                let (section, field) = path.split_once('.')?;
                Some(text_at(object, &[section, field]).to_owned())
            }
        }
    }
}

/// Restores the fields that a write through `status` may not change.
fn prepare_status(new: &mut Value, old: &Value) {
    keep_all_but_status(new, old);
    metadata::restore_meta_field(new, old, "ownerReferences");
    if !old.is_deleting() {
        remove_meta(new, "deletionTimestamp");
    }
    let class = text_at(old, &["status", "qosClass"]).to_owned();
    if let Some(status) = made(new, "status")
        && !class.is_empty()
    {
        set_if_absent(status, "qosClass", class);
    }
}

fn image_whitespace(spec: &FieldValue<'_>, errors: &mut FieldErrors) {
    for list in ["containers", "initContainers"] {
        for container in spec.get(list).items() {
            let image = container.get("image");
            if !image.is_empty() && image.str().trim() != image.str() {
                image.report_invalid(errors, "must not have leading or trailing whitespace");
            }
        }
    }
}

fn scheduling_gated_condition() -> Value {
    json!([{
        "type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": null,
        "lastTransitionTime": null, "message": "Scheduling is blocked due to non-empty scheduling gates",
    }])
}

/// A pod tolerates a failed node for five minutes, unless it has a toleration of its own.
fn tolerate_failing_nodes(spec: &mut JsonObject) {
    set_if_absent(spec, "tolerations", json!([]));
    let Some(list) = spec.get_mut("tolerations").and_then(Value::as_array_mut) else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let told = list.iter().any(|one| {
            ["", key].contains(&text_at(one, &["key"])) && ["", "NoExecute"].contains(&text_at(one, &["effect"]))
        });
        if !told {
            list.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

/// Admits a new pod: adds tolerations of failed nodes, and the priority of its class.
///
/// # Errors
/// If the pod has another priority than its class.
pub fn admit_priority(pod: &mut Value, class: Option<&Value>) -> Result<(), String> {
    let Some(spec) = object_member_mut(pod, "spec") else { return Ok(()) };
    tolerate_failing_nodes(spec);
    let priority = class.map_or(0, |class| number_at(class, &["value"]));
    let policy = class.map_or("PreemptLowerPriority", |class| text_at(class, &["preemptionPolicy"]));
    let computed = |what: String, computed: &str| {
        let by = format!("priority admission controller computed {computed} from the given PriorityClass name");
        Err(format!("the {what} must not be provided in pod spec; {by}"))
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return computed(format!("integer value of priority ({given})"), &priority.to_string());
    }
    let given = spec.get("preemptionPolicy").and_then(Value::as_str).unwrap_or_default();
    if !given.is_empty() && given != policy {
        return computed(format!("string value of PreemptionPolicy ({given})"), policy);
    }
    if let Some(class) = class {
        spec.insert("priorityClassName".to_owned(), class.name().into());
    }
    spec.insert("priority".to_owned(), priority.into());
    spec.insert("preemptionPolicy".to_owned(), policy.into());
    Ok(())
}

/// A replacement of a pod may omit its priority.
fn keep_priority(spec: &mut JsonObject, old: &Value) {
    for field in ["priority", "preemptionPolicy"] {
        if let Some(given) = value_at(old, &["spec", field]) {
            set_if_absent(spec, field, given.clone());
        }
    }
}

/// The quality-of-service class of a pod.
fn qos_class(pod: &Value) -> &'static str {
    let lists = [list_at(pod, &["spec", "containers"]), list_at(pod, &["spec", "initContainers"])];
    let mut asks = false;
    let mut guaranteed = true;
    for container in lists.into_iter().flatten() {
        for name in ["cpu", "memory"] {
            let amount = |list: &str| {
                let amount = value_at(container, &["resources", list, name]).and_then(Quantity::from_value);
                amount.filter(|amount| *amount > Quantity::ZERO)
            };
            let request = amount("requests");
            let limit = amount("limits");
            asks |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (asks, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
