//! The scheduler's model of the cluster: nodes, and the requests of the pods on them.
//!
//! A pod that is being bound counts on its node before the watch shows it, so that two pods never get the same
//! capacity.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use crate::resources::ResourceList;

/// Namespace and name of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodKey {
    namespace: String,
    name: String,
}

impl PodKey {
    pub fn from_pod(pod: &Pod) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any() }
    }
}

impl fmt::Display for PodKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A node with the requests of its pods.
#[derive(Clone, Debug, Default)]
pub struct NodeAllocation {
    pub node: Arc<Node>,
    /// The resources that pods may use.
    pub allocatable: ResourceList,
    /// The requests of each pod.
    pub pod_requests: Vec<ResourceList>,
    pub requested: ResourceList,
}

impl NodeAllocation {
    /// A node without pods.
    pub fn new(node: impl Into<Arc<Node>>) -> Self {
        let node = node.into();
        Self { allocatable: ResourceList::node_allocatable(&node), node, ..Self::default() }
    }

    pub fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn add_pod(&mut self, holds: &ResourceList) {
        self.requested.add(holds);
        self.pod_requests.push(holds.clone());
    }
}

/// A pod on a node.
#[derive(Debug)]
struct PodAssignment {
    uid: Option<String>,
    node: String,
    requests: ResourceList,
    /// Whether the watch has not shown the assignment yet.
    assumed: bool,
}

/// The nodes and the pods on them.
#[derive(Debug, Default)]
pub struct ClusterModel {
    nodes: BTreeMap<String, Arc<Node>>,
    pods: BTreeMap<PodKey, PodAssignment>,
}

impl ClusterModel {
    /// Adds or updates a node. Returns whether pods may fit that did not before; a change of the node's health
    /// does not count.
    pub fn update_node(&mut self, node: Node) -> bool {
        let node = Arc::new(node);
        let old = self.nodes.insert(node.name_any(), Arc::clone(&node));
        let allocatable = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
        old.is_none_or(|old| {
            old.labels() != node.labels() || old.spec != node.spec || allocatable(&old) != allocatable(&node)
        })
    }

    pub fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// Adds or updates a pod. Returns whether it released resources.
    pub fn update_pod(&mut self, pod: &Pod) -> bool {
        let key = PodKey::from_pod(pod);
        let Some(node) = assigned_node(pod).filter(|_| !is_terminated(pod)) else {
            let assumed = self.pods.get(&key).is_some_and(|held| held.assumed && held.uid == pod.uid());
            return (!assumed || is_terminated(pod)) && self.pods.remove(&key).is_some();
        };
        let before = self.pods.insert(key, PodAssignment::new(pod, node, false));
        before.is_some_and(|before| before.uid != pod.uid() || before.node != node)
    }

    /// Removes a pod. Returns whether it released resources.
    pub fn remove_pod(&mut self, pod: &Pod) -> bool {
        self.pods.remove(&PodKey::from_pod(pod)).is_some()
    }

    /// Assigns a pod to a node before it is bound.
    pub fn assume_pod(&mut self, pod: &Pod, node: &str) {
        self.pods.insert(PodKey::from_pod(pod), PodAssignment::new(pod, node, true));
    }

    /// Removes the assignment of a pod that was not bound.
    pub fn forget_pod(&mut self, pod: &Pod) {
        let key = PodKey::from_pod(pod);
        if self.pods.get(&key).is_some_and(|held| held.assumed && held.uid == pod.uid()) {
            self.pods.remove(&key);
        }
    }

    /// Whether this pod, by uid, has a node.
    pub fn is_assigned(&self, pod: &Pod) -> bool {
        self.pods.get(&PodKey::from_pod(pod)).is_some_and(|held| held.uid == pod.uid())
    }

    /// Removes all other nodes.
    pub fn retain_nodes(&mut self, keep: impl Fn(&str) -> bool) {
        self.nodes.retain(|name, _| keep(name));
    }

    /// Removes all other pods.
    pub fn retain_pods(&mut self, keep: impl Fn(&PodKey) -> bool) {
        self.pods.retain(|key, _| keep(key));
    }

    pub fn node_allocations(&self) -> Vec<NodeAllocation> {
        let mut allocations: BTreeMap<&str, NodeAllocation> =
            self.nodes.iter().map(|(name, node)| (name.as_str(), NodeAllocation::new(Arc::clone(node)))).collect();
        for booking in self.pods.values() {
            if let Some(allocation) = allocations.get_mut(booking.node.as_str()) {
                allocation.add_pod(&booking.requests);
            }
        }
        allocations.into_values().collect()
    }
}

impl PodAssignment {
    fn new(pod: &Pod, node: &str, assumed: bool) -> Self {
        Self { uid: pod.uid(), node: node.to_owned(), requests: ResourceList::pod_requests(pod), assumed }
    }
}

/// The node that a pod is bound to.
pub fn assigned_node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

/// Whether the pod has released its resources. A pod that is being deleted has not.
pub fn is_terminated(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether the pod waits for the scheduler of this name.
pub fn is_pending_for(pod: &Pod, scheduler: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    spec.scheduler_name.as_deref() == Some(scheduler)
        && assigned_node(pod).is_none()
        && !is_terminated(pod)
        && pod.metadata.deletion_timestamp.is_none()
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests;
