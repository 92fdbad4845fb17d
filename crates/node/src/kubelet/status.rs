//! The status of a pod, from what its node knows of it. Pure.
//!
//! The rules are the kubelet's: which phase follows from which containers, which [conditions](conditions) hold and how they
//! are explained. What others wrote into the status (conditions of controllers, of the scheduler) stays.

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

pub use self::conditions::WILDCARD;

/// What a node knows of one of its pods.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By name, of containers of all kinds.
    pub containers: BTreeMap<String, ContainerStatus>,
    /// The node's.
    pub host_ip: String,
    /// The pod's, once it has one.
    pub ip: Option<String>,
    /// When the node took it on.
    pub start_time: Option<Timestamp>,
    /// Whether it has everything that containers need to start.
    pub prepared: bool,
    /// Whether no container runs or will again.
    pub finished: bool,
    /// Why the node ended it, if it did.
    pub verdict: Option<Verdict>,
    /// Which of its containers listen on all addresses, and where.
    pub wildcards: BTreeMap<String, BTreeSet<SocketAddr>>,
}

/// Why a node ended a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Such as `DeadlineExceeded`.
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: String,
    /// How long its containers may take to end, if not as long as usual.
    pub grace: Option<Duration>,
}

/// Whether an init container keeps running beside the others.
pub fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

/// The restart policy of the pod.
pub fn restart_policy(spec: &PodSpec) -> &str {
    spec.restart_policy.as_deref().unwrap_or("Always")
}

/// To the second, as the API has it: what is compared with what was read back must not differ by less.
pub fn time(at: Timestamp) -> Time {
    Time(Timestamp::from_second(at.as_second()).unwrap_or(at))
}

/// A container that has not begun.
pub fn waiting(container: &Container, reason: &str) -> ContainerStatus {
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

/// What is to be said of a container that listens on all addresses.
pub fn wildcard_message(container: &str, addresses: &BTreeSet<SocketAddr>) -> String {
    let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    format!(
        "Container {container} listens on {}, which takes the port away from all other pods; let it listen on the pod's own \
         address, which a variable with fieldRef status.podIP names",
        addresses.join(" and ")
    )
}

/// The status as it should be now, given the one that the pod has.
pub fn generate(pod: &Pod, facts: &Facts, now: Timestamp) -> PodStatus {
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
    // It is over only when nothing runs or will; until then it is only not ready.
    let quiet = facts.finished || (facts.verdict.is_none() && !facts.containers.values().any(is_running));
    let over = ends && quiet;
    if over || !ends {
        status.phase = Some(phase.to_owned());
    }
    status.init_container_statuses = (!init.is_empty()).then_some(init);
    status.container_statuses = (!main.is_empty()).then_some(main);
    if let Some(Verdict { reason, message, .. }) = facts.verdict.as_ref().filter(|_| over) {
        (status.reason, status.message) = (Some(reason.clone().into_owned()), Some(message.clone()));
    }
    status.observed_generation = pod.metadata.generation;
    status.host_ip = Some(facts.host_ip.clone());
    status.host_ips = Some(vec![HostIP { ip: facts.host_ip.clone() }]);
    if let Some(ip) = &facts.ip {
        status.pod_ip = Some(ip.clone());
        status.pod_ips = Some(vec![PodIP { ip: ip.clone() }]);
    }
    status.start_time = status.start_time.or_else(|| facts.start_time.map(time));
    conditions::set(&mut status, phase, pod, facts, now);
    status
}

/// What containers add up to.
#[derive(Default)]
struct Count {
    unknown: usize,
    waiting: usize,
    running: usize,
    stopped: usize,
    succeeded: usize,
}

impl Count {
    fn of(containers: &[Container], facts: &Facts) -> Self {
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

fn phase(spec: &PodSpec, facts: &Facts) -> &'static str {
    if facts.verdict.is_some() {
        return "Failed";
    }
    let count = Count::of(&spec.containers, facts);
    match initialization(spec, facts) {
        Initialization::Failed => return "Failed",
        Initialization::Pending if facts.finished => return "Failed",
        Initialization::Pending => return "Pending",
        Initialization::Done => {}
    }
    match count {
        // It was ended before all of them began.
        Count { waiting: 1.., .. } if facts.finished => "Failed",
        Count { waiting: 1.., .. } => "Pending",
        Count { running: 1.., unknown: 0, .. } => "Running",
        Count { stopped: stopped @ 1.., succeeded, unknown: 0, .. } => {
            match (facts.finished, restart_policy(spec), stopped == succeeded) {
                (false, "Always", _) | (false, "OnFailure", false) => "Running",
                (_, _, true) => "Succeeded",
                (_, _, false) => "Failed",
            }
        }
        _ => "Pending",
    }
}

enum Initialization {
    Done,
    Pending,
    Failed,
}

fn initialization(spec: &PodSpec, facts: &Facts) -> Initialization {
    let begun = has_begun(spec, facts);
    let mut outcome = Initialization::Done;
    for container in spec.init_containers.iter().flatten() {
        let Some(status) = facts.containers.get(&container.name) else { return Initialization::Pending };
        if is_sidecar(container) {
            if !begun && status.started != Some(true) {
                outcome = Initialization::Pending;
            }
            continue;
        }
        match status.state.as_ref().and_then(|state| state.terminated.as_ref()) {
            Some(ended) if ended.exit_code == 0 => {}
            Some(_) if restart_policy(spec) == "Never" => return Initialization::Failed,
            _ => outcome = Initialization::Pending,
        }
    }
    outcome
}

/// Whether any container that is not for initialization has run.
fn has_begun(spec: &PodSpec, facts: &Facts) -> bool {
    spec.containers.iter().filter_map(|container| facts.containers.get(&container.name)).any(|status| {
        has_ended_before(status)
            || status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
    })
}

#[cfg(test)]
mod tests;
