//! The bounded buffer in front of an exporter.
//!
//! *Guarantees.* What it holds, including what its workers are sending, never exceeds its capacity (but for a single
//! batch that is larger than the whole queue and was acknowledged already). Entries leave in the order in which they came.
//! Workers exist only while there is something to do.

use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use kubewake_config::model::{Queue as Settings, QueueBatch, Sizer};
use kubewake_otlp::Limit;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{Batch, Refusal};

/// Whoever waits for the delivery of an entry.
pub(super) type Waiter = oneshot::Sender<Result<(), Refusal>>;

/// What a worker has to do next.
pub(super) struct Job {
    /// To be sent one after the other.
    pub(super) batches: Vec<Batch>,
    /// To be told how it went.
    pub(super) waiters: Vec<Waiter>,
    /// What the job holds of the capacity.
    pub(super) size: u64,
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// There is room again.
    room: Notify,
    /// Something came in, or the queue is draining.
    news: Notify,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    size: u64,
    workers: u32,
    draining: bool,
}

struct Entry {
    batch: Batch,
    size: u64,
    at: Instant,
    waiter: Option<Waiter>,
}

/// What became of a push.
pub(super) enum Pushed {
    /// It is in, and a further worker should be started if this says so.
    In { start_worker: bool },
    /// There is no room; here it is back.
    Full(Batch, Option<Waiter>),
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a batch at the end. `oversize_when_empty`: one that is larger than the queue is taken when nothing else is
    /// there, since it would otherwise wait forever.
    pub(super) fn push(
        &self,
        batch: Batch,
        waiter: Option<Waiter>,
        settings: &Settings,
        oversize_when_empty: bool,
        gauge: &AtomicU64,
    ) -> Pushed {
        let size = measure(settings.sizer, &batch);
        let mut state = self.state();
        let fits = state.size.saturating_add(size) <= settings.queue_size || (oversize_when_empty && state.size == 0);
        if !fits {
            return Pushed::Full(batch, waiter);
        }
        state.size += size;
        gauge.store(state.size, Ordering::Relaxed);
        state.entries.push_back(Entry { batch, size, at: Instant::now(), waiter });
        let start_worker = state.workers < settings.num_consumers;
        state.workers += u32::from(start_worker);
        drop(state);
        if settings.batch.is_some() {
            self.news.notify_waiters();
        }
        Pushed::In { start_worker }
    }

    /// Ends when there may be room.
    pub(super) async fn room(&self, gone: impl Fn() -> bool) {
        let notified = self.room.notified();
        tokio::pin!(notified);
        // Registered before the check, so that no wake-up falls between the two.
        notified.as_mut().enable();
        if !gone() {
            notified.await;
        }
    }

    /// Whether a batch of this size would be taken now.
    pub(super) fn has_room(&self, batch: &Batch, settings: &Settings) -> bool {
        let state = self.state();
        state.size == 0 || state.size.saturating_add(measure(settings.sizer, batch)) <= settings.queue_size
    }

    /// What the calling worker should do next; `None` ends it.
    pub(super) async fn next(&self, settings: impl Fn() -> Option<Settings>) -> Option<Job> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // Registered before the look, so that nothing that comes in between is missed.
            news.as_mut().enable();
            let flush_at = match self.take(&settings) {
                Take::Job(job) => return Some(job),
                Take::Nothing => return None,
                Take::NotYet(at) => at,
            };
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep_until(flush_at) => {}
            }
        }
    }

    fn take(&self, settings: &impl Fn() -> Option<Settings>) -> Take {
        let batch = settings().and_then(|s| s.batch);
        let mut state = self.state();
        let take = state.take(batch.as_ref());
        if matches!(take, Take::Nothing) {
            state.workers -= 1;
        }
        take
    }

    /// Gives back what a job held.
    pub(super) fn done(&self, size: u64, gauge: &AtomicU64) {
        let mut state = self.state();
        state.size = state.size.saturating_sub(size);
        gauge.store(state.size, Ordering::Relaxed);
        drop(state);
        self.room.notify_waiters();
    }

    /// From now on nothing waits for company.
    pub(super) fn drain(&self) {
        self.state().draining = true;
        self.news.notify_waiters();
    }

    /// Whether nothing is held and nobody works.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.size == 0 && state.workers == 0
    }

    /// Wakes whoever waits for room, because the limits may have changed.
    pub(super) fn resized(&self) {
        self.room.notify_waiters();
        self.news.notify_waiters();
    }

    /// Takes out everything that no worker has begun with.
    pub(super) fn take_rest(&self) -> Vec<Batch> {
        let mut state = self.state();
        let rest: Vec<Entry> = state.entries.drain(..).collect();
        state.size = state.size.saturating_sub(rest.iter().map(|e| e.size).sum());
        rest.into_iter().map(|e| e.batch).collect()
    }
}

enum Take {
    Job(Job),
    NotYet(Instant),
    Nothing,
}

impl State {
    fn take(&mut self, batch: Option<&QueueBatch>) -> Take {
        let Some(front) = self.entries.front() else { return Take::Nothing };
        let Some(settings) = batch else {
            return self.entries.pop_front().map_or(Take::Nothing, |entry| Take::Job(entry.into_job()));
        };
        let flush_at = front.at + settings.flush_timeout;
        let held: u64 = self.entries.iter().map(|e| measure(settings.sizer, &e.batch)).sum();
        if held < settings.min_size && Instant::now() < flush_at && !self.draining {
            return Take::NotYet(flush_at);
        }
        Take::Job(self.merge(settings))
    }

    /// Takes entries until they reach the size at which a batch leaves.
    fn merge(&mut self, settings: &QueueBatch) -> Job {
        let enough = if settings.max_size > 0 { settings.max_size } else { settings.min_size };
        let mut job = Job { batches: Vec::new(), waiters: Vec::new(), size: 0 };
        let mut joined: Option<Batch> = None;
        while let Some(entry) = self.entries.pop_front() {
            job.size += entry.size;
            job.waiters.extend(entry.waiter);
            match &mut joined {
                Some(batch) => batch.append(entry.batch),
                none => *none = Some(entry.batch),
            }
            if joined.as_ref().is_some_and(|b| measure(settings.sizer, b) >= enough.max(1)) {
                break;
            }
        }
        job.batches = joined.map_or_else(Vec::new, |batch| match limit(settings) {
            Some(limit) => batch.split(limit),
            None => vec![batch],
        });
        job
    }
}

impl Entry {
    fn into_job(self) -> Job {
        Job { batches: vec![self.batch], waiters: self.waiter.into_iter().collect(), size: self.size }
    }
}

fn limit(settings: &QueueBatch) -> Option<Limit> {
    let max = NonZeroUsize::new(usize::try_from(settings.max_size).unwrap_or(usize::MAX))?;
    Some(match settings.sizer {
        Sizer::Bytes => Limit::Bytes(max),
        Sizer::Items | Sizer::Requests => Limit::Items(max),
    })
}

fn measure(sizer: Sizer, batch: &Batch) -> u64 {
    match sizer {
        Sizer::Requests => 1,
        Sizer::Items => batch.items() as u64,
        Sizer::Bytes => batch.bytes() as u64,
    }
}
