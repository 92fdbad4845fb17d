//! The bounded buffer in front of an exporter.
//!
//! *Guarantees.* What it holds, including what its workers are sending, never exceeds its capacity (but for a single
//! batch that is larger than the whole queue and was acknowledged already). Entries leave in the order in which they came.
//! Workers exist only while there is something to do.

use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kubewake_config::model::{Queue as Settings, QueueBatch, Sizer};
use kubewake_otlp::Limit;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{Batch, QueueGauge, Refusal};

#[cfg(test)]
mod tests;

/// Whoever waits for the delivery of an entry.
pub(super) type Waiter = oneshot::Sender<Result<(), Refusal>>;

/// What a worker has to do next.
pub(super) struct Job {
    /// To be sent one after the other.
    pub(super) batches: Vec<Batch>,
    /// To be told how it went.
    pub(super) waiters: Vec<Waiter>,
    /// What the job holds of the capacity.
    pub(super) size: Size,
    /// When the oldest of it came.
    pub(super) since: Instant,
}

/// A size in every unit that a queue may be told to count in, since that can change while it holds something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) requests: u64,
    items: u64,
    bytes: u64,
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// There is room again, or nothing more to do.
    room: Notify,
    /// There is enough to send, or the queue is draining.
    news: Notify,
}

#[derive(Default)]
struct State {
    entries: VecDeque<Entry>,
    /// What no worker has begun with.
    queued: Size,
    /// All that is held.
    held: Size,
    /// When the oldest of each job that a worker has begun with came.
    begun: Vec<Instant>,
    workers: u32,
    /// Batches that are not in the queue, and that their holder waits for all the same.
    guests: u32,
    draining: bool,
    closed: bool,
}

struct Entry {
    batch: Batch,
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
        gauge: &QueueGauge,
    ) -> Pushed {
        let size = Size::of(&batch);
        let mut state = self.state();
        if state.closed || !state.fits(size, settings, oversize_when_empty) {
            return Pushed::Full(batch, waiter);
        }
        state.held.add(size);
        state.queued.add(size);
        state.entries.push_back(Entry { batch, at: Instant::now(), waiter });
        state.show(settings.sizer, gauge);
        let start_worker = state.workers < settings.num_consumers;
        state.workers += u32::from(start_worker);
        let enough = settings.batch.as_ref().is_some_and(|batch| state.is_enough(batch));
        drop(state);
        if enough {
            self.news.notify_waiters();
        }
        Pushed::In { start_worker }
    }

    /// Ends when there may be room.
    pub(super) async fn room(&self, there_is: impl Fn() -> bool) {
        let notified = self.room.notified();
        tokio::pin!(notified);
        // Registered before the check, so that no wake-up falls between the two.
        notified.as_mut().enable();
        if !there_is() {
            notified.await;
        }
    }

    /// Whether it is worth trying to push this batch now.
    pub(super) fn has_room(&self, batch: &Batch, settings: &Settings) -> bool {
        let state = self.state();
        state.closed || state.fits(Size::of(batch), settings, true)
    }

    /// Whether there is room for such a batch when nothing else is there.
    pub(super) fn could_ever_take(settings: &Settings, batch: &Batch) -> bool {
        Size::of(batch).by(settings.sizer) <= settings.queue_size
    }

    /// What the calling worker should do next; `None` ends it.
    pub(super) async fn next(&self, settings: impl Fn() -> Option<Settings>) -> Option<Job> {
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            // Registered before the look, so that nothing that comes in between is missed.
            news.as_mut().enable();
            let settings = settings();
            let flush_at = match self.take(settings.as_ref()) {
                Take::Job(job) => return Some(job.cut(settings.and_then(|s| s.batch).as_ref())),
                Take::Nothing => return None,
                Take::NotYet(at) => at,
            };
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep_until(flush_at) => {}
            }
        }
    }

    fn take(&self, settings: Option<&Settings>) -> Take {
        let mut state = self.state();
        let take = match settings {
            Some(settings) if state.workers > settings.num_consumers.max(1) => Take::Nothing,
            settings => state.take(settings.and_then(|s| s.batch.as_ref())),
        };
        if matches!(take, Take::Nothing) {
            state.workers -= 1;
            if state.is_idle() {
                drop(state);
                self.room.notify_waiters();
            }
        }
        take
    }

    /// Gives back what a job held.
    pub(super) fn done(&self, size: Size, since: Instant, sizer: Sizer, gauge: &QueueGauge) {
        let mut state = self.state();
        state.held.subtract(size);
        if let Some(at) = state.begun.iter().position(|begun| *begun == since) {
            state.begun.swap_remove(at);
        }
        state.show(sizer, gauge);
        drop(state);
        self.room.notify_waiters();
    }

    /// Counts a batch that is on its way into the queue or past it.
    pub(super) fn enter(&self) {
        self.state().guests += 1;
    }

    /// Such a batch arrived, or was given up.
    pub(super) fn leave(&self) {
        let mut state = self.state();
        state.guests -= 1;
        if state.is_idle() {
            drop(state);
            self.room.notify_waiters();
        }
    }

    /// From now on nothing waits for company.
    pub(super) fn drain(&self) {
        self.state().draining = true;
        self.news.notify_waiters();
    }

    /// Whether nothing is held and nobody works.
    pub(super) fn is_idle(&self) -> bool {
        self.state().is_idle()
    }

    /// Ends when nothing is held and nobody works.
    pub(super) async fn idle(&self) {
        while !self.state().is_idle() {
            self.room(|| self.state().is_idle()).await;
        }
    }

    /// New limits are in force: says how many workers to start for them, and wakes whoever waits because of the old ones.
    pub(super) fn resized(&self, settings: Option<&Settings>, gauge: &QueueGauge) -> u32 {
        let mut state = self.state();
        let start = settings.map_or(0, |settings| {
            let waiting = u32::try_from(state.entries.len()).unwrap_or(u32::MAX);
            settings.num_consumers.saturating_sub(state.workers).min(waiting)
        });
        state.workers += start;
        state.show(settings.map(|s| s.sizer).unwrap_or_default(), gauge);
        drop(state);
        self.room.notify_waiters();
        self.news.notify_waiters();
        start
    }

    /// Takes out everything that no worker has begun with, and lets nothing more in.
    pub(super) fn close(&self) -> Vec<(Batch, Option<Waiter>)> {
        let mut state = self.state();
        state.closed = true;
        let rest = state.entries.drain(..).map(|entry| (entry.batch, entry.waiter)).collect();
        let queued = std::mem::take(&mut state.queued);
        state.held.subtract(queued);
        drop(state);
        self.room.notify_waiters();
        self.news.notify_waiters();
        rest
    }
}

enum Take {
    Job(Job),
    NotYet(Instant),
    Nothing,
}

impl State {
    fn is_idle(&self) -> bool {
        self.held == Size::default() && self.workers == 0 && self.guests == 0
    }

    /// Workers begin with the oldest, so that it is at the front or with one of them.
    fn show(&self, sizer: Sizer, gauge: &QueueGauge) {
        let oldest = self.begun.iter().copied().chain(self.entries.front().map(|entry| entry.at)).min();
        gauge.show(self.held.by(sizer), oldest);
    }

    fn fits(&self, size: Size, settings: &Settings, oversize_when_empty: bool) -> bool {
        let sum = self.held.by(settings.sizer).saturating_add(size.by(settings.sizer));
        sum <= settings.queue_size || (oversize_when_empty && self.held == Size::default())
    }

    fn is_enough(&self, settings: &QueueBatch) -> bool {
        self.queued.by(settings.sizer) >= settings.min_size
    }

    fn take(&mut self, batch: Option<&QueueBatch>) -> Take {
        let Some(front) = self.entries.front() else { return Take::Nothing };
        let Some(settings) = batch else { return Take::Job(self.gather(1, Sizer::Requests)) };
        let flush_at = front.at + settings.flush_timeout;
        if !self.is_enough(settings) && Instant::now() < flush_at && !self.draining {
            return Take::NotYet(flush_at);
        }
        Take::Job(
            self.gather(if settings.max_size > 0 { settings.max_size } else { settings.min_size }, settings.sizer),
        )
    }

    /// Takes entries until they are `enough`, joined into one batch.
    fn gather(&mut self, enough: u64, sizer: Sizer) -> Job {
        let since = self.entries.front().map_or_else(Instant::now, |entry| entry.at);
        self.begun.push(since);
        let mut job = Job { batches: Vec::new(), waiters: Vec::new(), size: Size::default(), since };
        while job.size.by(sizer) < enough.max(1)
            && let Some(entry) = self.entries.pop_front()
        {
            job.size.add(Size::of(&entry.batch));
            job.waiters.extend(entry.waiter);
            match job.batches.last_mut() {
                Some(joined) => joined.append(entry.batch),
                None => job.batches.push(entry.batch),
            }
        }
        self.queued.subtract(job.size);
        job
    }
}

impl Job {
    /// Cuts what is larger than a batch may be. It copies, so that it is not done while the queue is locked.
    fn cut(mut self, settings: Option<&QueueBatch>) -> Self {
        if let Some(limit) = settings.and_then(limit) {
            self.batches = self.batches.into_iter().flat_map(|batch| batch.split(limit)).collect();
        }
        self
    }
}

impl Size {
    fn of(batch: &Batch) -> Self {
        Self { requests: 1, items: batch.items() as u64, bytes: batch.bytes() as u64 }
    }

    fn by(&self, sizer: Sizer) -> u64 {
        match sizer {
            Sizer::Requests => self.requests,
            Sizer::Items => self.items,
            Sizer::Bytes => self.bytes,
        }
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.items += other.items;
        self.bytes += other.bytes;
    }

    fn subtract(&mut self, other: Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.items = self.items.saturating_sub(other.items);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

fn limit(settings: &QueueBatch) -> Option<Limit> {
    let max = NonZeroUsize::new(usize::try_from(settings.max_size).unwrap_or(usize::MAX))?;
    Some(match settings.sizer {
        Sizer::Bytes => Limit::Bytes(max),
        Sizer::Items | Sizer::Requests => Limit::Items(max),
    })
}
