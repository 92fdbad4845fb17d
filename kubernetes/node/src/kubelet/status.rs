//! The status of a pod, computed from the runtime state. Pure.
//!
//! The rules are the kubelet's: the phase, the [conditions] and their messages. Parts of the status that others
//! wrote (conditions of controllers and of the scheduler) are kept.

mod conditions;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodIP, PodSpec, PodStatus,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};

pub use self::conditions::WILDCARD_BIND_CONDITION;

/// The runtime state of a pod on its node.
#[derive(Clone, Debug, Default)]
pub struct PodRuntimeState {
    /// The status of all types of containers, by name.
    pub containers: BTreeMap<String, ContainerStatus>,
    pub host_ip: String,
    /// The address of the pod, once it has one.
    pub ip: Option<String>,
    /// The time at which the node admitted the pod.
    pub start_time: Option<Timestamp>,
    /// Whether volumes and address are ready.
    pub prepared: bool,
    /// Whether no container runs or will run again.
    pub finished: bool,
    /// The reason if the node failed the pod.
    pub failure: Option<PodFailure>,
    /// The containers that listen on all addresses, with these.
    pub wildcard_binds: BTreeMap<String, BTreeSet<SocketAddr>>,
}

/// The reason why the node failed a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFailure {
    pub reason: Cow<'static, str>,
    pub message: String,
    /// The grace period, if it differs from the pod's.
    pub grace: Option<Duration>,
}

/// Whether an init container keeps running beside the main containers.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

pub fn restart_policy(spec: &PodSpec) -> &str {
    spec.restart_policy.as_deref().unwrap_or("Always")
}

/// Truncates to seconds, as the API does, so that a value equals the one that is read back.
pub fn api_time(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

/// The status of a container that has not started.
pub fn waiting_status(container: &Container, reason: &str) -> ContainerStatus {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: None };
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        state: Some(ContainerState { waiting: Some(waiting), ..ContainerState::default() }),
        last_state: Some(ContainerState::default()),
        started: Some(false),
        ..ContainerStatus::default()
    }
}

/// The message about a container that listens on all addresses.
pub fn wildcard_message(container: &str, addresses: &BTreeSet<SocketAddr>) -> String {
    let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    format!(
        "Container {container} listens on {}, so that no other pod can use the port; let it listen on the pod's own \
         address, which a variable with fieldRef status.podIP names",
        addresses.join(" and ")
    )
}

/// The new status, based on the existing one.
pub fn generate_status(pod: &Pod, facts: &PodRuntimeState, now: Timestamp) -> PodStatus {
    let mut status = pod.status.clone().unwrap_or_default();
    let Some(spec) = pod.spec.as_ref() else { return status };
    let of = |containers: &[Container]| -> Vec<ContainerStatus> {
        containers.iter().filter_map(|container| facts.containers.get(&container.name)).cloned().collect()
    };
    let init = of(spec.init_containers.as_deref().unwrap_or_default());
    let mut main = of(&spec.containers);
    main.sort_by(|a, b| a.name.cmp(&b.name));
    let phase = phase(spec, facts);
    let ends = matches!(phase, "Succeeded" | "Failed");
    // A phase is final only when no container runs or will run; until then the pod is only not ready.
    let quiet = facts.finished || (facts.failure.is_none() && !facts.containers.values().any(is_running));
    let over = ends && quiet;
    if over || !ends {
        status.phase = Some(phase.to_owned());
    }
    status.init_container_statuses = (!init.is_empty()).then_some(init);
    status.container_statuses = (!main.is_empty()).then_some(main);
    if let Some(PodFailure { reason, message, .. }) = facts.failure.as_ref().filter(|_| over) {
        (status.reason, status.message) = (Some(reason.clone().into_owned()), Some(message.clone()));
    }
    status.observed_generation = pod.metadata.generation;
    status.host_ip = Some(facts.host_ip.clone());
    status.host_ips = Some(vec![HostIP { ip: facts.host_ip.clone() }]);
    if let Some(ip) = &facts.ip {
        status.pod_ip = Some(ip.clone());
        status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
    }
    status.start_time = status.start_time.or_else(|| facts.start_time.map(api_time));
    conditions::set_conditions(&mut status, phase, pod, facts, now);
    status
}

/// Counts of containers by state.
#[derive(Default)]
struct ContainerCounts {
    unknown: usize,
    waiting: usize,
    running: usize,
    stopped: usize,
    succeeded: usize,
}

impl ContainerCounts {
    fn count_containers(containers: &[Container], facts: &PodRuntimeState) -> Self {
        let mut count = Self::default();
        for container in containers {
            let status = facts.containers.get(&container.name);
            match status.and_then(|status| status.state.as_ref()) {
                Some(ContainerState { running: Some(_), .. }) => count.running += 1,
                Some(ContainerState { terminated: Some(ended), .. }) => {
                    count.stopped += 1;
                    count.succeeded += usize::from(ended.exit_code == 0);
                }
                // Between two runs.
                Some(_) if status.is_some_and(has_ended_before) => count.stopped += 1,
                Some(_) => count.waiting += 1,
                None => count.unknown += 1,
            }
        }
        count
    }
}

fn is_running(status: &ContainerStatus) -> bool {
    status.state.as_ref().is_some_and(|state| state.running.is_some())
}

fn has_ended_before(status: &ContainerStatus) -> bool {
    status.last_state.as_ref().is_some_and(|last| last.terminated.is_some())
}

fn phase(spec: &PodSpec, facts: &PodRuntimeState) -> &'static str {
    if facts.failure.is_some() {
        return "Failed";
    }
    let count = ContainerCounts::count_containers(&spec.containers, facts);
    match initialization(spec, facts) {
        InitializationState::Failed => return "Failed",
        InitializationState::Pending if facts.finished => return "Failed",
        InitializationState::Pending => return "Pending",
        InitializationState::Done => {}
    }
    match count {
        // The pod was stopped before all containers started.
        ContainerCounts { waiting: 1.., .. } if facts.finished => "Failed",
        ContainerCounts { waiting: 1.., .. } => "Pending",
        ContainerCounts { running: 1.., unknown: 0, .. } => "Running",
        ContainerCounts { stopped: stopped @ 1.., succeeded, unknown: 0, .. } => {
            match (facts.finished, restart_policy(spec), stopped == succeeded) {
                (false, "Always", _) | (false, "OnFailure", false) => "Running",
                (_, _, true) => "Succeeded",
                (_, _, false) => "Failed",
            }
        }
        _ => "Pending",
    }
}

enum InitializationState {
    Done,
    Pending,
    Failed,
}

fn initialization(spec: &PodSpec, facts: &PodRuntimeState) -> InitializationState {
    let begun = has_begun(spec, facts);
    let mut outcome = InitializationState::Done;
    for container in spec.init_containers.iter().flatten() {
        let Some(status) = facts.containers.get(&container.name) else { return InitializationState::Pending };
        if is_sidecar(container) {
            if !begun && status.started != Some(true) {
                outcome = InitializationState::Pending;
            }
            continue;
        }
        match status.state.as_ref().and_then(|state| state.terminated.as_ref()) {
            Some(ended) if ended.exit_code == 0 => {}
            Some(_) if restart_policy(spec) == "Never" => return InitializationState::Failed,
            _ => outcome = InitializationState::Pending,
        }
    }
    outcome
}

/// Whether any main container or sidecar has run.
fn has_begun(spec: &PodSpec, facts: &PodRuntimeState) -> bool {
    spec.containers.iter().filter_map(|container| facts.containers.get(&container.name)).any(|status| {
        has_ended_before(status)
            || status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    })
}

#[cfg(test)]
mod tests;
