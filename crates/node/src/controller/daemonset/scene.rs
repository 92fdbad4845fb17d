//! Nodes and pods as a DaemonSet sees them.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetSpec},
    core::v1::{Node, Pod, PodSpec},
};
use kube::ResourceExt;

use super::pod::{node_of, untied};
use crate::{
    controller::{pods, revision},
    scheduler::eligible,
};

/// What a node is to a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A pod should run there.
    Runs,
    /// No pod is made there, but one that runs may stay.
    MayStay,
    /// No pod may run there.
    Never,
}

/// What the node is to pods of this spec, which has the tolerations of daemons.
pub fn standing(spec: &PodSpec, node: &Node) -> Standing {
    let named = spec.node_name.as_deref().unwrap_or_default();
    let fits = (named.is_empty() || named == node.name_any()) && eligible::selects(spec, node);
    if !fits || eligible::untolerated(spec, node, &["NoExecute"]).next().is_some() {
        Standing::Never
    } else if eligible::untolerated(spec, node, &["NoSchedule"]).next().is_some() {
        Standing::MayStay
    } else {
        Standing::Runs
    }
}

/// Nodes and pods as a DaemonSet sees them.
#[derive(Debug)]
pub struct Scene<'a> {
    pub(super) spec: &'a DaemonSetSpec,
    hash: &'a str,
    now: Timestamp,
    pub(super) nodes: BTreeMap<String, Standing>,
    pub(super) pods: BTreeMap<&'a str, Vec<&'a Arc<Pod>>>,
}

impl<'a> Scene<'a> {
    /// With all nodes and all pods of the set. `hash` is that of the newest revision.
    pub fn new(
        set: &'a DaemonSet,
        hash: &'a str,
        nodes: &[Arc<Node>],
        pods: &'a [Arc<Pod>],
        now: Timestamp,
    ) -> Option<Self> {
        let pod_spec = untied(set)?;
        let nodes = nodes.iter().map(|node| (node.name_any(), standing(&pod_spec, node))).collect();
        let mut by_node: BTreeMap<&str, Vec<&Arc<Pod>>> = BTreeMap::new();
        // One that has ended and been deleted only waits for its finalizers.
        for pod in pods.iter().filter(|pod| !(has_ended(pod) && is_terminating(pod))) {
            if let Some(node) = node_of(pod) {
                by_node.entry(node).or_default().push(pod);
            }
        }
        by_node.values_mut().for_each(|pods| pods.sort_by_cached_key(|pod| seniority(pod)));
        Some(Self { spec: set.spec.as_ref()?, hash, now, nodes, pods: by_node })
    }

    /// When a pod becomes available by the passing of time.
    pub fn soonest(&self) -> Option<Duration> {
        self.pods.values().flatten().filter_map(|pod| self.availability(pod).err().flatten()).min()
    }

    pub(super) fn availability(&self, pod: &Pod) -> Result<(), Option<Duration>> {
        pods::is_available(pod, self.spec.min_ready_seconds.unwrap_or(0), self.now)
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        self.availability(pod).is_ok()
    }

    pub(super) fn is_new(&self, pod: &Pod) -> bool {
        pod.labels().get(revision::POD_LABEL).is_some_and(|hash| hash == self.hash)
    }

    /// The nodes where a pod should run.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|(_, standing)| **standing == Standing::Runs).map(|(node, _)| node.as_str())
    }

    /// The pods of a node, the senior one first.
    pub(super) fn on(&self, node: &str) -> &[&'a Arc<Pod>] {
        self.pods.get(node).map(Vec::as_slice).unwrap_or_default()
    }
}

pub(super) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub(super) fn has_ended(pod: &Pod) -> bool {
    matches!(pods::phase(pod), "Failed" | "Succeeded")
}

/// Pods with a node come first, then the oldest.
fn seniority(pod: &Pod) -> (Reverse<bool>, Option<Timestamp>, String) {
    let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()).is_some_and(|node| !node.is_empty());
    (Reverse(bound), pod.creation_timestamp().map(|time| time.0), pod.name_any())
}
