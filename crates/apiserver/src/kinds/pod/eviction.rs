//! `pods/eviction`: a deletion that asks the disruption budgets first.

use http::StatusCode;
use serde_json::{Value, json};

use crate::{
    api::{
        GroupResource, Status,
        meta::Meta,
        status::{Cause, Details},
    },
    kinds::{
        object::{list_at, made, number_at, text_at},
        selector,
    },
};

/// What to write before the pod is deleted.
#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    /// No budget stands in the way.
    Free,
    /// This PodDisruptionBudget, with one disruption less (to be written through `status`).
    Charge(Value),
}

/// Whether a pod may be evicted, given the budgets of its namespace. `now` is RFC 3339.
///
/// # Errors
/// A Status with 429 when a budget does not allow it, 500 when more than one budget has a say.
pub fn evict(pod: &Value, budgets: &[Value], now: &str) -> Result<Budget, Status> {
    let phase = text_at(pod, &["status", "phase"]);
    if pod.is_deleting() || ["Succeeded", "Failed", "Pending"].contains(&phase) {
        return Ok(Budget::Free);
    }
    let mut mine = budgets.iter().filter(|budget| covers(budget, pod));
    let Some(budget) = mine.next() else { return Ok(Budget::Free) };
    if mine.next().is_some() {
        let words = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::internal(words));
    }
    if unhealthy_may_go(pod, budget) {
        return Ok(Budget::Free);
    }
    charge(pod, budget, now).map(Budget::Charge)
}

fn covers(budget: &Value, pod: &Value) -> bool {
    let selector = budget.get("spec").and_then(|spec| spec.get("selector"));
    budget.namespace() == pod.namespace()
        && selector.is_some_and(|selector| selector::matches(selector, pod.meta("labels")))
}

/// A pod that is not ready counts for nothing, if the budget says so or has enough others.
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

fn charge(pod: &Value, budget: &Value, now: &str) -> Result<Value, Status> {
    let name = budget.name();
    if number_at(budget, &["status", "observedGeneration"]) < budget.generation() {
        let words = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(words, Some(10)));
    }
    let allowed = number_at(budget, &["status", "disruptionsAllowed"]);
    if allowed < 0 {
        let resource = GroupResource::new("policy", "poddisruptionbudget");
        return Err(Status::forbidden(&resource, name, "pdb disruptions allowed is negative"));
    }
    if allowed == 0 {
        return Err(too_many(why_not(budget), None));
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

fn why_not(budget: &Value) -> String {
    let name = budget.name();
    let (current, desired) = healthy(budget);
    if current <= desired {
        return format!("The disruption budget {name} needs {desired} healthy pods and has {current} currently");
    }
    format!("The disruption budget {name} does not allow evicting pods currently")
}

fn too_many(why: String, retry_after: Option<u32>) -> Status {
    let words = "Cannot evict pod as it would violate the pod's disruption budget.";
    let cause = Cause { reason: "DisruptionBudget".to_owned(), message: why, ..Cause::default() };
    let details = Details { causes: vec![cause], ..Details::default() };
    let mut status = Status::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", words).with(details);
    status.retry_after = retry_after;
    status
}
