//! The cluster as the scheduler knows it: nodes, and which pods hold what on them.
//!
//! A pod that was bound just now is on its node here before the watch tells so: two pods never get the same room.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::ResourceExt;

use crate::resources::Resources;

/// Which pod: its namespace and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    namespace: String,
    name: String,
}

impl Key {
    /// Of this one.
    pub fn of(pod: &Pod) -> Self {
        Self { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A node, and what its pods hold.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The node.
    pub node: Arc<Node>,
    /// What pods may use of it.
    pub has: Resources,
    /// What each of its pods holds.
    pub holdings: Vec<Resources>,
    /// What they hold together.
    pub held: Resources,
}

impl Place {
    /// An empty node.
    pub fn new(node: impl Into<Arc<Node>>) -> Self {
        let node = node.into();
        Self { has: Resources::of_node(&node), node, ..Self::default() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.node.metadata.name.as_deref().unwrap_or_default()
    }

    /// A pod more.
    pub fn put(&mut self, holds: &Resources) {
        self.held.add(holds);
        self.holdings.push(holds.clone());
    }
}

/// A pod on a node.
#[derive(Debug)]
struct Booking {
    uid: Option<String>,
    node: String,
    holds: Resources,
    /// Only we know yet.
    assumed: bool,
}

/// Nodes and the pods on them.
#[derive(Debug, Default)]
pub struct Cluster {
    nodes: BTreeMap<String, Arc<Node>>,
    pods: BTreeMap<Key, Booking>,
}

impl Cluster {
    /// A node as it is now. Answers whether pods may fit there that did not before: what a node says of its health changes nothing.
    pub fn see_node(&mut self, node: Node) -> bool {
        let node = Arc::new(node);
        let old = self.nodes.insert(node.name_any(), Arc::clone(&node));
        let allocatable = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
        old.is_none_or(|old| {
            old.labels() != node.labels() || old.spec != node.spec || allocatable(&old) != allocatable(&node)
        })
    }

    /// A node that is gone.
    pub fn lose_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A pod as it is now. Answers whether it gave up room.
    pub fn see_pod(&mut self, pod: &Pod) -> bool {
        let key = Key::of(pod);
        let Some(node) = node_of(pod).filter(|_| !has_ended(pod)) else {
            let assumed = self.pods.get(&key).is_some_and(|held| held.assumed && held.uid == pod.uid());
            return (!assumed || has_ended(pod)) && self.pods.remove(&key).is_some();
        };
        let before = self.pods.insert(key, Booking::new(pod, node, false));
        before.is_some_and(|before| before.uid != pod.uid() || before.node != node)
    }

    /// A pod that is gone. Answers whether it gave up room.
    pub fn lose_pod(&mut self, pod: &Pod) -> bool {
        self.pods.remove(&Key::of(pod)).is_some()
    }

    /// The pod is about to be bound to a node.
    pub fn assume(&mut self, pod: &Pod, node: &str) {
        self.pods.insert(Key::of(pod), Booking::new(pod, node, true));
    }

    /// The pod was not bound after all.
    pub fn release(&mut self, pod: &Pod) {
        let key = Key::of(pod);
        if self.pods.get(&key).is_some_and(|held| held.assumed && held.uid == pod.uid()) {
            self.pods.remove(&key);
        }
    }

    /// Whether this very pod has a node.
    pub fn holds(&self, pod: &Pod) -> bool {
        self.pods.get(&Key::of(pod)).is_some_and(|held| held.uid == pod.uid())
    }

    /// Only these nodes are there.
    pub fn keep_nodes(&mut self, keep: impl Fn(&str) -> bool) {
        self.nodes.retain(|name, _| keep(name));
    }

    /// Only these pods are there.
    pub fn keep_pods(&mut self, keep: impl Fn(&Key) -> bool) {
        self.pods.retain(|key, _| keep(key));
    }

    /// All nodes, by name.
    pub fn places(&self) -> Vec<Place> {
        let mut places: BTreeMap<&str, Place> =
            self.nodes.iter().map(|(name, node)| (name.as_str(), Place::new(Arc::clone(node)))).collect();
        for booking in self.pods.values() {
            if let Some(place) = places.get_mut(booking.node.as_str()) {
                place.put(&booking.holds);
            }
        }
        places.into_values().collect()
    }
}

impl Booking {
    fn new(pod: &Pod, node: &str, assumed: bool) -> Self {
        Self { uid: pod.uid(), node: node.to_owned(), holds: Resources::of_pod(pod), assumed }
    }
}

/// The node that a pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

/// Whether the pod needs nothing any more. One that is being deleted still does.
pub fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether the pod waits for the scheduler of this name.
pub fn waits_for(pod: &Pod, scheduler: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    spec.scheduler_name.as_deref() == Some(scheduler)
        && node_of(pod).is_none()
        && !has_ended(pod)
        && pod.metadata.deletion_timestamp.is_none()
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests;
