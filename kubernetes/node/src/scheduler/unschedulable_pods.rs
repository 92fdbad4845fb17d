//! Unschedulable pods, and when they were last reported.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::time::Instant;

use super::{cache::ClusterEvent, inter_pod_affinity::has_pod_constraints};
use crate::key::NamespacedKey;

#[derive(Debug, Default)]
pub struct UnschedulablePods(HashMap<NamespacedKey, UnschedulablePod>);

#[derive(Debug)]
struct UnschedulablePod {
    /// The highest priority first, then the oldest.
    order: (Reverse<i32>, Option<jiff::Timestamp>),
    /// Whether a new pod may help it, and not only freed resources.
    has_pod_constraints: bool,
    reason: String,
    reported_at: Instant,
}

impl UnschedulablePods {
    /// Adds a pod. Returns whether to report it: the reason is new, or was reported long ago.
    pub fn add(&mut self, key: NamespacedKey, pod: &Pod, why: &str, now: Instant, again: Duration) -> bool {
        if self.0.get(&key).is_some_and(|one| one.reason == why && now.duration_since(one.reported_at) < again) {
            return false;
        }
        let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
        let order = (Reverse(priority), pod.creation_timestamp().map(|time| time.0));
        let sociable = pod.spec.as_ref().is_some_and(has_pod_constraints);
        self.0.insert(
            key,
            UnschedulablePod { order, has_pod_constraints: sociable, reason: why.to_owned(), reported_at: now },
        );
        true
    }

    pub fn remove(&mut self, key: &NamespacedKey) {
        self.0.remove(key);
    }

    /// The pods that an event may help, in the order in which they are tried.
    pub fn pods_helped_by(&self, by: ClusterEvent) -> Vec<NamespacedKey> {
        let helped = self.0.iter().filter(|(_, one)| by == ClusterEvent::ResourcesFreed || one.has_pod_constraints);
        let mut all: Vec<_> = helped.map(|(key, one)| (&one.order, key)).collect();
        all.sort();
        all.into_iter().map(|(_, key)| key.clone()).collect()
    }
}
