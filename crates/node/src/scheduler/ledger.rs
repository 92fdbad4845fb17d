//! Which pods hold what on which node.
//!
//! A pod that was bound just now is on its node here before the watch tells so: two pods never get the same room.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::resources::Resources;
use crate::key::Key;

/// A pod on a node.
#[derive(Clone, Debug)]
pub struct Booking {
    /// As it was when it was seen last.
    pub pod: Arc<Pod>,
    /// Where it runs or will.
    pub node: String,
    /// What it holds there.
    pub holds: Resources,
    /// Only we know yet.
    assumed: bool,
}

/// All pods on nodes.
#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<Key, Booking>);

impl Ledger {
    /// A pod as it is now, if it still is. Answers whether a node has more room than before.
    pub fn see(&mut self, key: &Key, pod: Option<&Arc<Pod>>) -> bool {
        let held = self.0.get(key);
        let Some(pod) = pod.filter(|pod| !has_ended(pod)) else { return self.0.remove(key).is_some() };
        match node_of(pod) {
            Some(node) => {
                let booking = Booking::new(pod, node, false);
                let before = self.0.insert(key.clone(), booking);
                before.is_some_and(|before| before.pod.uid() != pod.uid() || before.node != node)
            }
            None if held.is_some_and(|held| held.assumed && held.pod.uid() == pod.uid()) => false,
            None => self.0.remove(key).is_some(),
        }
    }

    /// The pod is about to be bound to a node.
    pub fn assume(&mut self, key: Key, pod: &Arc<Pod>, node: &str) {
        self.0.insert(key, Booking::new(pod, node, true));
    }

    /// The pod was not bound after all.
    pub fn release(&mut self, key: &Key) {
        if self.0.get(key).is_some_and(|held| held.assumed) {
            self.0.remove(key);
        }
    }

    /// Whether this very pod has a node.
    pub fn holds(&self, key: &Key, pod: &Pod) -> bool {
        self.0.get(key).is_some_and(|held| held.pod.uid() == pod.uid())
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Booking> {
        self.0.values()
    }
}

impl Booking {
    fn new(pod: &Arc<Pod>, node: &str, assumed: bool) -> Self {
        Self { pod: Arc::clone(pod), node: node.to_owned(), holds: Resources::of_pod(pod), assumed }
    }
}

/// The node that a pod is bound to.
pub fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

/// Whether the pod needs nothing any more. One that is being deleted still does.
pub fn has_ended(pod: &Pod) -> bool {
    matches!(crate::controller::pods::phase(pod), "Succeeded" | "Failed")
}

#[cfg(test)]
mod tests;
