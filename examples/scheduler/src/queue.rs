//! Pods that wait for a node: who is tried next, and when who fits nowhere is tried again.
//!
//! A pod that fits nowhere is tried again when something changed that may help it, but not before its backoff is over; and after
//! [`AGAIN`] in any case. The time is given by the caller.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use k8s_openapi::{api::core::v1::Pod, jiff::Timestamp};
use kube::ResourceExt;

use crate::cluster::Key;

/// kube-scheduler's: no missed change leaves a pod alone for longer.
pub const AGAIN: Duration = Duration::from_secs(5 * 60);

/// A pod whose turn it is.
#[derive(Clone, Debug)]
pub struct Turn {
    /// The pod.
    pub pod: Arc<Pod>,
    /// How often it was tried, this time included.
    pub attempt: u32,
    /// How long it waited for this turn.
    pub waited: Duration,
}

#[derive(Debug)]
struct Waiting {
    pod: Arc<Pod>,
    /// Since when it waits for its next turn.
    since: Instant,
    attempts: u32,
    state: State,
    /// Why it fits nowhere, as was told last.
    why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It will be tried then, or when it is woken, but not before `earliest`.
    Until { due: Instant, earliest: Instant },
    /// It is being tried.
    Trying,
}

/// All pods that wait.
#[derive(Debug, Default)]
pub struct Queue(BTreeMap<Key, Waiting>);

impl Queue {
    /// A pod that waits for us, as it is now. One that asks for something else than before is tried at once.
    pub fn add(&mut self, pod: Arc<Pod>, now: Instant) {
        let key = Key::of(&pod);
        match self.0.get_mut(&key).filter(|known| known.pod.uid() == pod.uid()) {
            Some(known) => {
                let anew = known.pod.spec != pod.spec || known.pod.labels() != pod.labels();
                known.pod = pod;
                if let (true, State::Until { due, .. }) = (anew, &mut known.state) {
                    *due = now;
                }
            }
            None => {
                let state = State::Until { due: now, earliest: now };
                self.0.insert(key, Waiting { pod, since: now, attempts: 0, state, why: None });
            }
        }
    }

    /// A pod that waits no more.
    pub fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Only these wait.
    pub fn keep(&mut self, keep: impl Fn(&Pod) -> bool) {
        self.0.retain(|_, waiting| keep(&waiting.pod));
    }

    /// Something changed: those that fit nowhere may fit now.
    pub fn wake(&mut self, now: Instant) {
        for waiting in self.0.values_mut() {
            if let State::Until { due, earliest } = &mut waiting.state {
                *due = (*due).min(now.max(*earliest));
            }
        }
    }

    /// The pod whose turn it is: of those that may be tried the most important, then the oldest.
    pub fn next(&mut self, now: Instant) -> Option<Turn> {
        let is_due = |state: State| matches!(state, State::Until { due, .. } if due <= now);
        let ready = self.0.iter_mut().filter(|(_, waiting)| is_due(waiting.state));
        let (_, waiting) = ready.min_by(|(a_key, a), (b_key, b)| (order(a), a_key).cmp(&(order(b), b_key)))?;
        waiting.state = State::Trying;
        waiting.attempts = waiting.attempts.saturating_add(1);
        let waited = now.saturating_duration_since(waiting.since);
        Some(Turn { pod: waiting.pod.clone(), attempt: waiting.attempts, waited })
    }

    /// When somebody's turn comes, if nothing changes.
    pub fn due(&self) -> Option<Instant> {
        let due = |state| match state {
            State::Until { due, .. } => Some(due),
            State::Trying => None,
        };
        self.0.values().filter_map(|waiting| due(waiting.state)).min()
    }

    /// The pod fits nowhere. Answers whether that is news.
    pub fn nowhere(&mut self, pod: &Pod, why: &str, backoff: Backoff, now: Instant) -> bool {
        let Some(waiting) = self.tried(pod) else { return false };
        waiting.since = now;
        waiting.state = State::Until { due: now + AGAIN, earliest: now + backoff.after(waiting.attempts) };
        let news = waiting.why.as_deref() != Some(why);
        waiting.why = Some(why.to_owned());
        news
    }

    /// The API server did not do what it was asked: the pod is tried again after its backoff.
    pub fn failed(&mut self, pod: &Pod, backoff: Backoff, now: Instant) {
        if let Some(waiting) = self.tried(pod) {
            let due = now + backoff.after(waiting.attempts);
            (waiting.since, waiting.state, waiting.why) = (now, State::Until { due, earliest: due }, None);
        }
    }

    /// Nobody heard why the pod fits nowhere: it is tried again after its backoff, and what comes of it is news.
    pub fn not_told(&mut self, pod: &Pod) {
        if let Some(waiting) = self.tried(pod)
            && let State::Until { due, earliest } = &mut waiting.state
        {
            *due = (*due).min(*earliest);
            waiting.why = None;
        }
    }

    fn tried(&mut self, pod: &Pod) -> Option<&mut Waiting> {
        self.0.get_mut(&Key::of(pod)).filter(|waiting| waiting.pod.uid() == pod.uid())
    }
}

fn order(waiting: &Waiting) -> (Reverse<i32>, Option<Timestamp>) {
    let priority = waiting.pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or(0);
    (Reverse(priority), waiting.pod.creation_timestamp().map(|time| time.0))
}

/// How long a pod waits at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first attempt.
    pub first: Duration,
    /// After many.
    pub most: Duration,
}

impl Backoff {
    /// Twice as long after each attempt.
    pub fn after(self, attempts: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1).min(31));
        self.first.saturating_mul(doubled).min(self.most)
    }
}

#[cfg(test)]
mod tests;
