//! Which pods go first when there are too many: those that are missed least.

use std::{cmp::Reverse, collections::HashMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt;

use crate::controller::pods;

/// A number; pods with lower ones go first.
const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The rules in their order; the smallest goes first. Times count by their order of magnitude, so that pods of about the same
/// age go at random (by uid).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_assigned: bool,
    phase: u8,
    is_ready: bool,
    cost: i32,
    /// The more of the same there are on its node.
    neighbours: Reverse<usize>,
    ready_for: Age,
    restarts: Reverse<(i32, i32)>,
    age: Age,
    uid: Option<String>,
}

/// The logarithm of how long ago something was; nothing at all is youngest.
type Age = Option<u32>;

/// So many of these pods. `related` are the active pods that do the same work, these among them.
pub(super) fn first_to_go(
    mut pods: Vec<Arc<Pod>>,
    related: &[Arc<Pod>],
    count: usize,
    now: Timestamp,
) -> Vec<Arc<Pod>> {
    if count < pods.len() {
        let mut on_node: HashMap<&str, usize> = HashMap::new();
        related.iter().for_each(|pod| *on_node.entry(node(pod)).or_default() += 1);
        pods.sort_by_cached_key(|pod| rank(pod, on_node.get(node(pod)).copied().unwrap_or(0), now));
        pods.truncate(count);
    }
    pods
}

fn rank(pod: &Pod, neighbours: usize, now: Timestamp) -> Rank {
    let ready = pods::condition(pod, "Ready").filter(|ready| ready.status == "True");
    Rank {
        is_assigned: !node(pod).is_empty(),
        phase: match pods::phase(pod) {
            "Running" => 2,
            "Unknown" => 1,
            _ => 0,
        },
        is_ready: ready.is_some(),
        cost: cost(pod),
        neighbours: Reverse(neighbours),
        ready_for: ready.and_then(|ready| age(ready.last_transition_time.as_ref(), now)),
        restarts: Reverse(restarts(pod)),
        age: age(pod.metadata.creation_timestamp.as_ref(), now),
        uid: pod.uid(),
    }
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// What is not a number as Go prints it counts as none.
fn cost(pod: &Pod) -> i32 {
    let cost = pod.annotations().get(COST).filter(|cost| !cost.starts_with('+'));
    cost.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn age(of: Option<&Time>, now: Timestamp) -> Age {
    let nanoseconds = now.duration_since(of?.0).as_nanos();
    Some(u128::try_from(nanoseconds).ok().and_then(u128::checked_ilog2).map_or(0, |age| age + 1))
}

/// The most of any container, and of any sidecar.
fn restarts(pod: &Pod) -> (i32, i32) {
    let (spec, status) = (pod.spec.as_ref(), pod.status.as_ref());
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
