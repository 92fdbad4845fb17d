//! `pods/eviction`: a deletion that the disruption budgets must allow.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    api::{
        GroupResource, StatusError,
        meta::MetaAccessor,
        status::{StatusCause, StatusDetails},
    },
    kinds::{
        json_object::{list_at, made, number_at, text_at},
        selector,
    },
};

/// The update of a budget before the pod is deleted.
#[derive(Clone, Debug, PartialEq)]
pub enum BudgetUpdate {
    /// No budget applies.
    NotNeeded,
    /// This PodDisruptionBudget, with one allowed disruption less (to be written through `status`).
    Decrement(Value),
}

/// Whether a pod may be evicted, given the budgets of its namespace. `now` is RFC 3339.
///
/// # Errors
/// 429 if a budget does not allow it, 500 if more than one budget applies.
pub fn check_eviction(pod: &Value, budgets: &[Value], now: &str) -> Result<BudgetUpdate, StatusError> {
    let phase = text_at(pod, &["status", "phase"]);
    if pod.is_deleting() || ["Succeeded", "Failed", "Pending"].contains(&phase) {
        return Ok(BudgetUpdate::NotNeeded);
    }
    let mut mine = budgets.iter().filter(|budget| covers(budget, pod));
    let Some(budget) = mine.next() else { return Ok(BudgetUpdate::NotNeeded) };
    if mine.next().is_some() {
        let words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(StatusError::internal(words));
    }
    if unhealthy_may_go(pod, budget) {
        return Ok(BudgetUpdate::NotNeeded);
    }
    decrement_disruptions_allowed(pod, budget, now).map(BudgetUpdate::Decrement)
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = budget.get("spec").and_then(|spec| spec.get("selector"));
    budget.namespace() == pod.namespace()
        && selector.is_some_and(|selector| selector::matches(selector, pod.meta("labels")))
}

/// Whether a pod that is not ready may be evicted: if the budget says so or has enough healthy ones.
fn unhealthy_may_go(pod: &Value, budget: &Value) -> bool {
    let conditions = list_at(pod, &["status", "conditions"]);
    let ready = conditions.iter().any(|one| text_at(one, &["type"]) == "Ready" && text_at(one, &["status"]) == "True");
    let always = text_at(budget, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
    let (current, desired) = healthy(budget);
    !ready && (always || (current >= desired && desired > 0))
}

fn healthy(budget: &Value) -> (i64, i64) {
    (number_at(budget, &["status", "currentHealthy"]), number_at(budget, &["status", "desiredHealthy"]))
}

fn decrement_disruptions_allowed(pod: &Value, budget: &Value, now: &str) -> Result<Value, StatusError> {
    let name = budget.name();
    if number_at(budget, &["status", "observedGeneration"]) < budget.generation() {
        let words = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(words, Some(10)));
    }
    let allowed = number_at(budget, &["status", "disruptionsAllowed"]);
    if allowed < 0 {
        let resource = GroupResource::new("policy", "poddisruptionbudget");
        return Err(StatusError::forbidden(&resource, name, "pdb disruptions allowed is negative"));
    }
    if allowed == 0 {
        return Err(too_many(violation_message(budget), None));
    }
    let mut charged = budget.clone();
    if let Some(status) = made(&mut charged, "status") {
        status.insert("disruptionsAllowed".to_owned(), (allowed - 1).into());
        let gone = status.entry("disruptedPods").or_insert_with(|| json!({}));
        if let Some(gone) = gone.as_object_mut() {
            gone.insert(pod.name().to_owned(), now.into());
        }
    }
    Ok(charged)
}

fn violation_message(budget: &Value) -> String {
    let name = budget.name();
    let (current, desired) = healthy(budget);
    if current <= desired {
        return format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
    }
    format!("The disruption budget {name} does not allow evicting pods currently")
}

fn too_many(why: String, retry_after: Option<u32>) -> StatusError {
    let words = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = StatusCause { reason: "DisruptionBudget".to_owned(), message: why, ..StatusCause::default() };
    let details = StatusDetails { causes: vec![cause], ..StatusDetails::default() };
    let mut status = StatusError::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", words).with(details);
    status.retry_after = retry_after;
    status
}
