//! The queue of pending pods: which pod is tried next, and when an unschedulable pod is retried.
//!
//! An unschedulable pod is retried after a change that may help it, but not before its backoff is over; and
//! after [`MAX_UNSCHEDULABLE_DURATION`] in any case. The time is an argument.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use kube::ResourceExt;

use crate::cluster::PodKey;

/// kube-scheduler's value: a missed change delays a pod by no more than this.
pub const MAX_UNSCHEDULABLE_DURATION: Duration = Duration::from_secs(5 * 60);

/// A pod taken from the queue.
#[derive(Clone, Debug)]
pub struct QueuedPodInfo {
    pub pod: Arc<Pod>,
    /// The number of attempts, including this one.
    pub attempt: u32,
    /// The time in the queue since the last attempt.
    pub waited: Duration,
}

#[derive(Debug)]
struct PendingPodEntry {
    pod: Arc<Pod>,
    /// The start of the current wait.
    since: Instant,
    attempts: u32,
    state: PendingPodState,
    /// The last reported reason why no node is feasible.
    reported_reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingPodState {
    /// Waiting until `due`. A change can move `due` forward, but not before `earliest`.
    Until {
        due: Instant,
        earliest: Instant,
    },
    Trying,
}

#[derive(Debug, Default)]
pub struct SchedulingQueue(BTreeMap<PodKey, PendingPodEntry>);

impl SchedulingQueue {
    /// Adds or updates a pending pod. A pod whose spec or labels changed is due at once.
    pub fn add(&mut self, pod: Arc<Pod>, now: Instant) {
        let key = PodKey::from_pod(&pod);
        match self.0.get_mut(&key).filter(|known| known.pod.uid() == pod.uid()) {
            Some(known) => {
                let has_changed = known.pod.spec != pod.spec || known.pod.labels() != pod.labels();
                known.pod = pod;
                if let (true, PendingPodState::Until { due, .. }) = (has_changed, &mut known.state) {
                    *due = now;
                }
            }
            None => {
                let state = PendingPodState::Until { due: now, earliest: now };
                self.0.insert(key, PendingPodEntry { pod, since: now, attempts: 0, state, reported_reason: None });
            }
        }
    }

    pub fn remove(&mut self, key: &PodKey) {
        self.0.remove(key);
    }

    /// Removes all other pods.
    pub fn retain(&mut self, keep: impl Fn(&Pod) -> bool) {
        self.0.retain(|_, waiting| keep(&waiting.pod));
    }

    /// Makes all pods due after a change in the cluster, subject to their backoff.
    pub fn move_all_to_active(&mut self, now: Instant) {
        for waiting in self.0.values_mut() {
            if let PendingPodState::Until { due, earliest } = &mut waiting.state {
                *due = (*due).min(now.max(*earliest));
            }
        }
    }

    /// Takes the next due pod: the highest priority first, then the oldest.
    pub fn pop(&mut self, now: Instant) -> Option<QueuedPodInfo> {
        let is_due = |state: PendingPodState| matches!(state, PendingPodState::Until { due, .. } if due <= now);
        let ready = self.0.iter_mut().filter(|(_, waiting)| is_due(waiting.state));
        let (_, waiting) =
            ready.min_by(|(a_key, a), (b_key, b)| (queue_order(a), a_key).cmp(&(queue_order(b), b_key)))?;
        waiting.state = PendingPodState::Trying;
        waiting.attempts = waiting.attempts.saturating_add(1);
        let waited = now.saturating_duration_since(waiting.since);
        Some(QueuedPodInfo { pod: waiting.pod.clone(), attempt: waiting.attempts, waited })
    }

    /// The time at which the next pod is due, if nothing changes.
    pub fn next_due(&self) -> Option<Instant> {
        let due = |state| match state {
            PendingPodState::Until { due, .. } => Some(due),
            PendingPodState::Trying => None,
        };
        self.0.values().filter_map(|waiting| due(waiting.state)).min()
    }

    /// Marks a pod as unschedulable. Returns whether the reason is a new one.
    pub fn mark_unschedulable(&mut self, pod: &Pod, why: &str, backoff: PodBackoff, now: Instant) -> bool {
        let Some(waiting) = self.pod_being_tried(pod) else { return false };
        waiting.since = now;
        waiting.state = PendingPodState::Until {
            due: now + MAX_UNSCHEDULABLE_DURATION,
            earliest: now + backoff.delay_after(waiting.attempts),
        };
        let news = waiting.reported_reason.as_deref() != Some(why);
        waiting.reported_reason = Some(why.to_owned());
        news
    }

    /// Retries a pod after a failed request, with backoff.
    pub fn mark_failed(&mut self, pod: &Pod, backoff: PodBackoff, now: Instant) {
        if let Some(waiting) = self.pod_being_tried(pod) {
            let due = now + backoff.delay_after(waiting.attempts);
            (waiting.since, waiting.state, waiting.reported_reason) =
                (now, PendingPodState::Until { due, earliest: due }, None);
        }
    }

    /// Retries a pod whose reason could not be reported, with backoff; its next reason counts as a new one.
    pub fn clear_reported_reason(&mut self, pod: &Pod) {
        if let Some(waiting) = self.pod_being_tried(pod)
            && let PendingPodState::Until { due, earliest } = &mut waiting.state
        {
            *due = (*due).min(*earliest);
            waiting.reported_reason = None;
        }
    }

    fn pod_being_tried(&mut self, pod: &Pod) -> Option<&mut PendingPodEntry> {
        self.0.get_mut(&PodKey::from_pod(pod)).filter(|waiting| waiting.pod.uid() == pod.uid())
    }
}

fn queue_order(waiting: &PendingPodEntry) -> (Reverse<i32>, Option<Timestamp>) {
    let priority = waiting.pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
    (Reverse(priority), waiting.pod.creation_timestamp().map(|time| time.0))
}

/// The backoff of a pod: the least time until the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodBackoff {
    /// After the first attempt.
    pub initial: Duration,
    /// The upper limit.
    pub max: Duration,
}

impl PodBackoff {
    /// The delay after this number of attempts; it doubles each time.
    pub fn delay_after(self, attempts: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).min(31));
        self.initial.saturating_mul(doubled).min(self.max)
    }
}

#[cfg(test)]
mod tests;
