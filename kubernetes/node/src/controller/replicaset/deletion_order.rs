//! The order in which surplus pods are deleted: the least needed first.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

use crate::controller::pods;

/// A number; pods with lower ones are deleted first.
const POD_DELETION_COST_ANNOTATION: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The criteria in their order; the smallest is deleted first. Ages count by their order of magnitude, so that
/// the order of pods of about the same age is random (by uid).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct DeletionRank {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    cost: i32,
    /// The number of related pods on the same node.
    related_on_node: Reverse<usize>,
    ready_for: AgeMagnitude,
    restarts: Reverse<(i32, i32)>,
    age: AgeMagnitude,
    uid: Option<String>,
}

/// The logarithm of an age; no age at all counts as youngest.
type AgeMagnitude = Option<u32>;

/// Selects this number of pods. `related` are the active pods with the same purpose, including these.
pub(super) fn pods_to_delete(
    mut pods: Vec<Arc<Pod>>,
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    if count < pods.len() {
        let mut on_node: HashMap<&str, usize> = HashMap::new();
        related.iter().for_each(|pod| *on_node.entry(node(pod)).or_default() += 1);
        pods.sort_by_cached_key(|pod| deletion_rank(pod, on_node.get(node(pod)).copied().unwrap_or(0), now));
        pods.truncate(count);
    }
    pods
}

fn deletion_rank(pod: &Pod, neighbours: usize, now: Timestamp) -> DeletionRank {
    let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "True");
    DeletionRank {
        is_assigned: !node(pod).is_empty(),
        phase: match pods::phase(pod) {
            "Running" => 2,
            "Unknown" => 1,
            _ => 0,
        },
        is_ready: ready.is_some(),
        cost: deletion_cost(pod),
        related_on_node: Reverse(neighbours),
        ready_for: ready.and_then(|ready| age_magnitude(ready.last_transition_time.as_ref(), now)),
        restarts: Reverse(restarts(pod)),
        age: age_magnitude(pod.metadata.creation_timestamp.as_ref(), now),
        uid: pod.uid(),
    }
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// A number that is not in Go's format counts as none.
fn deletion_cost(pod: &Pod) -> i32 {
    let cost = pod.annotations().get(POD_DELETION_COST_ANNOTATION).filter(|cost| !cost.starts_with('+'));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn age_magnitude(of: Option<&Time>, now: Timestamp) -> AgeMagnitude {
    let nanoseconds = now.duration_since(of?.0).as_nanos();
    Some(u128::try_from(nanoseconds).ok().and_then(u128::checked_ilog2).map_or(0, |age| age + 1))
}

/// The highest restart counts of containers and of sidecars.
fn restarts(pod: &Pod) -> (i32, i32) {
    let spec = pod.spec.as_ref();
    let status = pod.status.as_ref();
    let is_sidecar = |status: &ContainerStatus| {
        let containers = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
        containers
            .into_iter()
            .any(|container| container.name == status.name && container.restart_policy.as_deref() == Some("Always"))
    };
    let containers = status.and_then(|status| status.container_statuses.as_ref()).into_iter().flatten();
    let inits = status.and_then(|status| status.init_container_statuses.as_ref()).into_iter().flatten();
    let most = containers.map(|status| status.restart_count).max().unwrap_or(0);
    (most, inits.filter(|status| is_sidecar(status)).map(|status| status.restart_count).max().unwrap_or(0))
}

#[cfg(test)]
mod tests;
