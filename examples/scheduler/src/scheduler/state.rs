//! What the scheduler knows, and what follows from what it sees. No I/O; the time is given by the caller.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{ResourceExt, runtime::watcher::Event};

use crate::{
    cluster::{Cluster, Key, waits_for},
    queue::{Backoff, Queue, Turn},
};

/// Everything that is known.
#[derive(Debug)]
pub struct State {
    /// The name that pods ask for us by.
    name: String,
    /// Nodes and the pods on them.
    pub cluster: Cluster,
    queue: Queue,
    pods: Listing<Key>,
    nodes: Listing<String>,
}

/// A list of everything, which may come again at any time: what is not in it is gone.
#[derive(Debug)]
struct Listing<K> {
    whole: bool,
    listed: BTreeSet<K>,
}

impl<K> Default for Listing<K> {
    fn default() -> Self {
        Self { whole: false, listed: BTreeSet::new() }
    }
}

impl State {
    /// Of a scheduler that pods ask for by this name.
    pub fn new(name: &str) -> Self {
        let (pods, nodes) = (Listing::default(), Listing::default());
        Self { name: name.to_owned(), cluster: Cluster::default(), queue: Queue::default(), pods, nodes }
    }

    /// A pod was seen.
    pub fn see_pod(&mut self, event: Event<Pod>, now: Instant) {
        match event {
            Event::Init => self.pods.listed.clear(),
            Event::InitApply(pod) => {
                self.pods.listed.insert(Key::of(&pod));
                self.put_pod(pod, now);
            }
            Event::Apply(pod) => self.put_pod(pod, now),
            Event::Delete(pod) => {
                self.queue.remove(&Key::of(&pod));
                if self.cluster.lose_pod(&pod) {
                    self.queue.wake(now);
                }
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.pods.listed);
                self.cluster.keep_pods(|key| listed.contains(key));
                self.queue.keep(|pod| listed.contains(&Key::of(pod)));
                self.pods.whole = true;
                self.queue.wake(now);
            }
        }
    }

    fn put_pod(&mut self, pod: Pod, now: Instant) {
        if self.cluster.see_pod(&pod) {
            self.queue.wake(now);
        }
        if waits_for(&pod, &self.name) && !self.cluster.holds(&pod) {
            self.queue.add(Arc::new(pod), now);
        } else if !waits_for(&pod, &self.name) {
            self.queue.remove(&Key::of(&pod));
        }
    }

    /// A node was seen.
    pub fn see_node(&mut self, event: Event<Node>, now: Instant) {
        match event {
            Event::Init => self.nodes.listed.clear(),
            Event::InitApply(node) => {
                self.nodes.listed.insert(node.name_any());
                self.cluster.see_node(node);
            }
            Event::Apply(node) => {
                if self.cluster.see_node(node) {
                    self.queue.wake(now);
                }
            }
            Event::Delete(node) => self.cluster.lose_node(&node.name_any()),
            Event::InitDone => {
                let listed = std::mem::take(&mut self.nodes.listed);
                self.cluster.keep_nodes(|name| listed.contains(name));
                self.nodes.whole = true;
                self.queue.wake(now);
            }
        }
    }

    /// There is another configuration: who fits nowhere may fit now.
    pub fn wake(&mut self, now: Instant) {
        self.queue.wake(now);
    }

    /// The pod whose turn it is. Nobody's, as long as not all pods and nodes are known: what looks free may be taken.
    pub fn next(&mut self, now: Instant) -> Option<Turn> {
        if self.pods.whole && self.nodes.whole { self.queue.next(now) } else { None }
    }

    /// When somebody's turn comes, if nothing is seen.
    pub fn due(&self) -> Option<Instant> {
        self.queue.due().filter(|_| self.pods.whole && self.nodes.whole)
    }

    /// The pod is about to be bound.
    pub fn assume(&mut self, pod: &Pod, node: &str) {
        self.cluster.assume(pod, node);
    }

    /// The pod fits nowhere. Answers whether that is news.
    pub fn nowhere(&mut self, pod: &Pod, why: &str, backoff: Backoff, now: Instant) -> bool {
        self.queue.nowhere(pod, why, backoff, now)
    }

    /// The pod is bound.
    pub fn bound(&mut self, pod: &Pod) {
        if self.cluster.holds(pod) {
            self.queue.remove(&Key::of(pod));
        }
    }

    /// The API server did not bind the pod: its room is free again, and it is tried again.
    pub fn not_bound(&mut self, pod: &Pod, backoff: Backoff, now: Instant) {
        self.cluster.release(pod);
        self.queue.failed(pod, backoff, now);
        self.queue.wake(now);
    }

    /// Nobody heard why the pod fits nowhere: it is tried again, and told again.
    pub fn not_told(&mut self, pod: &Pod) {
        self.queue.not_told(pod);
    }
}

#[cfg(test)]
mod tests;
