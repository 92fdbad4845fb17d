//! The bounded buffer in front of an exporter.
//!
//! *Guarantees.* Its contents, including batches that workers are sending, never exceed its capacity (except
//! for a single batch that is larger than the whole queue and was acknowledged already). Entries leave in order
//! of arrival. Workers exist only while there is work.

use std::{collections::VecDeque, num::NonZeroUsize, sync::MutexGuard};

use kubewake_config::model::{QueueBatch, QueueConfig as Settings, QueueSizer};
use kubewake_otlp::SplitLimit;
use kubewake_runtime::lock::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::Instant,
};

use super::{Batch, QueueGauge, Refusal};

#[cfg(test)]
mod tests;

/// Reports the delivery of an entry to its waiting sender.
pub(super) type ResultSender = oneshot::Sender<Result<(), Refusal>>;

/// The next work of a worker.
pub(super) struct SendJob {
    /// Sent one after the other.
    pub(super) batches: Vec<Batch>,
    /// Senders that wait for the result.
    pub(super) waiters: Vec<ResultSender>,
    /// The share of the capacity that the job occupies.
    pub(super) size: QueueSize,
    /// When its oldest entry was enqueued.
    pub(super) oldest_enqueued_at: Instant,
}

/// A size in every unit that a queue can count in, since the unit can change while it holds batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueueSize {
    pub(super) requests: u64,
    items: u64,
    bytes: u64,
}

#[derive(Default)]
pub(super) struct BatchQueue {
    state: Mutex<QueueState>,
    /// Room was freed, or the queue became idle.
    room_freed: Notify,
    /// There is enough to send, or the queue is draining.
    work_ready: Notify,
}

#[derive(Default)]
struct QueueState {
    entries: VecDeque<QueueEntry>,
    /// The entries that no worker has taken yet.
    queued: QueueSize,
    held: QueueSize,
    /// When the oldest entry of each job in progress was enqueued.
    in_progress_since: Vec<Instant>,
    workers: u32,
    /// Batches outside of the queue that draining has to wait for.
    in_flight: u32,
    draining: bool,
    closed: bool,
}

struct QueueEntry {
    batch: Batch,
    enqueued_at: Instant,
    waiter: Option<ResultSender>,
}

/// The result of a push.
pub(super) enum PushResult {
    /// The batch is enqueued; the caller starts another worker if `start_worker` is set.
    Accepted { start_worker: bool },
    /// There is no room; the batch is returned.
    Full(Batch, Option<ResultSender>),
}

impl BatchQueue {
    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// Appends a batch. With `oversize_when_empty`, a batch that is larger than the queue is taken when the
    /// queue is empty, since it would otherwise wait forever.
    pub(super) fn push(
        &self,
        batch: Batch,
        waiter: Option<ResultSender>,
        settings: &Settings,
        oversize_when_empty: bool,
        gauge: &QueueGauge,
    ) -> PushResult {
        let size = QueueSize::for_batch(&batch);
        let mut state = self.state();
        if state.closed || !state.fits(size, settings, oversize_when_empty) {
            return PushResult::Full(batch, waiter);
        }
        state.held.add(size);
        state.queued.add(size);
        state.entries.push_back(QueueEntry { batch, enqueued_at: Instant::now(), waiter });
        state.update_gauge(settings.sizer, gauge);
        let start_worker = state.workers < settings.num_consumers;
        state.workers += u32::from(start_worker);
        let enough = settings.batch.as_ref().is_some_and(|batch| state.is_enough(batch));
        drop(state);
        if enough {
            self.work_ready.notify_waiters();
        }
        PushResult::Accepted { start_worker }
    }

    /// Ends when there may be room.
    pub(super) async fn wait_for_room(&self, there_is: impl Fn() -> bool) {
        let notified = self.room_freed.notified();
        tokio::pin!(notified);
        // Registered before the check, so that no notification between the two is missed.
        notified.as_mut().enable();
        if !there_is() {
            notified.await;
        }
    }

    /// Whether pushing this batch now may succeed.
    pub(super) fn has_room(&self, batch: &Batch, settings: &Settings) -> bool {
        let state = self.state();
        state.closed || state.fits(QueueSize::for_batch(batch), settings, true)
    }

    /// Whether the batch would have room in an empty queue.
    pub(super) fn could_ever_take(settings: &Settings, batch: &Batch) -> bool {
        QueueSize::for_batch(batch).in_unit_of(settings.sizer) <= settings.queue_size
    }

    /// The next job of the calling worker; `None` ends the worker.
    pub(super) async fn next_job(&self, settings: impl Fn() -> Option<Settings>) -> Option<SendJob> {
        loop {
            let news = self.work_ready.notified();
            tokio::pin!(news);
            // Registered before the check, so that nothing that is enqueued in between is missed.
            news.as_mut().enable();
            let settings = settings();
            let flush_at = match self.take(settings.as_ref()) {
                TakeResult::Job(job) => return Some(job.split_oversized(settings.and_then(|s| s.batch).as_ref())),
                TakeResult::Nothing => return None,
                TakeResult::NotYet(at) => at,
            };
            tokio::select! {
                () = news => {}
                () = tokio::time::sleep_until(flush_at) => {}
            }
        }
    }

    fn take(&self, settings: Option<&Settings>) -> TakeResult {
        let mut state = self.state();
        let take = match settings {
            Some(settings) if state.workers > settings.num_consumers.max(1) => TakeResult::Nothing,
            settings => state.take(settings.and_then(|s| s.batch.as_ref())),
        };
        if matches!(take, TakeResult::Nothing) {
            state.workers -= 1;
            if state.is_idle() {
                drop(state);
                self.room_freed.notify_waiters();
            }
        }
        take
    }

    /// Releases the capacity of a finished job.
    pub(super) fn finish_job(&self, size: QueueSize, since: Instant, sizer: QueueSizer, gauge: &QueueGauge) {
        let mut state = self.state();
        state.held.subtract(size);
        if let Some(at) = state.in_progress_since.iter().position(|begun| *begun == since) {
            state.in_progress_since.swap_remove(at);
        }
        state.update_gauge(sizer, gauge);
        drop(state);
        self.room_freed.notify_waiters();
    }

    /// Counts a batch that is outside of the queue.
    pub(super) fn begin_in_flight(&self) {
        self.state().in_flight += 1;
    }

    /// A batch outside of the queue was enqueued, delivered or given up.
    pub(super) fn end_in_flight(&self) {
        let mut state = self.state();
        state.in_flight -= 1;
        if state.is_idle() {
            drop(state);
            self.room_freed.notify_waiters();
        }
    }

    /// From now on entries are sent at once instead of waiting for a full batch.
    pub(super) fn start_draining(&self) {
        self.state().draining = true;
        self.work_ready.notify_waiters();
    }

    /// Whether the queue is empty, without workers, and without batches in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.state().is_idle()
    }

    /// Ends when the queue is idle.
    pub(super) async fn wait_until_idle(&self) {
        while !self.state().is_idle() {
            self.wait_for_room(|| self.state().is_idle()).await;
        }
    }

    /// Applies new limits: returns how many workers to start for them, and wakes callers that wait because of
    /// the old ones.
    pub(super) fn apply_limits(&self, settings: Option<&Settings>, gauge: &QueueGauge) -> u32 {
        let mut state = self.state();
        let start = settings.map_or(0, |settings| {
            let waiting = u32::try_from(state.entries.len()).unwrap_or(u32::MAX);
            settings.num_consumers.saturating_sub(state.workers).min(waiting)
        });
        state.workers += start;
        state.update_gauge(settings.map(|s| s.sizer).unwrap_or_default(), gauge);
        drop(state);
        self.room_freed.notify_waiters();
        self.work_ready.notify_waiters();
        start
    }

    /// Takes out all entries that no worker has taken, and closes the queue to new ones.
    pub(super) fn close(&self) -> Vec<(Batch, Option<ResultSender>)> {
        let mut state = self.state();
        state.closed = true;
        let rest = state.entries.drain(..).map(|entry| (entry.batch, entry.waiter)).collect();
        let queued = std::mem::take(&mut state.queued);
        state.held.subtract(queued);
        drop(state);
        self.room_freed.notify_waiters();
        self.work_ready.notify_waiters();
        rest
    }
}

enum TakeResult {
    Job(SendJob),
    NotYet(Instant),
    Nothing,
}

impl QueueState {
    fn is_idle(&self) -> bool {
        self.held == QueueSize::default() && self.workers == 0 && self.in_flight == 0
    }

    /// Workers take the oldest entries first, so the oldest is at the front or in a job in progress.
    fn update_gauge(&self, sizer: QueueSizer, gauge: &QueueGauge) {
        let oldest =
            self.in_progress_since.iter().copied().chain(self.entries.front().map(|entry| entry.enqueued_at)).min();
        gauge.set(self.held.in_unit_of(sizer), oldest);
    }

    fn fits(&self, size: QueueSize, settings: &Settings, oversize_when_empty: bool) -> bool {
        let sum = self.held.in_unit_of(settings.sizer).saturating_add(size.in_unit_of(settings.sizer));
        sum <= settings.queue_size || (oversize_when_empty && self.held == QueueSize::default())
    }

    fn is_enough(&self, settings: &QueueBatch) -> bool {
        self.queued.in_unit_of(settings.sizer) >= settings.min_size
    }

    fn take(&mut self, batch: Option<&QueueBatch>) -> TakeResult {
        let Some(front) = self.entries.front() else { return TakeResult::Nothing };
        let Some(settings) = batch else { return TakeResult::Job(self.take_entries(1, QueueSizer::Requests)) };
        let flush_at = front.enqueued_at + settings.flush_timeout;
        if !self.is_enough(settings) && Instant::now() < flush_at && !self.draining {
            return TakeResult::NotYet(flush_at);
        }
        TakeResult::Job(
            self.take_entries(
                if settings.max_size > 0 { settings.max_size } else { settings.min_size },
                settings.sizer,
            ),
        )
    }

    /// Takes entries until their size reaches `enough` in the unit of `sizer`, joined into one batch.
    fn take_entries(&mut self, enough: u64, sizer: QueueSizer) -> SendJob {
        let since = self.entries.front().map_or_else(Instant::now, |entry| entry.enqueued_at);
        self.in_progress_since.push(since);
        let mut job =
            SendJob { batches: Vec::new(), waiters: Vec::new(), size: QueueSize::default(), oldest_enqueued_at: since };
        while job.size.in_unit_of(sizer) < enough.max(1)
            && let Some(entry) = self.entries.pop_front()
        {
            job.size.add(QueueSize::for_batch(&entry.batch));
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

impl SendJob {
    /// Cuts what is larger than a batch may be. It copies, so that it is not done while the queue is locked.
    fn split_oversized(mut self, settings: Option<&QueueBatch>) -> Self {
        if let Some(limit) = settings.and_then(split_limit) {
            self.batches = self.batches.into_iter().flat_map(|batch| batch.split(limit)).collect();
        }
        self
    }
}

impl QueueSize {
    fn for_batch(batch: &Batch) -> Self {
        Self { requests: 1, items: batch.items() as u64, bytes: batch.bytes() as u64 }
    }

    fn in_unit_of(&self, sizer: QueueSizer) -> u64 {
        match sizer {
            QueueSizer::Requests => self.requests,
            QueueSizer::Items => self.items,
            QueueSizer::Bytes => self.bytes,
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

fn split_limit(settings: &QueueBatch) -> Option<SplitLimit> {
    let max = NonZeroUsize::new(usize::try_from(settings.max_size).unwrap_or(usize::MAX))?;
    Some(match settings.sizer {
        QueueSizer::Bytes => SplitLimit::Bytes(max),
        QueueSizer::Items | QueueSizer::Requests => SplitLimit::Items(max),
    })
}
