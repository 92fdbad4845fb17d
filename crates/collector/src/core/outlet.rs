//! The end of a pipeline: a buffer, attempts, and an exporter that makes them.
//!
//! *Guarantees.* A batch that was taken is delivered, or counted as dropped with a reason. Only answers that allow it
//! are retried, with backoff, jitter and the destination's hint. A partial success is never retried. A batch that is
//! refused for good is sent again request by request, so that one sender's poison costs nobody else's data. New
//! settings are in force from the next attempt on, for what is already queued too.
//!
//! *Does not* survive the process: what is held in memory when the time for draining is over is counted and lost.

use std::{
    borrow::Cow,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use kubewake_config::{
    ComponentId, PipelineId,
    model::{Queue as QueueSettings, Retry},
};
use tokio::sync::{oneshot, watch};

use super::{
    Answer, Batch, Code, Consumer, DropReason, ErrorClass, ExporterStats, PipelineStats, Pressure, Refusal,
    RefusalKind,
    queue::{Job, Pushed, Queue, Waiter},
    retry::Backoff,
};

/// What the destination said to a request that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Items that it rejected all the same.
    pub rejected: u64,
    /// Its words about that, or a warning.
    pub message: String,
}

/// Why an attempt failed. The message is safe to show: it holds no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    /// The destination's code, or the one that fits.
    pub code: Code,
    /// Where to look.
    pub class: ErrorClass,
    /// For people.
    pub message: Cow<'static, str>,
    /// The destination's hint.
    pub retry_after: Option<Duration>,
    /// Whether the same batch may be sent again.
    pub retryable: bool,
}

impl SendError {
    /// The destination cannot be reached, or hung up.
    pub fn connection(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: Code::Unavailable,
            class: ErrorClass::Connection,
            message: message.into(),
            retry_after: None,
            retryable: true,
        }
    }

    /// Something on this machine failed: a file, a stream. Time may help.
    pub fn local(message: impl Into<Cow<'static, str>>) -> Self {
        Self { class: ErrorClass::Local, ..Self::connection(message) }
    }

    /// The data cannot be written in the form that the destination wants. Time does not help.
    pub fn malformed(message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: Code::InvalidArgument, class: ErrorClass::Refused, retryable: false, ..Self::connection(message) }
    }

    /// The destination did not answer in time.
    fn timeout(limit: Duration) -> Self {
        Self {
            code: Code::DeadlineExceeded,
            class: ErrorClass::Timeout,
            message: format!("no answer within {limit:?}").into(),
            retry_after: None,
            retryable: true,
        }
    }

    fn refusal(self) -> Refusal {
        Refusal {
            kind: RefusalKind::Backend,
            code: self.code,
            message: self.message,
            retry_after: self.retry_after.filter(|after| !after.is_zero()),
        }
    }
}

/// The future of one attempt.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<Delivered, SendError>> + Send + 'a>>;

/// Makes one attempt at sending.
pub trait Exporter: Send + Sync {
    /// Sends the batch once. The batch is the caller's; its bytes can be shared.
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a>;
}

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
}

impl Outlet {
    /// An outlet that is ready to take data.
    pub fn new(
        id: ComponentId,
        pipeline: PipelineId,
        progress: Arc<PipelineStats>,
        settings: OutletSettings,
    ) -> Arc<Self> {
        show_capacity(&settings);
        let control = Control { settings: Arc::new(settings), phase: Phase::Running };
        Arc::new(Self { id, pipeline, progress, queue: Queue::default(), control: watch::Sender::new(control) })
    }

    /// Puts new settings in force; the buffer and what is in it stay.
    pub fn reconfigure(&self, settings: OutletSettings) {
        show_capacity(&settings);
        self.control.send_modify(|control| control.settings = Arc::new(settings));
        self.queue.resized();
    }

    /// Waits until everything is delivered, at most until `deadline`; then counts the rest as dropped.
    pub async fn drain(self: &Arc<Self>, deadline: tokio::time::Instant) {
        self.queue.drain();
        let idle = async {
            while !self.queue.is_idle() {
                self.queue.room(|| self.queue.is_idle()).await;
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout_at(deadline, idle).await.is_ok() {
            return;
        }
        self.control.send_modify(|control| control.phase = Phase::Halted);
        for batch in self.queue.take_rest() {
            self.drop_batch(&batch, DropReason::Shutdown);
        }
    }

    fn settings(&self) -> Arc<OutletSettings> {
        self.control.borrow().settings.clone()
    }

    fn enqueue(self: &Arc<Self>, batch: Batch, queue: &QueueSettings, settings: &OutletSettings, wait: bool) -> Answer {
        let (waiter, result) = match queue.wait_for_result {
            true => {
                let (tx, rx) = oneshot::channel();
                (Some(tx), Some(rx))
            }
            false => (None, None),
        };
        match self.push(batch, waiter, queue, settings, wait) {
            Ok(()) => match result {
                None => Answer::Now(Ok(())),
                Some(result) => Answer::later(async { result.await.unwrap_or_else(|_| Err(Refusal::shutting_down())) }),
            },
            Err((batch, waiter)) if wait || queue.block_on_overflow => {
                let me = self.clone();
                Answer::later(async move {
                    me.push_when_there_is_room(batch, waiter).await;
                    match result {
                        None => Ok(()),
                        Some(result) => result.await.unwrap_or_else(|_| Err(Refusal::shutting_down())),
                    }
                })
            }
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
        match self.queue.push(batch, waiter, queue, oversize, &settings.stats.queue_size) {
            Pushed::In { start_worker } => {
                if start_worker {
                    tokio::spawn(self.clone().work());
                }
                Ok(())
            }
            Pushed::Full(batch, waiter) => Err((batch, waiter)),
        }
    }

    async fn push_when_there_is_room(self: &Arc<Self>, mut batch: Batch, mut waiter: Option<Waiter>) {
        loop {
            let settings = self.settings();
            // The queue was switched off while we waited: what waits is still delivered.
            let queue = settings.queue.clone().unwrap_or_default();
            match self.push(batch, waiter, &queue, &settings, true) {
                Ok(()) => return,
                Err(back) => (batch, waiter) = back,
            }
            self.queue.room(|| self.queue.has_room(&batch, &queue)).await;
        }
    }

    /// Takes jobs from the queue until there are none.
    async fn work(self: Arc<Self>) {
        while let Some(Job { batches, waiters, size }) = self.queue.next(|| self.settings().queue.clone()).await {
            let mut result = Ok(());
            for batch in batches {
                result = result.and(self.deliver(batch).await);
            }
            for waiter in waiters {
                // Nobody waits any more when the sender hung up.
                let _ = waiter.send(result.clone());
            }
            self.queue.done(size, &self.settings().stats.queue_size);
        }
    }

    /// Sends a batch until it is delivered or given up.
    async fn deliver(&self, batch: Batch) -> Result<(), Refusal> {
        let stats = self.settings().stats.clone();
        stats.in_flight.fetch_add(1, Ordering::Relaxed);
        let result = self.deliver_whole_or_apart(&batch).await;
        stats.in_flight.fetch_sub(1, Ordering::Relaxed);
        result.map_err(SendError::refusal)
    }

    async fn deliver_whole_or_apart(&self, batch: &Batch) -> Result<(), SendError> {
        let error = match self.attempt_until_settled(batch).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if error.retryable || !error.code.blames_data() || batch.parts().len() < 2 {
            self.give_up(batch, &error);
            return Err(error);
        }
        tracing::warn!(exporter = %self.id, pipeline = %self.pipeline, requests = batch.parts().len(), error = %error,
            "a batch was refused for good; its requests are sent one by one");
        for part in batch.parts() {
            let single = Batch::single(batch.signal(), part.clone());
            if let Err(error) = self.attempt_until_settled(&single).await {
                self.give_up(&single, &error);
            }
        }
        Ok(())
    }

    fn give_up(&self, batch: &Batch, error: &SendError) {
        let reason = match (error.retryable, self.halted()) {
            (true, true) => DropReason::Shutdown,
            (true, false) => DropReason::RetriesExhausted,
            (false, _) => DropReason::Refused,
        };
        tracing::error!(exporter = %self.id, pipeline = %self.pipeline, items = batch.items(), reason = reason.name(),
            error = %error, "dropped data");
        self.drop_batch(batch, reason);
    }

    fn drop_batch(&self, batch: &Batch, reason: DropReason) {
        self.settings().stats.send_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
        self.progress.dropped(reason, batch.items() as u64);
    }

    async fn attempt_until_settled(&self, batch: &Batch) -> Result<(), SendError> {
        let mut control = self.control.subscribe();
        let mut backoff = None;
        loop {
            let settings = control.borrow_and_update().settings.clone();
            let error = match self.attempt(&settings, batch, &mut control).await {
                Ok(delivered) => {
                    self.count_success(&settings, batch, &delivered);
                    return Ok(());
                }
                Err(error) => error,
            };
            self.progress.failed(error.class);
            settings.stats.progress.failed(error.class);
            let Some(retry) = settings.retry.as_ref().filter(|_| error.retryable && !self.halted()) else {
                return Err(error);
            };
            let Some(pause) = backoff.get_or_insert_with(|| Backoff::start(retry)).pause(retry, error.retry_after)
            else {
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
        control: &mut watch::Receiver<Control>,
    ) -> Result<Delivered, SendError> {
        let send = settings.exporter.send(batch);
        let limited = async {
            match settings.timeout {
                None => send.await,
                Some(limit) => {
                    tokio::time::timeout(limit, send).await.unwrap_or_else(|_| Err(SendError::timeout(limit)))
                }
            }
        };
        tokio::select! {
            result = limited => result,
            _ = control.wait_for(|c| c.phase == Phase::Halted) => Err(SendError::connection("shutting down")),
        }
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
                message = %delivered.message, "the destination accepted only a part");
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
            Some(queue) => self.enqueue(batch, queue, &settings, pressure == Pressure::Wait),
            None => Answer::later(async move { self.deliver(batch).await }),
        }
    }

    fn refused(&self, batch: &Batch) {
        self.settings().stats.enqueue_failed.fetch_add(batch.items() as u64, Ordering::Relaxed);
    }

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.refused(batch);
        self.progress.dropped(reason, batch.items() as u64);
    }
}

fn show_capacity(settings: &OutletSettings) {
    let capacity = settings.queue.as_ref().map_or(0, |q| q.queue_size);
    settings.stats.queue_capacity.store(capacity, Ordering::Relaxed);
}
