//! Keys that somebody has to look at.
//!
//! *Guarantees.* A key that is put in while it waits is looked at once; one that is put in while it is looked at is looked at
//! again afterwards; no key is looked at twice at the same time. What failed, or panicked, is tried again, later each time. *Not done*:
//! persistence; whoever starts puts everything in.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    future::Future,
    hash::Hash,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use tokio::{sync::Notify, time::Instant};

use crate::error::{Error, Result};

/// The first pause after a failure; each further one doubles it.
const PAUSE: Duration = Duration::from_millis(5);
/// What is mended by the next try is nothing to tell people of; after about ten tries it is.
const TOLD: Duration = Duration::from_secs(2);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// When to look again although nothing changed.
pub type Again = Option<Duration>;

/// Keys with the times at which they are due. Clones are the same queue.
pub struct Queue<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    bell: Notify,
}

struct State<T> {
    /// By time, then by the order in which they came.
    due: BTreeMap<(Instant, u64), T>,
    waiting: HashMap<T, (Instant, u64)>,
    running: HashSet<T>,
    failures: HashMap<T, u32>,
    sequence: u64,
}

impl<T> Clone for Queue<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State {
            due: BTreeMap::new(),
            waiting: HashMap::new(),
            running: HashSet::new(),
            failures: HashMap::new(),
            sequence: 0,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), bell: Notify::new() }))
    }
}

impl<T: Clone + Eq + Hash> Queue<T> {
    /// Somebody has to look at this now.
    pub fn add(&self, key: T) {
        self.add_at(key, Instant::now());
    }

    /// Somebody has to look at this after a while, or earlier if it is added earlier.
    pub fn add_after(&self, key: T, pause: Duration) {
        self.add_at(key, Instant::now() + pause);
    }

    fn add_at(&self, key: T, at: Instant) {
        self.state().put(key, at);
        self.0.bell.notify_one();
    }

    /// The state is free again when this returns: whoever looks at the key may add others.
    fn take(&self) -> Option<T> {
        self.state().take(Instant::now())
    }

    fn next(&self) -> Option<Instant> {
        self.state().next()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is due, at so many keys at once, for ever. What `look` returns says when to look again. `name` is for logs.
    pub async fn run<F>(self, name: &'static str, at_once: usize, look: impl Fn(T) -> F)
    where
        T: std::fmt::Display,
        F: Future<Output = Result<Again>>,
    {
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < at_once
                && let Some(key) = self.take()
            {
                // A panic is this key's own: the controller goes on with the others.
                let work = AssertUnwindSafe(look(key.clone())).catch_unwind();
                running.push(async move { (key, work.await.unwrap_or_else(|_| Err(Error::Panicked))) });
            }
            let next = self.next().filter(|_| running.len() < at_once);
            tokio::select! {
                Some((key, outcome)) = running.next() => self.done(name, key, outcome),
                () = self.0.bell.notified() => {}
                () = sleep_until(next) => {}
            }
        }
    }

    fn done(&self, name: &'static str, key: T, outcome: Result<Again>)
    where
        T: std::fmt::Display,
    {
        let mut state = self.state();
        state.running.remove(&key);
        match outcome {
            Ok(again) => {
                state.failures.remove(&key);
                if let Some(pause) = again {
                    state.put(key, Instant::now() + pause);
                }
            }
            Err(error) => {
                let pause = state.failed(&key);
                if pause >= TOLD && !error.is_conflict() {
                    tracing::warn!(controller = name, object = %key, %error, ?pause, "it is tried again");
                } else {
                    tracing::debug!(controller = name, object = %key, %error, ?pause, "it is tried again");
                }
                state.put(key, Instant::now() + pause);
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

impl<T: Clone + Eq + Hash> State<T> {
    fn put(&mut self, key: T, at: Instant) {
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

    /// The first that is due and that nobody looks at.
    fn take(&mut self, now: Instant) -> Option<T> {
        let ready = self.due.range(..=(now, u64::MAX)).find(|(_, key)| !self.running.contains(*key));
        let (place, key) = ready.map(|(place, key)| (*place, key.clone()))?;
        self.due.remove(&place);
        self.waiting.remove(&key);
        self.running.insert(key.clone());
        Some(key)
    }

    /// When the first is due that nobody looks at: the others wait for whoever does.
    fn next(&self) -> Option<Instant> {
        self.due.iter().find(|(_, key)| !self.running.contains(*key)).map(|((at, _), _)| *at)
    }

    fn failed(&mut self, key: &T) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = PAUSE.saturating_mul(1 << (*failures).min(16)).min(LONGEST);
        *failures += 1;
        pause
    }
}

#[cfg(test)]
mod tests;
