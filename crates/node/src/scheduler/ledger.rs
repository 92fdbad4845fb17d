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

/// What a change means for pods that fit nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A node may have more room.
    Room,
    /// A node has another pod, or one with other labels.
    Pod,
}

/// All pods on nodes.
#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<Key, Booking>);

impl Ledger {
    /// A pod as it is now, if it still is.
    pub fn see(&mut self, key: &Key, pod: Option<&Arc<Pod>>) -> Option<News> {
        let held = self.0.get(key);
        let removed = |ledger: &mut Self| ledger.0.remove(key).map(|_| News::Room);
        let Some(pod) = pod.filter(|pod| !has_ended(pod)) else { return removed(self) };
        match node_of(pod) {
            Some(node) => match self.0.insert(key.clone(), Booking::new(pod, node, false)) {
                Some(before) if before.pod.uid() != pod.uid() || before.node != node => Some(News::Room),
                Some(before) if before.pod.labels() == pod.labels() => None,
                _ => Some(News::Pod),
            },
            None if held.is_some_and(|held| held.assumed && held.pod.uid() == pod.uid()) => None,
            None => removed(self),
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
