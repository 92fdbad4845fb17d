//! The conditions that a node writes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodCondition, PodSpec, PodStatus};

use super::{PodRuntimeState, api_time, has_begun, is_sidecar, wildcard_message};

/// The condition for a program that listens on all addresses and so blocks its port for all pods.
pub const WILDCARD_BIND_CONDITION: &str = "WildcardBind";

/// The content of a condition.
#[derive(Debug, Default)]
struct ConditionState {
    holds: bool,
    reason: Option<&'static str>,
    message: Option<String>,
}

impl ConditionState {
    fn met() -> Self {
        Self { holds: true, ..Self::default() }
    }

    fn unmet(reason: &'static str) -> Self {
        Self { reason: Some(reason), ..Self::default() }
    }

    fn with_message(mut self, message: String) -> Self {
        self.message = Some(message);
        self
    }
}

/// Sets all conditions for a pod in this phase.
pub(super) fn set_conditions(status: &mut PodStatus, phase: &str, pod: &Pod, facts: &PodRuntimeState, now: Timestamp) {
    let Some(spec) = pod.spec.as_ref() else { return };
    let containers = containers_ready_condition(spec, facts, phase);
    let ready = ready_condition(spec, status, facts, phase);
    let ends = facts.finished || matches!(phase, "Succeeded" | "Failed");
    let prepared = ConditionState { holds: facts.prepared && !ends, ..ConditionState::default() };
    let has = |kind: &str| status.conditions.iter().flatten().any(|condition| condition.type_ == kind);
    let scheduled = has("PodScheduled");
    let warned = has(WILDCARD_BIND_CONDITION);
    let mut put = |kind: &str, says: ConditionState| set_condition(status, pod.metadata.generation, kind, says, now);
    put("PodReadyToStartContainers", prepared);
    put("Initialized", initialized_condition(spec, facts, phase));
    put("Ready", ready);
    put("ContainersReady", containers);
    if !facts.wildcard_binds.is_empty() || warned {
        put(WILDCARD_BIND_CONDITION, wildcard_bind_condition(facts));
    }
    if !scheduled {
        // The pod was bound before the node could see it.
        put("PodScheduled", ConditionState::met());
    }
}

fn set_condition(status: &mut PodStatus, generation: Option<i64>, kind: &str, says: ConditionState, now: Timestamp) {
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
        last_transition_time: since.or_else(|| Some(api_time(now))),
        observed_generation: generation,
    };
    match old {
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}

fn wildcard_bind_condition(facts: &PodRuntimeState) -> ConditionState {
    let told = facts.wildcard_binds.iter().map(|(container, addresses)| wildcard_message(container, addresses));
    let told: Vec<String> = told.collect();
    if told.is_empty() {
        ConditionState::default()
    } else {
        ConditionState { holds: true, reason: Some("ListensOnAllAddresses"), message: Some(told.join("; ")) }
    }
}

fn containers_ready_condition(spec: &PodSpec, facts: &PodRuntimeState, phase: &str) -> ConditionState {
    match phase {
        "Succeeded" => return ConditionState::unmet("PodCompleted"),
        "Failed" => return ConditionState::unmet("PodFailed"),
        _ => {}
    }
    let sidecars = spec.init_containers.iter().flatten().filter(|container| is_sidecar(container));
    let mut unknown = Vec::new();
    let mut unready = Vec::new();
    for container in sidecars.chain(&spec.containers) {
        match facts.containers.get(&container.name) {
            None => unknown.push(container.name.as_str()),
            Some(status) if !status.ready => unready.push(container.name.as_str()),
            Some(_) => {}
        }
    }
    match format_container_groups(&[("unknown", &unknown), ("unready", &unready)]) {
        Some(message) => ConditionState::unmet("ContainersNotReady").with_message(message),
        None => ConditionState::met(),
    }
}

/// Formats `containers with unready status: [a b]`.
fn format_container_groups(groups: &[(&str, &[&str])]) -> Option<String> {
    let some = groups.iter().filter(|(_, names)| !names.is_empty());
    let told: Vec<String> =
        some.map(|(what, names)| format!("containers with {what} status: [{}]", names.join(" "))).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// A pod is ready when all containers and all readiness gates are.
fn ready_condition(spec: &PodSpec, status: &PodStatus, facts: &PodRuntimeState, phase: &str) -> ConditionState {
    let containers = containers_ready_condition(spec, facts, phase);
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
    if closed.is_empty() {
        ConditionState::met()
    } else {
        ConditionState::unmet("ReadinessGatesNotReady").with_message(closed.join(", "))
    }
}

fn initialized_condition(spec: &PodSpec, facts: &PodRuntimeState, phase: &str) -> ConditionState {
    if phase == "Succeeded" {
        return ConditionState { holds: true, reason: Some("PodCompleted"), message: None };
    }
    if has_begun(spec, facts) {
        return ConditionState::met();
    }
    let mut unknown = Vec::new();
    let mut incomplete = Vec::new();
    for container in spec.init_containers.iter().flatten() {
        match facts.containers.get(&container.name) {
            None => unknown.push(container.name.as_str()),
            Some(status) if is_done(container, status) => {}
            Some(_) => incomplete.push(container.name.as_str()),
        }
    }
    match format_container_groups(&[("unknown", &unknown), ("incomplete", &incomplete)]) {
        Some(message) => ConditionState::unmet("ContainersNotInitialized").with_message(message),
        None => ConditionState::met(),
    }
}

fn is_done(container: &Container, status: &ContainerStatus) -> bool {
    if is_sidecar(container) { status.started == Some(true) } else { status.ready }
}
