//! The conditions that a node writes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus};

use super::{Facts, has_begun, is_sidecar, time, wildcard_message};

/// Says that a program listens where it would get in the way of all others.
pub const WILDCARD: &str = "WildcardBind";

/// What is said of a condition.
#[derive(Debug, Default)]
struct Says {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl Says {
    fn yes() -> Self {
        Self { holds: true, ..Self::default() }
    }

    fn no(reason: &'static str) -> Self {
        Self { reason: Some(reason), ..Self::default() }
    }

    fn because(mut self, message: String) -> Self {
        self.message = Some(message);
        self
    }
}

/// Puts all of them into the status, for a pod that is in this phase or about to be.
pub(super) fn set(status: &mut PodStatus, phase: &str, pod: &Pod, facts: &Facts, now: Timestamp) {
    let Some(spec) = pod.spec.as_ref() else { return };
    let containers = containers_ready(spec, facts, phase);
    let ready = ready(spec, status, facts, phase);
    let ends = facts.finished || matches!(phase, "Succeeded" | "Failed");
    let prepared = Says { holds: facts.prepared && !ends, ..Says::default() };
    let has = |kind: &str| status.conditions.iter().flatten().any(|condition| condition.type_ == kind);
    let (scheduled, warned) = (has("PodScheduled"), has(WILDCARD));
    let mut put = |kind: &str, says: Says| put(status, pod.metadata.generation, kind, says, now);
    put("PodReadyToStartContainers", prepared);
    put("Initialized", initialized(spec, facts, phase));
    put("Ready", ready);
    put("ContainersReady", containers);
    if !facts.wildcards.is_empty() || warned {
        put(WILDCARD, wildcard(facts));
    }
    if !scheduled {
        // It came with the name of its node.
        put("PodScheduled", Says::yes());
    }
}

fn put(status: &mut PodStatus, generation: Option<i64>, kind: &str, says: Says, now: Timestamp) {
    let conditions = status.conditions.get_or_insert_default();
    let value = if says.holds { "True" } else { "False" };
    let old = conditions.iter_mut().find(|condition| condition.type_ == kind);
    let since = old.as_ref().filter(|old| old.status == value).and_then(|old| old.last_transition_time.clone());
    let new = PodCondition {
        type_: kind.to_owned(),
        status: value.to_owned(),
        reason: says.reason.map(str::to_owned),
        message: says.message,
        last_probe_time: None,
        last_transition_time: since.or_else(|| Some(time(now))),
        observed_generation: generation,
    };
    match old {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

fn wildcard(facts: &Facts) -> Says {
    let told = facts.wildcards.iter().map(|(container, addresses)| wildcard_message(container, addresses));
    let told: Vec<String> = told.collect();
    match told.is_empty() {
        true => Says::default(),
        false => Says { holds: true, reason: Some("ListensOnAllAddresses"), message: Some(told.join("; ")) },
    }
}

fn containers_ready(spec: &PodSpec, facts: &Facts, phase: &str) -> Says {
    match phase {
        "Succeeded" => return Says::no("PodCompleted"),
        "Failed" => return Says::no("PodFailed"),
        _ => {}
    }
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let (mut unknown, mut unready) = (Vec::new(), Vec::new());
    for container in sidecars.chain(&spec.containers) {
        match facts.containers.get(&container.name) {
            None => unknown.push(container.name.as_str()),
            Some(status) if !status.ready => unready.push(container.name.as_str()),
            Some(_) => {}
        }
    }
    match listed(&[("unknown", &unknown), ("unready", &unready)]) {
        Some(message) => Says::no("ContainersNotReady").because(message),
        None => Says::yes(),
    }
}

/// `containers with unready status: [a b]`
fn listed(groups: &[(&str, &[&str])]) -> Option<String> {
    let some = groups.iter().filter(|(_, names)| !names.is_empty());
    let told: Vec<String> =
        some.map(|(what, names)| format!("containers with {what} status: [{}]", names.join(" "))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// Ready are all containers and all gates.
fn ready(spec: &PodSpec, status: &PodStatus, facts: &Facts, phase: &str) -> Says {
    let containers = containers_ready(spec, facts, phase);
    if !containers.holds {
        return containers;
    }
    let closed: Vec<String> = spec
        .readiness_gates
        .iter()
        .flatten()
        .filter_map(|gate| {
            let kind = &gate.condition_type;
            match status.conditions.iter().flatten().find(|condition| condition.type_ == *kind) {
                None => Some(format!("corresponding condition of pod readiness gate {kind:?} does not exist.")),
                Some(condition) if condition.status != "True" => {
                    Some(format!("the status of pod readiness gate {kind:?} is not \"True\", but {}", condition.status))
                }
                Some(_) => None,
            }
        })
        .collect();
    match closed.is_empty() {
        true => Says::yes(),
        false => Says::no("ReadinessGatesNotReady").because(closed.join(", ")),
    }
}

fn initialized(spec: &PodSpec, facts: &Facts, phase: &str) -> Says {
    if phase == "Succeeded" {
        return Says { holds: true, reason: Some("PodCompleted"), message: None };
    }
    if has_begun(spec, facts) {
        return Says::yes();
    }
    let (mut unknown, mut incomplete) = (Vec::new(), Vec::new());
    for container in spec.init_containers.iter().flatten() {
        match facts.containers.get(&container.name) {
            None => unknown.push(container.name.as_str()),
            Some(status) if is_done(container, status) => {}
            Some(_) => incomplete.push(container.name.as_str()),
        }
    }
    match listed(&[("unknown", &unknown), ("incomplete", &incomplete)]) {
        Some(message) => Says::no("ContainersNotInitialized").because(message),
        None => Says::yes(),
    }
}

fn is_done(container: &Container, status: &ContainerStatus) -> bool {
    if is_sidecar(container) { status.started == Some(true) } else { status.ready }
}
