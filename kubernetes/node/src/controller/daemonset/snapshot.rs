//! A snapshot of nodes and pods for one sync of a DaemonSet.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetSpec},
    core::v1::{Node, Pod, PodSpec},
};
use kube::ResourceExt;

use super::pod::{target_node, template_spec};
use crate::{
    controller::{pods, revision},
    scheduler::node_eligibility,
};

/// The eligibility of a node for a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeEligibility {
    /// A pod should run there.
    ShouldRun,
    /// No pod is created there, but a running one may stay.
    MayContinue,
    /// No pod may run there.
    MustNotRun,
}

/// The eligibility of the node for pods of this spec, which includes the tolerations of daemons.
pub fn node_eligibility(spec: &PodSpec, node: &Node) -> NodeEligibility {
    let named = spec.node_name.as_deref().unwrap_or_default();
    let fits = (named.is_empty() || named == node.name_any()) && node_eligibility::matches_node_affinity(spec, node);
    if !fits || node_eligibility::untolerated(spec, node, &["NoExecute"]).next().is_some() {
        NodeEligibility::MustNotRun
    } else if node_eligibility::untolerated(spec, node, &["NoSchedule"]).next().is_some() {
        NodeEligibility::MayContinue
    } else {
        NodeEligibility::ShouldRun
    }
}

/// The nodes and pods of a DaemonSet.
#[derive(Debug)]
pub struct DaemonSetSnapshot<'a> {
    pub(super) spec: &'a DaemonSetSpec,
    hash: &'a str,
    now: Timestamp,
    pub(super) nodes: BTreeMap<String, NodeEligibility>,
    pub(super) pods: BTreeMap<&'a str, Vec<&'a Arc<Pod>>>,
}

impl<'a> DaemonSetSnapshot<'a> {
    /// Takes a snapshot of all nodes and the set's pods. `hash` is that of the newest revision.
    pub fn new(
        set: &'a DaemonSet,
        hash: &'a str,
        nodes: &[Arc<Node>],
        pods: &'a [Arc<Pod>],
        now: Timestamp,
    ) -> Option<Self> {
        let pod_spec = template_spec(set)?;
        let nodes = nodes.iter().map(|node| (node.name_any(), node_eligibility(&pod_spec, node))).collect();
        let mut by_node: BTreeMap<&str, Vec<&Arc<Pod>>> = BTreeMap::new();
        // A pod that has ended and is being deleted only waits for its finalizers.
        for pod in pods.iter().filter(|pod| !(has_ended(pod) && is_terminating(pod))) {
            if let Some(node) = target_node(pod) {
                by_node.entry(node).or_default().push(pod);
            }
        }
        by_node.values_mut().for_each(|pods| pods.sort_by_cached_key(|pod| seniority(pod)));
        Some(Self { spec: set.spec.as_ref()?, hash, now, nodes, pods: by_node })
    }

    /// The time until the next pod becomes available.
    pub fn next_availability(&self) -> Option<Duration> {
        self.pods.values().flatten().filter_map(|pod| self.availability(pod).err().flatten()).min()
    }

    pub(super) fn availability(&self, pod: &Pod) -> Result<(), Option<Duration>> {
        pods::is_available(pod, self.spec.min_ready_seconds.unwrap_or(0), self.now)
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        self.availability(pod).is_ok()
    }

    pub(super) fn has_newest_revision(&self, pod: &Pod) -> bool {
        pod.labels().get(revision::POD_REVISION_HASH_LABEL).is_some_and(|hash| hash == self.hash)
    }

    /// The nodes where a pod should run.
    pub(super) fn eligible_nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes
            .iter()
            .filter(|(_, standing)| **standing == NodeEligibility::ShouldRun)
            .map(|(node, _)| node.as_str())
    }

    /// The pods of a node, ordered by seniority.
    pub(super) fn pods_on_node(&self, node: &str) -> &[&'a Arc<Pod>] {
        self.pods.get(node).map(Vec::as_slice).unwrap_or_default()
    }
}

pub(super) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(pods::phase(pod), "Failed" | "Succeeded")
}

/// Bound pods come first, then the oldest.
fn seniority(pod: &Pod) -> (Reverse<bool>, Option<Timestamp>, String) {
    let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some_and(|node| !node.is_empty());
    (Reverse(bound), pod.creation_timestamp().map(|time| time.0), pod.name_any())
}
