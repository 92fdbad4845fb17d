//! A work queue of keys.
//!
//! *Guaranteed*: a key that is added while it waits is processed once; a key that is added while it is
//! processed is processed again afterwards; no key is processed twice at the same time. A key whose processing
//! failed or panicked is retried with backoff. *Not done*: persistence; a restart adds all keys again.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    future::Future,
    hash::Hash,
    panic::AssertUnwindSafe,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use kubewake_runtime::lock::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::error::{ClusterError, Result};

/// The first retry delay; it doubles with each failure.
const INITIAL_RETRY_DELAY: Duration = Duration::from_millis(5);
/// Retries are logged as warnings from this delay on, after about ten failures: earlier ones often resolve
/// themselves.
const MIN_WARNED_RETRY_DELAY: Duration = Duration::from_secs(2);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// The delay until a key is processed again without a change.
pub type RequeueAfter = Option<Duration>;

/// A queue of keys with due times. Clones share the queue.
pub struct WorkQueue<T>(Arc<WorkQueueShared<T>>);

struct WorkQueueShared<T> {
    state: Mutex<WorkQueueState<T>>,
    wakeup: Notify,
}

struct WorkQueueState<T> {
    /// By due time, then in the order of addition.
    due: BTreeMap<(Instant, u64), T>,
    waiting: HashMap<T, (Instant, u64)>,
    running: HashSet<T>,
    failures: HashMap<T, u32>,
    sequence: u64,
}

impl<T> Clone for WorkQueue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for WorkQueue<T> {
    fn default() -> Self {
        let state = WorkQueueState {
            due: BTreeMap::new(),
            waiting: HashMap::new(),
            running: HashSet::new(),
            failures: HashMap::new(),
            sequence: 0,
        };
        Self(Arc::new(WorkQueueShared { state: Mutex::new(state), wakeup: Notify::new() }))
    }
}

impl<T: Clone + Eq + Hash> WorkQueue<T> {
    /// Adds a key that is due now.
    pub fn add(&self, key: T) {
        self.add_due(key, Instant::now());
    }

    /// Adds a key that is due after a delay, unless it is due earlier already.
    pub fn add_after(&self, key: T, pause: Duration) {
        self.add_due(key, Instant::now() + pause);
    }

    fn add_due(&self, key: T, at: Instant) {
        self.lock_state().schedule(key, at);
        self.0.wakeup.notify_one();
    }

    /// The lock is released on return, so that the processing of a key may add others.
    fn take_due(&self) -> Option<T> {
        self.lock_state().take_due(Instant::now())
    }

    fn next_due(&self) -> Option<Instant> {
        self.lock_state().next_due()
    }

    fn lock_state(&self) -> MutexGuard<'_, WorkQueueState<T>> {
        self.0.state.lock()
    }

    /// Processes due keys for ever, up to `at_once` keys concurrently. `look` returns when to process the key
    /// again. `name` is for logs.
    pub async fn run_workers<F>(self, name: &'static str, at_once: usize, look: impl Fn(T) -> F)
    where
        T: std::fmt::Display,
        F: Future<Output = Result<RequeueAfter>>,
    {
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < at_once
                && let Some(key) = self.take_due()
            {
                // A panic affects only this key: the controller continues with the others.
                let work = AssertUnwindSafe(look(key.clone())).catch_unwind();
                running.push(async move { (key, work.await.unwrap_or_else(|_| Err(ClusterError::Panicked))) });
            }
            let next = self.next_due().filter(|_| running.len() < at_once);
            tokio::select! {
                Some((key, outcome)) = running.next() => self.finish_key(name, key, outcome),
                () = self.0.wakeup.notified() => {}
                () = sleep_until(next) => {}
            }
        }
    }

    fn finish_key(&self, name: &'static str, key: T, outcome: Result<RequeueAfter>)
    where
        T: std::fmt::Display,
    {
        let mut state = self.lock_state();
        state.running.remove(&key);
        match outcome {
            Ok(again) => {
                state.failures.remove(&key);
                if let Some(pause) = again {
                    state.schedule(key, Instant::now() + pause);
                }
            }
            Err(error) => {
                let pause = state.record_failure(&key);
                if pause >= MIN_WARNED_RETRY_DELAY && !error.is_conflict() {
                    tracing::warn!(controller = name, object = %key, %error, ?pause, "sync failed, retrying after the pause");
                } else {
                    tracing::debug!(controller = name, object = %key, %error, ?pause, "sync failed, retrying after the pause");
                }
                state.schedule(key, Instant::now() + pause);
            }
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl<T: Clone + Eq + Hash> WorkQueueState<T> {
    fn schedule(&mut self, key: T, at: Instant) {
        if let Some(held) = self.waiting.get(&key).copied() {
            if held.0 <= at {
                return;
            }
            self.due.remove(&held);
        }
        self.sequence += 1;
        self.due.insert((at, self.sequence), key.clone());
        self.waiting.insert(key, (at, self.sequence));
    }

    /// Takes the first due key that is not in progress.
    fn take_due(&mut self, now: Instant) -> Option<T> {
        let ready = self.due.range(..=(now, u64::MAX)).find(|(_, key)| !self.running.contains(*key));
        let (place, key) = ready.map(|(place, key)| (*place, key.clone()))?;
        self.due.remove(&place);
        self.waiting.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// The due time of the first key that is not in progress: the others wait for their worker.
    fn next_due(&self) -> Option<Instant> {
        self.due.iter().find(|(_, key)| !self.running.contains(*key)).map(|((at, _), _)| *at)
    }

    fn record_failure(&mut self, key: &T) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = INITIAL_RETRY_DELAY.saturating_mul(1 << (*failures).min(16)).min(MAX_RETRY_DELAY);
        *failures += 1;
        pause
    }
}

#[cfg(test)]
mod tests;
