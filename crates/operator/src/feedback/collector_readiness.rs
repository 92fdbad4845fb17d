//! Readiness of the collectors, from their workloads and pods.
//!
//! The ordinary waits of a rollout are no problem: for pods to be created, and for a node to have room once
//! an ending pod is gone. Problems are reported by the scheduler or a kubelet for a pod, or by the Deployment
//! after its progress deadline.

use std::{cmp::Reverse, fmt};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kubewake_api::CollectorSettings;
use serde_json::Value;

use crate::{
    model::{
        names::{self, CollectorTier},
        object_kind::ObjectKind,
    },
    objects::{collector_pods::CollectorPods, object_cache::ObjectCache},
};

#[cfg(test)]
mod tests;

/// Reasons for which a container waits in every rollout.
const ROUTINE_WAITING_REASONS: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// The scheduler's reason for a pod that fits no node. Its other reasons pass by themselves.
const UNSCHEDULABLE_REASON: &str = "Unschedulable";
/// The reasons for which an image cannot be pulled; a pod alternates between some of them.
const IMAGE_PULL_REASONS: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"];

/// The readiness of each tier that a pipeline needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorReadiness {
    /// Never empty, so that a condition on all tiers is not vacuously true.
    tiers: Vec<TierReadiness>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TierReadiness {
    name: &'static str,
    exists: bool,
    ready: i64,
    desired: i64,
    /// Why there are not more, if that is known.
    problem: Option<StartupProblem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct StartupProblem {
    message: String,
    /// Whether the state is degraded because of it. It may pass all the same, as in clusters that scale.
    is_stuck: bool,
}

impl CollectorReadiness {
    /// The readiness of these tiers. Without any, that of the gateway.
    pub fn from_caches(
        objects: &ObjectCache,
        agent_objects: &ObjectCache,
        tiers: impl IntoIterator<Item = CollectorTier>,
    ) -> Self {
        let readiness = |tier: CollectorTier| {
            let workload = match tier {
                CollectorTier::Gateway => objects.get(ObjectKind::Deployment, tier.name()),
                CollectorTier::Sticky => objects.get(ObjectKind::StatefulSet, tier.name()),
                CollectorTier::Agent => agent_objects.get(ObjectKind::DaemonSet, tier.name()),
            };
            TierReadiness::new(tier.name(), workload.as_deref())
        };
        let mut tiers: Vec<TierReadiness> = tiers.into_iter().map(readiness).collect();
        if tiers.is_empty() {
            tiers.push(readiness(CollectorTier::Gateway));
        }
        Self { tiers }
    }

    /// Adds problems that only pods report: while old pods run, a Deployment reports a new pod that does not
    /// start only after ten minutes.
    pub fn with_pods(mut self, pods: &CollectorPods, settings: &CollectorSettings) -> Self {
        let image_source = ImageSource::from_settings(settings);
        let pods = pods.all();
        let some_end = pods.iter().any(|pod| pod.metadata.deletion_timestamp.is_some());
        for tier in &mut self.tiers {
            let of_tier = |pod: &&Pod| pod.labels().get(names::NAME_LABEL).is_some_and(|name| name == tier.name);
            let found = pods
                .iter()
                .map(|pod| &**pod)
                .filter(of_tier)
                .filter_map(|pod| startup_problem(pod, some_end, image_source));
            // With several problems the choice is stable, or each run would publish an event.
            let found = found.min_by_key(|it| (Reverse(it.is_stuck), it.message.clone()));
            tier.problem = match (found, tier.problem.take()) {
                (Some(found), Some(whole)) if whole.is_stuck && !found.is_stuck => Some(whole),
                (found, whole) => found.or(whole),
            };
        }
        self
    }

    /// Whether some pods do not start, and no ending pods will make room for them.
    pub fn are_stuck(&self) -> bool {
        self.tiers.iter().any(|tier| tier.problem.as_ref().is_some_and(|trouble| trouble.is_stuck))
    }

    /// Adds a collector that does not start.
    #[cfg(test)]
    pub(crate) fn with_stuck_collector(mut self) -> Self {
        let trouble = StartupProblem { message: "no image".to_owned(), is_stuck: true };
        self.tiers.iter_mut().for_each(|tier| tier.problem = Some(trouble.clone()));
        self
    }

    /// A gateway with `ready` of `wanted` collectors.
    #[cfg(test)]
    pub(crate) fn example(ready: i64, wanted: i64) -> Self {
        Self {
            tiers: vec![TierReadiness { name: names::GATEWAY, exists: true, ready, desired: wanted, problem: None }],
        }
    }

    /// A gateway that does not exist.
    #[cfg(test)]
    pub(crate) fn missing() -> Self {
        Self { tiers: vec![TierReadiness::new(names::GATEWAY, None)] }
    }

    /// Whether the workload of each tier exists, running or not.
    pub fn exist(&self) -> bool {
        self.tiers.iter().all(|tier| tier.exists)
    }

    /// Whether each tier has a ready collector.
    pub fn are_serving(&self) -> bool {
        self.tiers.iter().all(|tier| tier.ready > 0)
    }

    pub fn describe(&self) -> String {
        let tiers = self.tiers.iter().map(|tier| {
            let trouble = tier.problem.as_ref().map(|it| format!(" ({})", it.message)).unwrap_or_default();
            format!("{} of {} collectors of {} are ready{trouble}", tier.ready, tier.desired, tier.name)
        });
        tiers.collect::<Vec<_>>().join("; ")
    }
}

/// Formats as `2/3`.
impl fmt::Display for CollectorReadiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |of: fn(&TierReadiness) -> i64| self.tiers.iter().map(of).sum::<i64>();
        write!(f, "{}/{}", sum(|tier| tier.ready), sum(|tier| tier.desired))
    }
}

impl TierReadiness {
    fn new(name: &'static str, workload: Option<&Value>) -> Self {
        let number = |pointer: &str| workload.and_then(|it| it.pointer(pointer)).and_then(Value::as_i64);
        // A DaemonSet has as many collectors as there are nodes, which only its status tells.
        let is_daemon_set = workload.is_some_and(|it| it.get("kind").and_then(Value::as_str) == Some("DaemonSet"));
        let [ready, desired] = if is_daemon_set {
            ["/status/numberReady", "/status/desiredNumberScheduled"]
        } else {
            ["/status/readyReplicas", "/spec/replicas"]
        };
        let conditions = workload.and_then(|it| it.pointer("/status/conditions")?.as_array());
        let is_trouble = |it: &&Value| {
            let is = |key: &str, value: &str| it.get(key).and_then(Value::as_str) == Some(value);
            is("type", "ReplicaFailure") && is("status", "True") || is("type", "Progressing") && is("status", "False")
        };
        let trouble = conditions.into_iter().flatten().find(is_trouble);
        Self {
            name,
            exists: workload.is_some(),
            ready: number(ready).unwrap_or(0),
            desired: number(desired).unwrap_or(0),
            problem: trouble
                .and_then(|it| it.get("message")?.as_str())
                .map(|words| StartupProblem { message: words.to_owned(), is_stuck: true }),
        }
    }
}

/// The resource that names the collectors' image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ImageSource {
    Telemetry,
    Operator,
}

impl ImageSource {
    fn from_settings(settings: &CollectorSettings) -> Self {
        if settings.image.is_some() { Self::Telemetry } else { Self::Operator }
    }

    /// The field to correct.
    fn field(self) -> &'static str {
        match self {
            Self::Telemetry => "spec.image of the Telemetry",
            Self::Operator => "--collector-image of the operator, or spec.image of a Telemetry",
        }
    }
}

/// Why a pod does not start, if it does not. A pod without room is not stuck while other pods end.
fn startup_problem(pod: &Pod, some_end: bool, image_source: ImageSource) -> Option<StartupProblem> {
    if pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let status = pod.status.as_ref()?;
    let unschedulable =
        status.conditions.iter().flatten().find(|it| it.type_ == "PodScheduled" && it.status == "False");
    if let Some(condition) = unschedulable {
        let why = condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or("no reason is given");
        let is_stuck = condition.reason.as_deref() == Some(UNSCHEDULABLE_REASON) && !some_end;
        return Some(StartupProblem {
            message: format!("the pod {} is not scheduled: {why}", pod.name_any()),
            is_stuck,
        });
    }
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let waits = containers.filter_map(|it| Some((it, it.state.as_ref()?.waiting.as_ref()?.reason.as_deref()?)));
    let (container, reason) = waits.into_iter().find(|(_, reason)| !ROUTINE_WAITING_REASONS.contains(reason))?;
    let why = if IMAGE_PULL_REASONS.contains(&reason) {
        format!("the image {} cannot be pulled; check {}", container.image, image_source.field())
    } else {
        reason.to_owned()
    };
    Some(StartupProblem { message: format!("the pod {} failed to start: {why}", pod.name_any()), is_stuck: true })
}
