//! Requests and limits of a collector's container.
//!
//! Defaults adjust to what is set: a request above the default limit raises that limit, and a limit below the
//! default request lowers that request. So nothing that passes [`check`] is refused by an API server because of
//! a default.

use std::collections::BTreeMap;

use super::quantity::parse_quantity;
use crate::{
    SpecProblem,
    v1alpha1::{ContainerResources, ResourceQuantity},
    validate::refuse,
};

/// The default memory limit of a gateway collector.
pub(super) const GATEWAY_MEMORY: &str = "512Mi";
/// The default memory limit of a sticky collector: traces wait there, in memory.
pub(super) const STICKY_MEMORY: &str = "1Gi";
/// The default memory limit of a collector on a node, which holds only what is on its way: the logs are on disk.
pub(super) const AGENT_MEMORY: &str = "256Mi";
/// The process itself takes half of it. A smaller limit is most likely `512m` instead of `512Mi`, which is half
/// a byte.
const MIN_MEMORY_BYTES: f64 = 33554432.0;
/// Resources that can be overcommitted.
const NATIVE_RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// The requests and limits of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveResources {
    /// The resources that it requests.
    pub requests: BTreeMap<String, String>,
    /// The resources that it may use.
    pub limits: BTreeMap<String, String>,
}

impl EffectiveResources {
    /// There is no default CPU limit: it would slow down collectors on a node that has nothing else to do.
    pub(super) fn new(said: &ContainerResources, memory: &str) -> Self {
        let mut amounts = Self { requests: format_quantities(&said.requests), limits: format_quantities(&said.limits) };
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

    /// The memory limit in bytes.
    pub(super) fn memory(&self) -> Option<f64> {
        self.limits.get("memory").and_then(|amount| parse_quantity(amount))
    }
}

fn format_quantities(amounts: &BTreeMap<String, ResourceQuantity>) -> BTreeMap<String, String> {
    amounts.iter().map(|(name, amount)| (name.clone(), amount.0.clone())).collect()
}

fn is_less(one: &str, other: &str) -> bool {
    parse_quantity(one).zip(parse_quantity(other)).is_some_and(|(one, other)| one < other)
}

/// Checks that a pod with these resources can be created, and a collector can run in it.
pub(super) fn check(path: &str, resources: &ContainerResources, problems: &mut Vec<SpecProblem>) {
    let ContainerResources { requests, limits } = resources;
    for (field, amounts) in [("requests", requests), ("limits", limits)] {
        for (name, amount) in amounts {
            let path = format!("{path}.{field}[{name}]");
            if !is_resource(name) {
                refuse(
                    path,
                    "is not a container resource; use cpu, memory, ephemeral-storage, or a name such as example.com/device",
                    problems,
                );
            } else if parse_quantity(&amount.0).is_none() {
                refuse(path, "is not a quantity; write it as 100m, 2 or 512Mi", problems);
            }
        }
    }
    for (name, request) in requests {
        let (path, request, limit) =
            (format!("{path}.requests[{name}]"), parse_quantity(&request.0), amount(limits, name));
        if request.zip(limit).is_some_and(|(request, limit)| request > limit) {
            refuse(path, "is more than its limit", problems);
        } else if name == "cpu" && request == Some(0.0) {
            refuse(path, "must be positive: the autoscaler measures CPU utilization in percent of it", problems);
        } else if !NATIVE_RESOURCES.contains(&name.as_str()) && request != limit {
            refuse(path, "must be the same as its limit", problems);
        }
    }
    if amount(limits, "memory").is_some_and(|limit| limit < MIN_MEMORY_BYTES) {
        refuse(format!("{path}.limits[memory]"), "is less than 32Mi, which is too little for a collector", problems);
    }
}

fn amount(amounts: &BTreeMap<String, ResourceQuantity>, name: &str) -> Option<f64> {
    amounts.get(name).and_then(|amount| parse_quantity(&amount.0))
}

/// Whether a container can have a resource of this name: a native one, or one with a domain.
fn is_resource(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let is_part = |part: &str| !part.is_empty() && part.len() <= 253 && part.chars().all(inner);
    let is_of_domain = |(domain, rest): (&str, &str)| is_part(domain) && rest.len() <= 63 && is_part(rest);
    NATIVE_RESOURCES.contains(&name)
        || name.strip_prefix("hugepages-").is_some_and(is_part)
        || name.split_once('/').is_some_and(is_of_domain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resources(json: serde_json::Value) -> ContainerResources {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_not_said_follows_what_is() {
        let of = |json| {
            let EffectiveResources { requests, limits } = EffectiveResources::new(&resources(json), "512Mi");
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
            (json!({"limits": {"memory": "much"}}), "spec.resources.limits[memory]: is not a quantity"),
            (json!({"limits": {"ram": "1Gi"}}), "spec.resources.limits[ram]: is not a container resource"),
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
