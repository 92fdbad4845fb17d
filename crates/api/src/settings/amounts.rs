//! What a collector's container requests, and what it may use.
//!
//! What is not said is by default, and gives way to what is said: who raises a request raises the limit that he did not speak of, and who lowers a limit lowers the
//! request. So nothing that passes [`check`] is refused by an API server because of a default.

use std::collections::BTreeMap;

use super::quantity::value;
use crate::{
    Problem,
    v1alpha1::{Quantity, Resources},
    validate::refuse,
};

/// What one of the gateway may use at most.
pub(super) const GATEWAY_MEMORY: &str = "512Mi";
/// What one of the sticky tier may use at most: traces wait there, in memory.
pub(super) const STICKY_MEMORY: &str = "1Gi";
/// The process itself takes half of it. Less is most likely `512m` where `512Mi` was meant, which is half a byte.
const LEAST_MEMORY: f64 = 33554432.0;
/// What can be overcommitted.
const USUAL: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What a container requests, and what it may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amounts {
    /// What it requests.
    pub requests: BTreeMap<String, String>,
    /// What it may use.
    pub limits: BTreeMap<String, String>,
}

impl Amounts {
    /// There is no limit of CPU by default: it would slow down collectors on a node that has nothing else to do.
    pub(super) fn new(said: &Resources, memory: &str) -> Self {
        let mut amounts = Self { requests: texts(&said.requests), limits: texts(&said.limits) };
        for (name, default) in [("cpu", "100m"), ("memory", "128Mi")] {
            if !amounts.requests.contains_key(name) {
                let limit = amounts.limits.get(name).filter(|limit| is_less(limit, default));
                let request = limit.map_or(default, String::as_str).to_owned();
                amounts.requests.insert(name.to_owned(), request);
            }
        }
        if !amounts.limits.contains_key("memory") {
            let request = amounts.requests.get("memory").filter(|request| is_less(memory, request));
            let limit = request.map_or(memory, String::as_str).to_owned();
            amounts.limits.insert("memory".to_owned(), limit);
        }
        amounts
    }

    /// The bytes of memory that it may use.
    pub(super) fn memory(&self) -> Option<f64> {
        self.limits.get("memory").and_then(|amount| value(amount))
    }
}

fn texts(amounts: &BTreeMap<String, Quantity>) -> BTreeMap<String, String> {
    amounts.iter().map(|(name, amount)| (name.clone(), amount.0.clone())).collect()
}

fn is_less(one: &str, other: &str) -> bool {
    value(one).zip(value(other)).is_some_and(|(one, other)| one < other)
}

/// Checks that a pod could be made with them, and a collector run in it.
pub(super) fn check(path: &str, resources: &Resources, problems: &mut Vec<Problem>) {
    let Resources { requests, limits } = resources;
    for (field, amounts) in [("requests", requests), ("limits", limits)] {
        for (name, amount) in amounts {
            let path = format!("{path}.{field}[{name}]");
            if !is_resource(name) {
                refuse(
                    path,
                    "is nothing that a container has; that is cpu, memory, ephemeral-storage, or a name such as example.com/device",
                    problems,
                );
            } else if value(&amount.0).is_none() {
                refuse(path, "is no amount; write it as 100m, 2 or 512Mi", problems);
            }
        }
    }
    for (name, request) in requests {
        let (path, request, limit) = (format!("{path}.requests[{name}]"), value(&request.0), amount(limits, name));
        if request.zip(limit).is_some_and(|(request, limit)| request > limit) {
            refuse(path, "is more than its limit", problems);
        } else if name == "cpu" && request == Some(0.0) {
            refuse(path, "must be positive: collectors scale by what they use of it", problems);
        } else if !USUAL.contains(&name.as_str()) && request != limit {
            refuse(path, "must be the same as its limit", problems);
        }
    }
    if amount(limits, "memory").is_some_and(|limit| limit < LEAST_MEMORY) {
        refuse(format!("{path}.limits[memory]"), "is less than 32Mi, in which no collector runs", problems);
    }
}

fn amount(amounts: &BTreeMap<String, Quantity>, name: &str) -> Option<f64> {
    amounts.get(name).and_then(|amount| value(&amount.0))
}

/// Whether a container can have it: one of the usual names, or a name of somebody's domain.
fn is_resource(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let is_part = |part: &str| !part.is_empty() && part.len() <= 253 && part.chars().all(inner);
    let is_of_domain = |(domain, rest): (&str, &str)| is_part(domain) && rest.len() <= 63 && is_part(rest);
    USUAL.contains(&name)
        || name.strip_prefix("hugepages-").is_some_and(is_part)
        || name.split_once('/').is_some_and(is_of_domain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resources(json: serde_json::Value) -> Resources {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_not_said_follows_what_is() {
        let of = |json| {
            let Amounts { requests, limits } = Amounts::new(&resources(json), "512Mi");
            json!({"requests": requests, "limits": limits})
        };
        let default = json!({"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}});
        assert_eq!(of(json!({})), default);
        assert_eq!(of(json!({"requests": {"memory": "2Gi"}}))["limits"]["memory"], "2Gi", "the limit is raised");
        assert_eq!(of(json!({"limits": {"memory": "64Mi"}}))["requests"]["memory"], "64Mi", "the request is lowered");
        assert_eq!(of(json!({"limits": {"cpu": "50m"}}))["requests"]["cpu"], "50m");
        assert_eq!(of(json!({"limits": {"cpu": 2}}))["requests"]["cpu"], "100m");
    }

    #[test]
    fn what_no_pod_could_have_is_refused() {
        let refused = |json| {
            let mut problems = Vec::new();
            check("spec.resources", &resources(json), &mut problems);
            problems.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        for (json, words) in [
            (
                json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "512Mi"}}),
                "spec.resources.requests[memory]: is more than its limit",
            ),
            (json!({"limits": {"memory": "512m"}}), "spec.resources.limits[memory]: is less than 32Mi"),
            (json!({"limits": {"memory": "much"}}), "spec.resources.limits[memory]: is no amount"),
            (json!({"limits": {"ram": "1Gi"}}), "spec.resources.limits[ram]: is nothing that a container has"),
            (json!({"requests": {"cpu": "0"}}), "spec.resources.requests[cpu]: must be positive"),
            (json!({"requests": {"example.com/gpu": 1}}), "spec.resources.requests[example.com/gpu]: must be the same"),
        ] {
            let said = refused(json);
            assert!(said.len() == 1 && said[0].starts_with(words), "{said:?}");
        }
        let right = json!({"requests": {"cpu": "1", "example.com/gpu": 1}, "limits": {"memory": "1Gi", "example.com/gpu": "1"}});
        assert_eq!(refused(right), [""; 0]);
    }
}
