//! Exports finished spans to the collector in batches, off the path of requests.
//!
//! Guaranteed: a slow or dead collector costs memory within the bounds of the queue and nothing else; every
//! span that was queued when the exporter was stopped is tried once within [`SHUTDOWN_TIMEOUT`]; lost spans are
//! counted. A retryable failure is retried once, so that a collector that accepted a batch without a response
//! gets it twice. Not done: keeping spans on disk.

mod request;
mod send;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until, timeout},
};

pub use self::send::SpanExportTarget;
use self::send::{SpanExportConnection, SpanExportError};
use super::SpanPipeline;

/// The delay of a batch after its first span. kube-apiserver waits for five seconds, which is long for somebody
/// who looks at a trace.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// The time limit of one request, as in kube-apiserver.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The delay of the second attempt, unless the collector sets one, which is capped.
const RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);
/// The longest pause after lost batches: it spares a collector that is down, and finds it again soon.
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// The time limit for queued spans when the server stops.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// The resource of all spans.
#[derive(Clone, Debug)]
pub struct TraceResource {
    pub instance: String,
}

/// Exports spans until it is stopped. Dropped, it exports the queued spans and ends.
#[derive(Debug)]
pub struct SpanExporter {
    control: watch::Sender<SpanExportControl>,
    task: JoinHandle<()>,
}

#[derive(Clone, Debug)]
struct SpanExportControl {
    target: SpanExportTarget,
    stopping: bool,
}

impl SpanExporter {
    pub fn start(target: SpanExportTarget, resource: &TraceResource, pipeline: Arc<SpanPipeline>) -> Self {
        let (control, controlled) = watch::channel(SpanExportControl { target: target.clone(), stopping: false });
        let run = SpanExportTask {
            pipeline,
            resource: request::resource(&resource.instance),
            line: SpanExportConnection::new(target),
            control: controlled,
            failures: 0,
            loss_reported: false,
        };
        Self { control, task: tokio::spawn(run.run()) }
    }

    /// Changes the destination, also of queued spans.
    pub fn redirect(&self, target: SpanExportTarget) {
        self.control.send_modify(|control| control.target = target);
    }

    /// Exports the queued spans and ends.
    pub async fn stop(self) {
        self.control.send_modify(|control| control.stopping = true);
        let mut task = self.task;
        if timeout(SHUTDOWN_TIMEOUT, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("failed to export the remaining spans within the time limit");
        }
    }
}

struct SpanExportTask {
    pipeline: Arc<SpanPipeline>,
    resource: Vec<u8>,
    line: SpanExportConnection,
    control: watch::Receiver<SpanExportControl>,
    /// The number of batches in a row that this collector lost.
    failures: u32,
    /// Whether a loss was logged, and its end not yet.
    loss_reported: bool,
}

impl SpanExportTask {
    async fn run(mut self) {
        while !self.is_stopping() {
            self.wait_for_batch().await;
            let lost = self.send_batch().await;
            if lost {
                self.sleep_or_control(backoff(self.failures)).await;
            }
        }
        // One attempt per batch; if the first is lost, the others would be too, only later.
        while !self.send_batch().await && !self.pipeline.is_empty() {}
    }

    /// Waits for a full batch, or for the delay after the first span.
    async fn wait_for_batch(&mut self) {
        let pipeline = Arc::clone(&self.pipeline);
        tokio::select! {
            () = pipeline.wait_for_spans(false) => {}
            () = self.wait_for_control() => return,
        }
        tokio::select! {
            () = pipeline.wait_for_spans(true) => {}
            () = sleep(BATCH_DELAY) => {}
            () = self.wait_for_control() => {}
        }
    }

    /// Sends a batch of queued spans. True if it was lost.
    async fn send_batch(&mut self) -> bool {
        let batch = self.pipeline.take();
        if batch.is_empty() {
            return false;
        }
        let spans = batch.len() as u64;
        let body = request::body(&self.resource, batch);
        let mut outcome = self.line.send(body.clone(), EXPORT_TIMEOUT).await;
        if let Err(SpanExportError { retry: Some(pause), .. }) = outcome
            && !self.is_stopping()
        {
            self.sleep_or_control(pause.unwrap_or(RETRY_DELAY).min(MAX_RETRY_DELAY)).await;
            outcome = self.line.send(body, EXPORT_TIMEOUT).await;
        }
        self.report_outcome(outcome, spans)
    }

    /// Counts the outcome, and logs once per collector that it fails, and once that export works again, also if
    /// that is another collector by then.
    fn report_outcome(&mut self, outcome: Result<u64, SpanExportError>, spans: u64) -> bool {
        if let Some(news) = outcome_message(&outcome, self.failures, self.loss_reported, self.line.authority()) {
            tracing::warn!("{news}");
        }
        self.loss_reported = outcome.is_err();
        match outcome {
            Ok(rejected) => {
                self.pipeline.count_exported(spans, rejected);
                self.failures = 0;
                false
            }
            Err(_) => {
                self.pipeline.count_lost(spans);
                self.failures = self.failures.saturating_add(1);
                true
            }
        }
    }

    /// Sleeps, unless a control message arrives.
    async fn sleep_or_control(&mut self, time: Duration) {
        let end = Instant::now() + time;
        tokio::select! {
            () = sleep_until(end) => {}
            () = self.wait_for_control() => {}
        }
    }

    /// Waits for a new target or for the end.
    async fn wait_for_control(&mut self) {
        if self.control.changed().await.is_err() {
            // The exporter was dropped; the last target stays, and the export ends.
            return;
        }
        let SpanExportControl { target, stopping } = self.control.borrow_and_update().clone();
        if !stopping {
            self.line = SpanExportConnection::new(target);
            self.failures = 0;
        }
    }

    fn is_stopping(&self) -> bool {
        self.control.borrow().stopping || self.control.has_changed().is_err()
    }
}

/// The message after a batch, given the batches lost before and whether a loss was logged (`told`).
fn outcome_message(outcome: &Result<u64, SpanExportError>, lost: u32, told: bool, place: &str) -> Option<String> {
    match outcome {
        Ok(_) => told.then(|| format!("the export of spans to the collector at {place} works again")),
        Err(failure) => (lost == 0).then(|| {
            let why = &failure.why;
            format!("failed to export spans to the collector at {place}, dropping them until it works again: {why}")
        }),
    }
}

/// One second, then doubled for each failure.
fn backoff(failures: u32) -> Duration {
    RETRY_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(MAX_BACKOFF)
}

#[cfg(test)]
mod tests;
