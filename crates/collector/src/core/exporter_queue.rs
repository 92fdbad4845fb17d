//! The end of a pipeline: a batch queue, workers that retry, and an exporter that makes single attempts.
//!
//! *Guarantees.* A batch that was taken is delivered, or counted as dropped with a reason. Only retryable
//! errors are retried, with backoff, jitter and the destination's hint. What a destination has settled, by
//! taking or by rejecting it, is counted and never sent again; only the rest of a batch is retried. A batch that
//! is refused for good, or makes the exporter panic, is sent again in ever smaller pieces, down to single
//! requests, so that one sender's poison costs nobody else's data. New settings apply from the next attempt on,
//! also to batches that are already queued.
//!
//! Requests with receipts are returned instead of dropped, unless the destination refuses them for good. Once a request
//! was returned, the later ones of its receiver that wait here are returned, too, so that none overtakes it.
//!
//! *Does not* survive the process: batches still held at the drain deadline are counted as dropped.

use std::{
    borrow::Cow,
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use kubewake_config::{
    ComponentId, PipelineId,
    model::{QueueConfig as QueueSettings, RetryConfig},
};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use self::in_flight::InFlightBatch;
pub use self::in_flight::InFlightRequest;
use super::{
    Batch, Code, ConsumeOutcome, Consumer, DropReason, ErrorClass, Exporter, ExporterStats, Failover, OverflowPolicy,
    PartialDelivery, PipelineStats, Refusal, RetryDecision, SendError, SendSuccess,
    batch_queue::{BatchQueue, PushResult, ResultSender, SendJob},
    one_by_one,
    retry_backoff::RetryBackoff,
};

mod in_flight;
mod split_and_retry;

#[cfg(test)]
mod tests;

/// How long workers get to stop after a halt. They notice it at once, and one that is stuck must not hold up
/// the others.
pub const HALT_TIMEOUT: Duration = Duration::from_secs(1);

/// The current exporter, retry policy and queue of an exporter queue.
#[derive(Clone)]
pub struct ExporterQueueSettings {
    pub exporter: Arc<dyn Exporter>,
    pub timeout: Option<Duration>,
    /// The retry policy; `None` disables retries.
    pub retry: Option<RetryConfig>,
    /// The queue; without it senders wait for the destination's response.
    pub queue: Option<QueueSettings>,
    pub stats: Arc<ExporterStats>,
}

#[derive(Clone)]
struct QueueControl {
    settings: Arc<ExporterQueueSettings>,
    phase: QueuePhase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueuePhase {
    Running,
    /// The drain deadline has passed.
    Halted,
}

/// An exporter in a pipeline, with its queue and workers.
pub struct ExporterQueue {
    id: ComponentId,
    pipeline: PipelineId,
    pipeline_stats: Arc<PipelineStats>,
    queue: BatchQueue,
    control: watch::Sender<QueueControl>,
    failover: Option<Arc<dyn Failover>>,
}

impl ExporterQueue {
    /// An exporter queue without failover.
    pub fn new(
        id: ComponentId,
        pipeline: PipelineId,
        progress: Arc<PipelineStats>,
        settings: ExporterQueueSettings,
    ) -> Arc<Self> {
        Self::with_failover(id, pipeline, progress, settings, None)
    }

    /// An exporter queue that passes on what its destination does not take.
    pub fn with_failover(
        id: ComponentId,
        pipeline: PipelineId,
        progress: Arc<PipelineStats>,
        settings: ExporterQueueSettings,
        rescue: Option<Arc<dyn Failover>>,
    ) -> Arc<Self> {
        record_capacity(&settings);
        let control = QueueControl { settings: Arc::new(settings), phase: QueuePhase::Running };
        let control = watch::Sender::new(control);
        Arc::new(Self {
            id,
            pipeline,
            pipeline_stats: progress,
            queue: BatchQueue::default(),
            control,
            failover: rescue,
        })
    }

    /// Whether a batch has room now. With `oversize`, a batch that is larger than the whole queue has room when
    /// the queue is empty.
    pub fn has_room(&self, batch: &Batch, oversize: bool) -> bool {
        match &self.settings().queue {
            None => true,
            Some(queue) => (oversize || BatchQueue::could_ever_take(queue, batch)) && self.queue.has_room(batch, queue),
        }
    }

    /// Whether the batch would have room in an empty queue.
    pub fn could_ever_take(&self, batch: &Batch) -> bool {
        self.settings().queue.as_ref().is_none_or(|queue| BatchQueue::could_ever_take(queue, batch))
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Waits until everything was delivered or failed over, without a deadline.
    pub async fn wait_until_empty(&self) {
        self.queue.start_draining();
        self.queue.wait_until_idle().await;
    }

    /// Ends pauses between attempts early, because the state of the destination changed.
    pub fn retry_now(&self) {
        self.control.send_modify(|_| {});
    }

    /// Applies new settings; the queue and its batches stay.
    pub fn reconfigure(self: &Arc<Self>, settings: ExporterQueueSettings) {
        record_capacity(&settings);
        let settings = Arc::new(settings);
        let old = self.settings();
        self.control.send_modify(|control| control.settings = settings.clone());
        if !Arc::ptr_eq(&old.stats, &settings.stats) {
            old.stats.retire();
        }
        for _ in 0..self.queue.apply_limits(settings.queue.as_ref(), &settings.stats.queue) {
            tokio::spawn(self.clone().run_worker());
        }
    }

    /// Resets the gauges of an exporter that left its pipeline.
    pub fn retire(&self) {
        self.settings().stats.retire();
    }

    /// Waits until everything is delivered, at most until `deadline`, and counts the rest as dropped.
    pub async fn drain(&self, deadline: Instant) {
        self.queue.start_draining();
        if tokio::time::timeout_at(deadline, self.queue.wait_until_idle()).await.is_err() {
            self.halt().await;
        }
    }

    /// Cancels attempts in flight, and makes no new ones.
    pub fn cancel_attempts(&self) {
        self.control.send_modify(|control| control.phase = QueuePhase::Halted);
    }

    /// Cancels all attempts, and counts everything that is held or still arrives as dropped.
    pub async fn halt(&self) {
        self.cancel_attempts();
        for (batch, waiter) in self.queue.close() {
            self.drop_on_shutdown(&batch, waiter);
        }
        let _ = tokio::time::timeout(HALT_TIMEOUT, self.queue.wait_until_idle()).await;
    }

    fn settings(&self) -> Arc<ExporterQueueSettings> {
        self.control.borrow().settings.clone()
    }

    fn enqueue(
        self: &Arc<Self>,
        batch: Batch,
        queue: &QueueSettings,
        settings: &ExporterQueueSettings,
        pressure: OverflowPolicy,
    ) -> ConsumeOutcome {
        let wait = pressure == OverflowPolicy::Wait;
        // No sender waits for the delivery of data that was acknowledged already.
        let (waiter, result) = if queue.wait_for_result && !wait {
            let (tx, rx) = oneshot::channel();
            (Some(tx), Some(rx))
        } else {
            (None, None)
        };
        let delivered = |result: Option<oneshot::Receiver<Result<(), Refusal>>>| async {
            match result {
                None => Ok(()),
                Some(result) => result.await.unwrap_or_else(|_| Err(Refusal::shutting_down())),
            }
        };
        match self.push(batch, waiter, queue, settings, wait) {
            Ok(()) if result.is_none() => ConsumeOutcome::Now(Ok(())),
            Ok(()) => ConsumeOutcome::later(delivered(result)),
            Err((batch, waiter)) if wait || (queue.block_on_overflow && !batch.has_receipts()) => {
                let guest = InFlightBatch::new(self);
                ConsumeOutcome::later(async move {
                    guest.0.push_when_room(batch, waiter, pressure).await?;
                    drop(guest);
                    delivered(result).await
                })
            }
            Err(_) if self.is_halted() => ConsumeOutcome::Now(Err(Refusal::shutting_down())),
            Err((batch, waiter)) if !BatchQueue::could_ever_take(queue, &batch) => {
                // A receiver that reads again would do so forever.
                let receipted = batch.has_receipts();
                if receipted && self.push(batch, waiter, queue, settings, true).is_ok() {
                    return ConsumeOutcome::later(delivered(result));
                }
                let refusal = if receipted { Refusal::queue_full() } else { Refusal::larger_than_queue() };
                ConsumeOutcome::Now(Err(refusal))
            }
            Err(_) => ConsumeOutcome::Now(Err(Refusal::queue_full())),
        }
    }

    fn push(
        self: &Arc<Self>,
        batch: Batch,
        waiter: Option<ResultSender>,
        queue: &QueueSettings,
        settings: &ExporterQueueSettings,
        oversize: bool,
    ) -> Result<(), (Batch, Option<ResultSender>)> {
        match self.queue.push(batch, waiter, queue, oversize, &settings.stats.queue) {
            PushResult::Accepted { start_worker } => {
                if start_worker {
                    tokio::spawn(self.clone().run_worker());
                }
                Ok(())
            }
            PushResult::Full(batch, waiter) => Err((batch, waiter)),
        }
    }

    async fn push_when_room(
        self: &Arc<Self>,
        mut batch: Batch,
        mut waiter: Option<ResultSender>,
        pressure: OverflowPolicy,
    ) -> Result<(), Refusal> {
        while !self.is_halted() {
            let settings = self.settings();
            // If the queue was switched off during the wait, the batch is still delivered through it.
            let queue = settings.queue.clone().unwrap_or_default();
            match self.push(batch, waiter, &queue, &settings, true) {
                Ok(()) => return Ok(()),
                Err(back) => (batch, waiter) = back,
            }
            self.queue.wait_for_room(|| self.queue.has_room(&batch, &queue)).await;
        }
        if pressure == OverflowPolicy::Wait {
            self.drop_on_shutdown(&batch, None);
        }
        Err(Refusal::shutting_down())
    }

    /// Takes jobs from the queue until none is left.
    async fn run_worker(self: Arc<Self>) {
        while let Some(SendJob { batches, waiters, size, oldest_enqueued_at: since }) =
            self.queue.next_job(|| self.settings().queue.clone()).await
        {
            let told = waiters.len() as u64 == size.requests;
            let mut result = Ok(());
            for mut batch in one_by_one(batches) {
                batch.return_stale();
                if !batch.is_empty() {
                    result = result.and(self.deliver(batch, told).await);
                }
            }
            for waiter in waiters {
                // The sender may have hung up.
                let _ = waiter.send(result.clone());
            }
            let settings = self.settings();
            let sizer = settings.queue.as_ref().map(|queue| queue.sizer).unwrap_or_default();
            self.queue.finish_job(size, since, sizer, &settings.stats.queue);
            if let Some(rescue) = &self.failover {
                rescue.notify_room();
            }
        }
    }

    /// Sends a batch until it is delivered or given up. With `told`, the producer learns the result, so that a
    /// failure does not count as a loss here.
    async fn deliver(&self, batch: Batch, told: bool) -> Result<(), Refusal> {
        let stats = self.settings().stats.clone();
        let _under_way = InFlightRequest::new(&stats);
        self.deliver_or_split(&batch, told).await.map_err(SendError::into_refusal)
    }

    /// Attempts a batch until it is settled here or by failover. An error comes with the rest of the batch.
    async fn attempt_or_fail_over(&self, batch: &Batch, told: bool) -> Result<(), (Batch, SendError)> {
        let mut batch = Cow::Borrowed(batch);
        loop {
            let error = match self.attempt_until_settled(&mut batch, told).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match self.fail_over(&batch, error).await {
                Ok(None) => return Ok(()),
                Ok(Some(rest)) => batch = Cow::Owned(rest),
                Err(error) => return Err((batch.into_owned(), error)),
            }
        }
    }

    /// Fails over to another destination, if there is one and the error is retryable.
    async fn fail_over(&self, batch: &Batch, error: SendError) -> Result<Option<Batch>, SendError> {
        let Some(rescue) = self.failover.as_ref().filter(|_| error.retryable && !self.is_halted()) else {
            return Err(error);
        };
        let mut control = self.control.subscribe();
        let batch = batch.clone().with_failing_since(Some(Instant::now()));
        tokio::select! {
            biased;
            result = rescue.fail_over(batch, error) => result,
            _ = control.wait_for(|c| c.phase == QueuePhase::Halted) => Err(SendError::halted()),
        }
    }

    fn give_up(&self, batch: &Batch, error: &SendError, told: bool) {
        self.settings().stats.send_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
        let lost = if error.retryable { batch.return_unsent() } else { batch.clone_tally() };
        if told || lost.items() == 0 {
            return;
        }
        let reason = match (error.retryable, self.is_halted()) {
            (true, true) => DropReason::Shutdown,
            (true, false) => DropReason::RetriesExhausted,
            (false, _) => DropReason::Refused,
        };
        tracing::error!(exporter = %self.id, pipeline = %self.pipeline, items = lost.items(), reason = reason.name(),
            error = %error, "dropped data");
        self.pipeline_stats.count_dropped(reason, lost.items() as u64);
    }

    fn drop_on_shutdown(&self, batch: &Batch, waiter: Option<ResultSender>) {
        let told = waiter.is_some_and(|waiter| waiter.send(Err(Refusal::shutting_down())).is_ok());
        self.give_up(batch, &SendError::halted(), told);
    }

    /// Attempts a batch until it is settled. What remains after an error is left in `batch`.
    async fn attempt_until_settled(&self, batch: &mut Cow<'_, Batch>, told: bool) -> Result<(), SendError> {
        let mut control = self.control.subscribe();
        let mut backoff = None;
        let mut silences = 0;
        loop {
            let settings = control.borrow_and_update().settings.clone();
            if self.failover.as_ref().is_some_and(|rescue| !rescue.is_available()) {
                return Err(SendError::destination_down());
            }
            let mut error = match self.attempt(&settings, batch, &control).await {
                Ok(delivered) => {
                    self.count_success(&settings, batch.items(), batch.bytes(), &delivered);
                    return Ok(());
                }
                Err(error) => error,
            };
            if let Some(PartialDelivery { outcome, rest }) = error.partial.take().map(|partial| *partial) {
                let items = batch.items().saturating_sub(rest.items());
                self.count_success(&settings, items, batch.bytes().saturating_sub(rest.bytes()), &outcome);
                *batch = Cow::Owned(rest);
            }
            self.pipeline_stats.record_failure(&error);
            settings.stats.progress.record_failure(&error);
            let rescue = self.failover.as_ref().filter(|_| error.retryable && !self.is_halted());
            match rescue.map(|rescue| rescue.decide_retry(&error, silences)) {
                Some(RetryDecision::FailOver) => return Err(error),
                Some(RetryDecision::RetryNow) => {
                    silences += 1;
                    continue;
                }
                Some(RetryDecision::Retry) | None => silences = 0,
            }
            // A full disk is reported to a waiting sender without retries: the sender can go elsewhere, and it
            // takes a person to fix it.
            let known = told && error.class == ErrorClass::Local;
            let Some(retry) = settings.retry.as_ref().filter(|_| error.retryable && !known && !self.is_halted()) else {
                return Err(error);
            };
            let started = backoff.get_or_insert_with(|| RetryBackoff::start(retry, batch.failing_since()));
            let Some(pause) = started.pause(retry, error.retry_after) else {
                return Err(error);
            };
            tracing::info!(exporter = %self.id, pipeline = %self.pipeline, pause = ?pause, error = %error,
                "failed to send a batch, retrying after a pause");
            // New settings and a halt end the pause early.
            let _ = tokio::time::timeout(pause, control.changed()).await;
        }
    }

    async fn attempt(
        &self,
        settings: &ExporterQueueSettings,
        batch: &Batch,
        control: &watch::Receiver<QueueControl>,
    ) -> Result<SendSuccess, SendError> {
        if self.is_halted() {
            return Err(SendError::halted());
        }
        // A panic concerns one batch only: the worker continues, and a waiting sender gets an error.
        let send = AssertUnwindSafe(async { settings.exporter.send(batch).await }).catch_unwind();
        let send = send.map(|ended| ended.unwrap_or_else(|_| Err(SendError::panicked())));
        let limited = async {
            match settings.timeout {
                None => send.await,
                Some(limit) => {
                    tokio::time::timeout(limit, send).await.unwrap_or_else(|_| Err(SendError::timeout(limit)))
                }
            }
        };
        // A separate receiver: a change of settings during the attempt must still end the pause that may
        // follow.
        let mut control = control.clone();
        let began = Instant::now();
        let result = tokio::select! {
            // A result that is ready wins over a halt.
            biased;
            result = limited => result,
            _ = control.wait_for(|c| c.phase == QueuePhase::Halted) => return Err(SendError::halted()),
        };
        let took = began.elapsed();
        settings.stats.calls.record(result.as_ref().map_or_else(|error| error.code, |_| Code::Ok), took);
        if let Some(rescue) = &self.failover {
            rescue.record_attempt(result.is_ok(), took);
        }
        result
    }

    /// Counts items that are settled: the destination took them, or rejected them for good.
    fn count_success(&self, settings: &ExporterQueueSettings, items: usize, bytes: usize, delivered: &SendSuccess) {
        let items = items as u64;
        settings.stats.sent.fetch_add(items, Ordering::Relaxed);
        settings.stats.batch_items.record(items);
        settings.stats.batch_bytes.record(bytes as u64);
        let rejected = delivered.rejected.total();
        self.pipeline_stats.record_success(items.saturating_sub(rejected));
        settings.stats.progress.record_success();
        settings.stats.truncated.fetch_add(delivered.truncated, Ordering::Relaxed);
        if rejected > 0 || !delivered.message.is_empty() {
            settings.stats.rejected.count(&delivered.rejected);
            self.pipeline_stats.count_dropped(DropReason::Rejected, rejected);
            tracing::warn!(exporter = %self.id, pipeline = %self.pipeline, rejected, reason = %delivered.message,
                "the destination rejected a part of the batch");
        }
    }

    fn is_halted(&self) -> bool {
        self.control.borrow().phase == QueuePhase::Halted
    }
}

impl Consumer for ExporterQueue {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let settings = self.settings();
        match &settings.queue {
            Some(queue) => self.enqueue(batch, queue, &settings, pressure),
            None => {
                let guest = InFlightBatch::new(&self);
                ConsumeOutcome::later(async move { guest.0.deliver(batch, pressure == OverflowPolicy::Refuse).await })
            }
        }
    }

    fn count_refused(&self, batch: &Batch) {
        self.settings().stats.enqueue_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
    }

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.pipeline_stats.count_dropped(reason, batch.items() as u64);
    }
}

fn record_capacity(settings: &ExporterQueueSettings) {
    let capacity = settings.queue.as_ref().map_or(0, |q| q.queue_size);
    settings.stats.queue_capacity.store(capacity, Ordering::Relaxed);
}
