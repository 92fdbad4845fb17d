//! The end of a pipeline: a buffer, attempts, and an exporter that makes them.
//!
//! *Guarantees.* A batch that was taken is delivered, or counted as dropped with a reason. Only answers that allow it
//! are retried, with backoff, jitter and the destination's hint. A partial success is never retried. A batch that is
//! refused for good, or makes the exporter panic, is sent again in ever smaller pieces, down to single requests, so that one
//! sender's poison costs nobody else's data. New settings are in force from the next attempt on, for what is already queued too.
//!
//! *Does not* survive the process: what is held in memory when the time for draining is over is counted and lost.

use std::{
    borrow::Cow,
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::FutureExt;
use kubewake_config::{
    ComponentId, PipelineId,
    model::{Queue as QueueSettings, Retry},
};
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use self::guest::Guest;
pub use self::guest::UnderWay;
use super::{
    Answer, Batch, Code, Consumer, Delivered, DropReason, ErrorClass, Exporter, ExporterStats, Next, PipelineStats,
    Pressure, Refusal, Rescue, SendError, one_by_one,
    queue::{Job, Pushed, Queue, Waiter},
    retry::Backoff,
};

mod apart;
mod guest;

#[cfg(test)]
mod tests;

/// How long those at work get to notice that all is over. They notice at once; one that is stuck must not hold up the
/// others.
pub const HALT_LIMIT: Duration = Duration::from_secs(1);

/// What an outlet does at the moment.
#[derive(Clone)]
pub struct OutletSettings {
    /// Who sends.
    pub exporter: Arc<dyn Exporter>,
    /// Limit of one attempt.
    pub timeout: Option<Duration>,
    /// Whether and how often to try again.
    pub retry: Option<Retry>,
    /// The buffer; without it senders wait for the destination's answer.
    pub queue: Option<QueueSettings>,
    /// Where it counts.
    pub stats: Arc<ExporterStats>,
}

#[derive(Clone)]
struct Control {
    settings: Arc<OutletSettings>,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The time for draining is over.
    Halted,
}

/// An exporter in a pipeline, with its buffer.
pub struct Outlet {
    id: ComponentId,
    pipeline: PipelineId,
    progress: Arc<PipelineStats>,
    queue: Queue,
    control: watch::Sender<Control>,
    rescue: Option<Arc<dyn Rescue>>,
}

impl Outlet {
    /// An outlet that is ready to take data.
    pub fn new(
        id: ComponentId,
        pipeline: PipelineId,
        progress: Arc<PipelineStats>,
        settings: OutletSettings,
    ) -> Arc<Self> {
        Self::with_rescue(id, pipeline, progress, settings, None)
    }

    /// An outlet that hands over what its destination does not take.
    pub fn with_rescue(
        id: ComponentId,
        pipeline: PipelineId,
        progress: Arc<PipelineStats>,
        settings: OutletSettings,
        rescue: Option<Arc<dyn Rescue>>,
    ) -> Arc<Self> {
        show_capacity(&settings);
        let control = Control { settings: Arc::new(settings), phase: Phase::Running };
        let control = watch::Sender::new(control);
        Arc::new(Self { id, pipeline, progress, queue: Queue::default(), control, rescue })
    }

    /// Whether a batch would find room now. `oversize`: one that is larger than the whole queue may go in when nothing
    /// else is there.
    pub fn has_room(&self, batch: &Batch, oversize: bool) -> bool {
        match &self.settings().queue {
            None => true,
            Some(queue) => (oversize || Queue::could_ever_take(queue, batch)) && self.queue.has_room(batch, queue),
        }
    }

    /// Whether such a batch has room when nothing else is there.
    pub fn could_ever_take(&self, batch: &Batch) -> bool {
        self.settings().queue.as_ref().is_none_or(|queue| Queue::could_ever_take(queue, batch))
    }

    /// Whether nothing is held here.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Waits until everything was delivered or handed over, however long that takes.
    pub async fn empty(&self) {
        self.queue.drain();
        self.queue.idle().await;
    }

    /// Cuts pauses between attempts short: whoever is behind this has news.
    pub fn stir(&self) {
        self.control.send_modify(|_| {});
    }

    /// Puts new settings in force; the buffer and what is in it stay.
    pub fn reconfigure(self: &Arc<Self>, settings: OutletSettings) {
        show_capacity(&settings);
        let settings = Arc::new(settings);
        let old = self.settings();
        self.control.send_modify(|control| control.settings = settings.clone());
        if !Arc::ptr_eq(&old.stats, &settings.stats) {
            old.stats.retire();
        }
        for _ in 0..self.queue.resized(settings.queue.as_ref(), &settings.stats.queue) {
            tokio::spawn(self.clone().work());
        }
    }

    /// It is no longer part of its pipeline: its gauges go.
    pub fn retire(&self) {
        self.settings().stats.retire();
    }

    /// Waits until everything is delivered, at most until `deadline`; then counts the rest as dropped.
    pub async fn drain(&self, deadline: Instant) {
        self.queue.drain();
        if tokio::time::timeout_at(deadline, self.queue.idle()).await.is_err() {
            self.halt().await;
        }
    }

    /// Nothing is tried from now on: whatever is under way is given up.
    pub fn stop(&self) {
        self.control.send_modify(|control| control.phase = Phase::Halted);
    }

    /// Gives up: whatever is held, or still comes, is counted as dropped.
    pub async fn halt(&self) {
        self.stop();
        for (batch, waiter) in self.queue.close() {
            self.drop_at_the_end(&batch, waiter);
        }
        let _ = tokio::time::timeout(HALT_LIMIT, self.queue.idle()).await;
    }

    fn settings(&self) -> Arc<OutletSettings> {
        self.control.borrow().settings.clone()
    }

    fn enqueue(
        self: &Arc<Self>,
        batch: Batch,
        queue: &QueueSettings,
        settings: &OutletSettings,
        pressure: Pressure,
    ) -> Answer {
        let wait = pressure == Pressure::Wait;
        // Nobody waits for the delivery of what was acknowledged already.
        let (waiter, result) = match queue.wait_for_result && !wait {
            true => {
                let (tx, rx) = oneshot::channel();
                (Some(tx), Some(rx))
            }
            false => (None, None),
        };
        let delivered = |result: Option<oneshot::Receiver<Result<(), Refusal>>>| async {
            match result {
                None => Ok(()),
                Some(result) => result.await.unwrap_or_else(|_| Err(Refusal::shutting_down())),
            }
        };
        match self.push(batch, waiter, queue, settings, wait) {
            Ok(()) if result.is_none() => Answer::Now(Ok(())),
            Ok(()) => Answer::later(delivered(result)),
            Err((batch, waiter)) if wait || queue.block_on_overflow => {
                let guest = Guest::new(self);
                Answer::later(async move {
                    guest.0.push_when_there_is_room(batch, waiter, pressure).await?;
                    drop(guest);
                    delivered(result).await
                })
            }
            Err(_) if self.halted() => Answer::Now(Err(Refusal::shutting_down())),
            Err((batch, _)) if !Queue::could_ever_take(queue, &batch) => Answer::Now(Err(Refusal::larger_than_queue())),
            Err(_) => Answer::Now(Err(Refusal::queue_full())),
        }
    }

    fn push(
        self: &Arc<Self>,
        batch: Batch,
        waiter: Option<Waiter>,
        queue: &QueueSettings,
        settings: &OutletSettings,
        oversize: bool,
    ) -> Result<(), (Batch, Option<Waiter>)> {
        match self.queue.push(batch, waiter, queue, oversize, &settings.stats.queue) {
            Pushed::In { start_worker } => {
                if start_worker {
                    tokio::spawn(self.clone().work());
                }
                Ok(())
            }
            Pushed::Full(batch, waiter) => Err((batch, waiter)),
        }
    }

    async fn push_when_there_is_room(
        self: &Arc<Self>,
        mut batch: Batch,
        mut waiter: Option<Waiter>,
        pressure: Pressure,
    ) -> Result<(), Refusal> {
        while !self.halted() {
            let settings = self.settings();
            // The queue was switched off while we waited: what waits is still delivered.
            let queue = settings.queue.clone().unwrap_or_default();
            match self.push(batch, waiter, &queue, &settings, true) {
                Ok(()) => return Ok(()),
                Err(back) => (batch, waiter) = back,
            }
            self.queue.room(|| self.queue.has_room(&batch, &queue)).await;
        }
        if pressure == Pressure::Wait {
            self.drop_at_the_end(&batch, None);
        }
        Err(Refusal::shutting_down())
    }

    /// Takes jobs from the queue until there are none.
    async fn work(self: Arc<Self>) {
        while let Some(Job { batches, waiters, size, since }) = self.queue.next(|| self.settings().queue.clone()).await
        {
            let told = waiters.len() as u64 == size.requests;
            let mut result = Ok(());
            for batch in one_by_one(batches) {
                result = result.and(self.deliver(batch, told).await);
            }
            for waiter in waiters {
                // Nobody waits any more when the sender hung up.
                let _ = waiter.send(result.clone());
            }
            let settings = self.settings();
            let sizer = settings.queue.as_ref().map(|queue| queue.sizer).unwrap_or_default();
            self.queue.done(size, since, sizer, &settings.stats.queue);
            if let Some(rescue) = &self.rescue {
                rescue.room();
            }
        }
    }

    /// Sends a batch until it is delivered or given up. `told`: whoever offered it learns the result, so that a failure
    /// is no loss of ours.
    async fn deliver(&self, batch: Batch, told: bool) -> Result<(), Refusal> {
        let stats = self.settings().stats.clone();
        let _under_way = UnderWay::new(&stats);
        self.deliver_whole_or_apart(&batch, told).await.map_err(SendError::refusal)
    }

    /// Tries until a batch is settled, here or with whoever stands behind this outlet. An error comes with what is left.
    async fn attempt_here_or_elsewhere(&self, batch: &Batch, told: bool) -> Result<(), (Batch, SendError)> {
        let mut batch = Cow::Borrowed(batch);
        loop {
            let error = match self.attempt_until_settled(&batch, told).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match self.hand_over(&batch, error).await {
                Ok(None) => return Ok(()),
                Ok(Some(rest)) => batch = Cow::Owned(rest),
                Err(error) => return Err((batch.into_owned(), error)),
            }
        }
    }

    /// Leaves a batch to whoever stands behind this outlet, if somebody does and another destination may take it.
    async fn hand_over(&self, batch: &Batch, error: SendError) -> Result<Option<Batch>, SendError> {
        let Some(rescue) = self.rescue.as_ref().filter(|_| error.retryable && !self.halted()) else {
            return Err(error);
        };
        let mut control = self.control.subscribe();
        let batch = batch.clone().failed_at(Some(Instant::now()));
        tokio::select! {
            biased;
            result = rescue.hand_over(batch, error) => result,
            _ = control.wait_for(|c| c.phase == Phase::Halted) => Err(SendError::halted()),
        }
    }

    fn give_up(&self, batch: &Batch, error: &SendError, told: bool) {
        self.settings().stats.send_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
        if told {
            return;
        }
        let reason = match (error.retryable, self.halted()) {
            (true, true) => DropReason::Shutdown,
            (true, false) => DropReason::RetriesExhausted,
            (false, _) => DropReason::Refused,
        };
        tracing::error!(exporter = %self.id, pipeline = %self.pipeline, items = batch.items(), reason = reason.name(),
            error = %error, "dropped data");
        self.progress.dropped(reason, batch.items() as u64);
    }

    fn drop_at_the_end(&self, batch: &Batch, waiter: Option<Waiter>) {
        let told = waiter.is_some_and(|waiter| waiter.send(Err(Refusal::shutting_down())).is_ok());
        self.give_up(batch, &SendError::halted(), told);
    }

    async fn attempt_until_settled(&self, batch: &Batch, told: bool) -> Result<(), SendError> {
        let mut control = self.control.subscribe();
        let (mut backoff, mut silences) = (None, 0);
        loop {
            let settings = control.borrow_and_update().settings.clone();
            if self.rescue.as_ref().is_some_and(|rescue| !rescue.is_open()) {
                return Err(SendError::unattended());
            }
            let error = match self.attempt(&settings, batch, &control).await {
                Ok(delivered) => {
                    self.count_success(&settings, batch, &delivered);
                    return Ok(());
                }
                Err(error) => error,
            };
            self.progress.failed(&error);
            settings.stats.progress.failed(&error);
            let rescue = self.rescue.as_ref().filter(|_| error.retryable && !self.halted());
            match rescue.map(|rescue| rescue.failed(&error, silences)) {
                Some(Next::HandOver) => return Err(error),
                Some(Next::AtOnce) => {
                    silences += 1;
                    continue;
                }
                Some(Next::Retry) | None => silences = 0,
            }
            // A full disk is for the sender to know: it can go elsewhere, and a person must look here.
            let known = told && error.class == ErrorClass::Local;
            let Some(retry) = settings.retry.as_ref().filter(|_| error.retryable && !known && !self.halted()) else {
                return Err(error);
            };
            let started = backoff.get_or_insert_with(|| Backoff::start(retry, batch.failing_since()));
            let Some(pause) = started.pause(retry, error.retry_after) else {
                return Err(error);
            };
            tracing::info!(exporter = %self.id, pipeline = %self.pipeline, pause = ?pause, error = %error,
                "sending failed; it is tried again");
            // New settings or the end of draining cut the pause short.
            let _ = tokio::time::timeout(pause, control.changed()).await;
        }
    }

    async fn attempt(
        &self,
        settings: &OutletSettings,
        batch: &Batch,
        control: &watch::Receiver<Control>,
    ) -> Result<Delivered, SendError> {
        if self.halted() {
            return Err(SendError::halted());
        }
        // A panic is one batch's: the worker goes on, and whoever waits is answered.
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
        // A receiver of its own: settings that change now must still be news to the pause that may follow.
        let mut control = control.clone();
        let began = Instant::now();
        let result = tokio::select! {
            // An answer that is there counts, also at the last moment.
            biased;
            result = limited => result,
            _ = control.wait_for(|c| c.phase == Phase::Halted) => return Err(SendError::halted()),
        };
        let took = began.elapsed();
        settings.stats.calls.record(result.as_ref().map_or_else(|error| error.code, |_| Code::Ok), took);
        if let Some(rescue) = &self.rescue {
            rescue.attempted(result.is_ok(), took);
        }
        result
    }

    fn count_success(&self, settings: &OutletSettings, batch: &Batch, delivered: &Delivered) {
        let items = batch.items() as u64;
        settings.stats.sent.fetch_add(items, Ordering::Relaxed);
        settings.stats.batch_items.record(items);
        settings.stats.batch_bytes.record(batch.bytes() as u64);
        self.progress.succeeded(items.saturating_sub(delivered.rejected));
        settings.stats.progress.succeeded();
        if delivered.rejected > 0 || !delivered.message.is_empty() {
            settings.stats.rejected.fetch_add(delivered.rejected, Ordering::Relaxed);
            self.progress.dropped(DropReason::Rejected, delivered.rejected);
            tracing::warn!(exporter = %self.id, pipeline = %self.pipeline, rejected = delivered.rejected,
                reason = %delivered.message, "the destination accepted only a part");
        }
    }

    fn halted(&self) -> bool {
        self.control.borrow().phase == Phase::Halted
    }
}

impl Consumer for Outlet {
    fn consume(self: Arc<Self>, batch: Batch, pressure: Pressure) -> Answer {
        let settings = self.settings();
        match &settings.queue {
            Some(queue) => self.enqueue(batch, queue, &settings, pressure),
            None => {
                let guest = Guest::new(&self);
                Answer::later(async move { guest.0.deliver(batch, pressure == Pressure::Refuse).await })
            }
        }
    }

    fn refused(&self, batch: &Batch) {
        self.settings().stats.enqueue_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
    }

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.progress.dropped(reason, batch.items() as u64);
    }
}

fn show_capacity(settings: &OutletSettings) {
    let capacity = settings.queue.as_ref().map_or(0, |q| q.queue_size);
    settings.stats.queue_capacity.store(capacity, Ordering::Relaxed);
}
