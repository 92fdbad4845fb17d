//! What a LimitRange does to the pods and claims of its namespace: defaults for containers, and bounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::json_object::{list_at, object_member_mut, text_at, value_at};
use crate::{
    api::meta::{child_mut, meta_mut},
    schema::quantity::Quantity,
};

/// Says which resources have been set, as kube-apiserver does.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Amounts of resources by name.
type Amounts = BTreeMap<String, Quantity>;

/// Sets the resources that containers of a new pod omit.
pub fn set_defaults(pod: &mut Value, range: &Value) {
    let limits = list_at(range, &["spec", "limits"]).iter().filter(|limit| text_at(limit, &["type"]) == "Container");
    let mut defaults = [("requests", json!({})), ("limits", json!({}))];
    for limit in limits {
        for ((_, all), field) in defaults.iter_mut().zip(["defaultRequest", "default"]) {
            let given = limit.get(field).and_then(Value::as_object).into_iter().flatten();
            given.for_each(|(name, amount)| all[name.as_str()] = amount.clone());
        }
    }
    let mut done = Vec::new();
    let Some(spec) = object_member_mut(pod, "spec") else { return };
    for (list, sort) in [("containers", "container"), ("initContainers", "init container")] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            for ((field, all), word) in defaults.iter().zip(["request", "limit"]) {
                let set = merge_amounts(container, field, all);
                if !set.is_empty() {
                    done.push(format!("{} {word} for {sort} {name}", set.join(", ")));
                }
            }
        }
    }
    if done.is_empty() {
        return;
    }
    let annotations = meta_mut(pod).and_then(|meta| child_mut(meta, "annotations"));
    if let Some(annotations) = annotations {
        annotations.insert(ANNOTATION.to_owned(), format!("LimitRanger plugin set: {}", done.join("; ")).into());
    }
}

/// Sets the amounts that a container omits. Returns their names.
fn merge_amounts(container: &mut serde_json::Map<String, Value>, field: &str, all: &Value) -> Vec<String> {
    let all = all.as_object().into_iter().flatten();
    let given = container.get("resources").and_then(|resources| resources.get(field));
    let missing = all.filter(|(name, _)| given.and_then(|given| given.get(name.as_str())).is_none());
    let missing: Vec<(String, Value)> = missing.map(|(name, amount)| (name.clone(), amount.clone())).collect();
    let Some(amounts) = child_mut(container, "resources")
        .and_then(|resources| if missing.is_empty() { None } else { child_mut(resources, field) })
    else {
        return Vec::new();
    };
    let names = missing.iter().map(|(name, _)| name.clone()).collect();
    amounts.extend(missing);
    names
}

/// What a pod or a claim (`plural`) has against a LimitRange; none if there is nothing.
pub fn violation(object: &Value, plural: &str, range: &Value) -> Option<String> {
    let mut found = Vec::new();
    for limit in list_at(range, &["spec", "limits"]) {
        match (plural, text_at(limit, &["type"])) {
            ("pods", sort @ "Container") => {
                for list in ["containers", "initContainers"] {
                    for container in list_at(object, &["spec", list]) {
                        let of = |field: &str| amounts(value_at(container, &["resources", field]));
                        check_compute(limit, sort, &of("requests"), &of("limits"), &mut found);
                    }
                }
            }
            ("pods", sort @ "Pod") => {
                let of = |field: &str| pod_amounts(object, field);
                check_compute(limit, sort, &of("requests"), &of("limits"), &mut found);
            }
            ("persistentvolumeclaims", sort @ "PersistentVolumeClaim") => {
                let requests = amounts(value_at(object, &["spec", "resources", "requests"]));
                for (name, bound) in amounts(limit.get("min")) {
                    found.extend(minimum(sort, &name, bound, requests.get(&name), None));
                }
                for (name, bound) in amounts(limit.get("max")) {
                    found.extend(maximum(sort, &name, bound, "request", requests.get(&name), None));
                }
            }
            _ => {}
        }
    }
    found.dedup();
    match found.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        _ => Some(format!("[{}]", found.join(", "))),
    }
}

fn check_compute(limit: &Value, sort: &str, requests: &Amounts, limits: &Amounts, found: &mut Vec<String>) {
    for (name, bound) in amounts(limit.get("min")) {
        found.extend(minimum(sort, &name, bound, requests.get(&name), limits.get(&name)));
    }
    for (name, bound) in amounts(limit.get("max")) {
        found.extend(maximum(sort, &name, bound, "limit", limits.get(&name), requests.get(&name)));
    }
    for (name, bound) in amounts(limit.get("maxLimitRequestRatio")) {
        found.extend(ratio(sort, &name, bound, requests.get(&name), limits.get(&name)));
    }
}

fn minimum(
    sort: &str,
    name: &str,
    bound: Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let rule = format!("minimum {name} usage per {sort} is {bound}");
    match (request, limit) {
        (None, _) => Some(format!("{rule}.  No request is specified")),
        (Some(request), _) if *request < bound => Some(format!("{rule}, but request is {request}")),
        (_, Some(limit)) if *limit < bound => Some(format!("{rule}, but limit is {limit}")),
        _ => None,
    }
}

/// `needed` is the amount that must be given, `what` its name; `other` is a request that must fit as well.
fn maximum(
    sort: &str,
    name: &str,
    bound: Quantity,
    what: &str,
    needed: Option<&Quantity>,
    other: Option<&Quantity>,
) -> Option<String> {
    let rule = format!("maximum {name} usage per {sort} is {bound}");
    match (needed, other) {
        (None, _) => Some(format!("{rule}.  No {what} is specified")),
        (Some(needed), _) if *needed > bound => Some(format!("{rule}, but {what} is {needed}")),
        (_, Some(request)) if *request > bound => Some(format!("{rule}, but request is {request}")),
        _ => None,
    }
}

fn ratio(
    sort: &str,
    name: &str,
    bound: Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let rule = format!("{name} max limit to request ratio per {sort} is {bound}");
    let given = |amount: Option<&Quantity>| amount.filter(|amount| !amount.is_zero()).map(|amount| amount.to_f64());
    let Some(request) = given(request) else {
        return Some(format!("{rule}, but no request is specified or request is 0"));
    };
    let Some(limit) = given(limit) else { return Some(format!("{rule}, but no limit is specified or limit is 0")) };
    let found = limit / request;
    (found > bound.to_f64()).then(|| format!("{rule}, but provided ratio is {found:.6}"))
}

fn amounts(list: Option<&Value>) -> Amounts {
    let list = list.and_then(Value::as_object).into_iter().flatten();
    list.filter_map(|(name, amount)| Some((name.clone(), Quantity::from_value(amount)?))).collect()
}

/// What a pod needs at once: all containers, or the largest of those that run before them.
fn pod_amounts(pod: &Value, field: &str) -> Amounts {
    let mut total = Amounts::new();
    for container in list_at(pod, &["spec", "containers"]) {
        add(&mut total, &amounts(value_at(container, &["resources", field])));
    }
    let mut sidecars = Amounts::new();
    let mut largest = Amounts::new();
    for container in list_at(pod, &["spec", "initContainers"]) {
        let own = amounts(value_at(container, &["resources", field]));
        let at_once = if text_at(container, &["restartPolicy"]) == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            sidecars.clone()
        } else {
            let mut at_once = own;
            add(&mut at_once, &sidecars);
            at_once
        };
        raise(&mut largest, &at_once);
    }
    raise(&mut total, &largest);
    let whole = amounts(value_at(pod, &["spec", "resources", field]));
    total.extend(whole.into_iter().filter(|(name, _)| ["cpu", "memory"].contains(&name.as_str())));
    total
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        total.entry(name.clone()).and_modify(|sum| *sum = sum.saturating_add(*amount)).or_insert(*amount);
    }
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        most.entry(name.clone()).and_modify(|most| *most = (*most).max(*amount)).or_insert(*amount);
    }
}
