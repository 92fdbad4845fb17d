//! The assignments of pods to nodes.
//!
//! A pod that is being bound counts on its node before the watch shows it, so that two pods never get the same
//! resources.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::resources::ResourceAmounts;
use crate::key::NamespacedKey;

/// A pod on a node.
#[derive(Clone, Debug)]
pub struct CachedPod {
    /// The last seen state of the pod.
    pub pod: Arc<Pod>,
    /// The node on which the pod runs or will run.
    pub node: String,
    pub requests: ResourceAmounts,
    assumed: bool,
}

/// The effect of a change on unschedulable pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterEvent {
    /// A node may have more free resources.
    ResourcesFreed,
    /// A node has another pod, or the labels of a pod changed.
    PodChanged,
}

#[derive(Debug, Default)]
pub struct SchedulerCache(BTreeMap<NamespacedKey, CachedPod>);

impl SchedulerCache {
    /// Adds, updates or removes a pod.
    pub fn update_pod(&mut self, key: &NamespacedKey, pod: Option<&Arc<Pod>>) -> Option<ClusterEvent> {
        let held = self.0.get(key);
        let removed = |ledger: &mut Self| ledger.0.remove(key).map(|_| ClusterEvent::ResourcesFreed);
        let Some(pod) = pod.filter(|pod| !has_ended(pod)) else { return removed(self) };
        match bound_node(pod) {
            Some(node) => match self.0.insert(key.clone(), CachedPod::new(pod, node, false)) {
                Some(before) if before.pod.uid() != pod.uid() || before.node != node => {
                    Some(ClusterEvent::ResourcesFreed)
                }
                Some(before) if before.pod.labels() == pod.labels() => None,
                _ => Some(ClusterEvent::PodChanged),
            },
            None if held.is_some_and(|held| held.assumed && held.pod.uid() == pod.uid()) => None,
            None => removed(self),
        }
    }

    /// Assigns a pod to a node before it is bound.
    pub fn assume_pod(&mut self, key: NamespacedKey, pod: &Arc<Pod>, node: &str) {
        self.0.insert(key, CachedPod::new(pod, node, true));
    }

    /// Removes the assignment of a pod that was not bound.
    pub fn forget_pod(&mut self, key: &NamespacedKey) {
        if self.0.get(key).is_some_and(|held| held.assumed) {
            self.0.remove(key);
        }
    }

    /// Whether this pod, by uid, has a node.
    pub fn has_pod(&self, key: &NamespacedKey, pod: &Pod) -> bool {
        self.0.get(key).is_some_and(|held| held.pod.uid() == pod.uid())
    }

    pub fn all(&self) -> impl Iterator<Item = &CachedPod> {
        self.0.values()
    }
}

impl CachedPod {
    fn new(pod: &Arc<Pod>, node: &str, assumed: bool) -> Self {
        Self { pod: Arc::clone(pod), node: node.to_owned(), requests: ResourceAmounts::requested_by_pod(pod), assumed }
    }
}

/// The node that a pod is bound to.
pub fn bound_node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

/// Whether the pod has released its resources. A pod that is being deleted has not.
pub fn has_ended(pod: &Pod) -> bool {
    matches!(crate::controller::pods::phase(pod), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests;
