//! The state of the scheduler and its reactions to events. No I/O; the time is an argument.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{ResourceExt, runtime::watcher::Event};

use crate::{
    cluster::{ClusterModel, PodKey, is_pending_for},
    queue::{PodBackoff, QueuedPodInfo, SchedulingQueue},
};

#[derive(Debug)]
pub struct SchedulingState {
    /// The value of `schedulerName` in pods.
    name: String,
    /// Nodes and the pods on them.
    pub cluster: ClusterModel,
    queue: SchedulingQueue,
    pods: RelistTracker<PodKey>,
    nodes: RelistTracker<String>,
}

/// A list in progress; it may be repeated at any time. Objects that are not in it are gone.
#[derive(Debug)]
struct RelistTracker<K> {
    is_complete: bool,
    listed: BTreeSet<K>,
}

impl<K> Default for RelistTracker<K> {
    fn default() -> Self {
        Self { is_complete: false, listed: BTreeSet::new() }
    }
}

impl SchedulingState {
    /// Creates the state of a scheduler with this name.
    pub fn new(name: &str) -> Self {
        let pods = RelistTracker::default();
        let nodes = RelistTracker::default();
        Self { name: name.to_owned(), cluster: ClusterModel::default(), queue: SchedulingQueue::default(), pods, nodes }
    }

    pub fn handle_pod_event(&mut self, event: Event<Pod>, now: Instant) {
        match event {
            Event::Init => self.pods.listed.clear(),
            Event::InitApply(pod) => {
                self.pods.listed.insert(PodKey::from_pod(&pod));
                self.update_pod(pod, now);
            }
            Event::Apply(pod) => self.update_pod(pod, now),
            Event::Delete(pod) => {
                self.queue.remove(&PodKey::from_pod(&pod));
                if self.cluster.remove_pod(&pod) {
                    self.queue.move_all_to_active(now);
                }
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.pods.listed);
                self.cluster.retain_pods(|key| listed.contains(key));
                self.queue.retain(|pod| listed.contains(&PodKey::from_pod(pod)));
                self.pods.is_complete = true;
                self.queue.move_all_to_active(now);
            }
        }
    }

    fn update_pod(&mut self, pod: Pod, now: Instant) {
        if self.cluster.update_pod(&pod) {
            self.queue.move_all_to_active(now);
        }
        if is_pending_for(&pod, &self.name) && !self.cluster.is_assigned(&pod) {
            self.queue.add(Arc::new(pod), now);
        } else if !is_pending_for(&pod, &self.name) {
            self.queue.remove(&PodKey::from_pod(&pod));
        }
    }

    pub fn handle_node_event(&mut self, event: Event<Node>, now: Instant) {
        match event {
            Event::Init => self.nodes.listed.clear(),
            Event::InitApply(node) => {
                self.nodes.listed.insert(node.name_any());
                self.cluster.update_node(node);
            }
            Event::Apply(node) => {
                if self.cluster.update_node(node) {
                    self.queue.move_all_to_active(now);
                }
            }
            Event::Delete(node) => self.cluster.remove_node(&node.name_any()),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.nodes.listed);
                self.cluster.retain_nodes(|name| listed.contains(name));
                self.nodes.is_complete = true;
                self.queue.move_all_to_active(now);
            }
        }
    }

    /// Makes unschedulable pods due after a change of the configuration.
    pub fn move_all_to_active(&mut self, now: Instant) {
        self.queue.move_all_to_active(now);
    }

    /// Takes the next due pod. None until all pods and nodes are listed: resources that look free may be in
    /// use.
    pub fn pop(&mut self, now: Instant) -> Option<QueuedPodInfo> {
        if self.pods.is_complete && self.nodes.is_complete { self.queue.pop(now) } else { None }
    }

    /// The time at which the next pod is due, if no event arrives.
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.next_due().filter(|_| self.pods.is_complete && self.nodes.is_complete)
    }

    /// Assigns a pod to a node before it is bound.
    pub fn assume_pod(&mut self, pod: &Pod, node: &str) {
        self.cluster.assume_pod(pod, node);
    }

    /// Marks a pod as unschedulable. Returns whether the reason is a new one.
    pub fn mark_unschedulable(&mut self, pod: &Pod, why: &str, backoff: PodBackoff, now: Instant) -> bool {
        self.queue.mark_unschedulable(pod, why, backoff, now)
    }

    pub fn confirm_binding(&mut self, pod: &Pod) {
        if self.cluster.is_assigned(pod) {
            self.queue.remove(&PodKey::from_pod(pod));
        }
    }

    /// Releases the resources of a pod that was not bound, and retries it.
    pub fn handle_binding_failure(&mut self, pod: &Pod, backoff: PodBackoff, now: Instant) {
        self.cluster.forget_pod(pod);
        self.queue.mark_failed(pod, backoff, now);
        self.queue.move_all_to_active(now);
    }

    /// Retries and reports a pod again whose reason could not be reported.
    pub fn clear_reported_reason(&mut self, pod: &Pod) {
        self.queue.clear_reported_reason(pod);
    }
}

#[cfg(test)]
mod tests;
