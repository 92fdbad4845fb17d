//! Takes finished spans to the collector, in batches, beside the requests and never in their path.
//!
//! Guaranteed: a slow or dead collector costs memory within the bounds of the queue and nothing else; every span that waited when the
//! exporter was stopped is tried once within [`LAST`]; what is lost is counted. A batch is tried twice if there is a chance that the
//! second time helps, so that a collector that took one and did not say so gets it twice. Not done: keeping spans on disk.

mod request;
mod send;

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep, sleep_until, timeout},
};

pub use self::send::Target;
use self::send::{Failure, Line};
use super::Pipeline;

/// A batch is sent so long after its first span. kube-apiserver waits for five seconds; people who look at a trace do not like to.
const DELAY: Duration = Duration::from_secs(1);
/// kube-apiserver's own patience with one request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between the first and the second attempt, unless the collector says how long; and never longer than the other.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// After a lost batch the next waits, each time longer up to this: one who is down is not hammered, and found again soon.
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);
/// When the server stops, what waits is sent within this time.
pub const LAST: Duration = Duration::from_secs(3);

/// The resource of all spans.
#[derive(Clone, Debug)]
pub struct Resource {
    /// `service.instance.id`
    pub instance: String,
}

/// Sends what comes until it is stopped. Dropped, it sends what is there and ends.
#[derive(Debug)]
pub struct Exporter {
    control: watch::Sender<Control>,
    task: JoinHandle<()>,
}

#[derive(Clone, Debug)]
struct Control {
    target: Target,
    stopping: bool,
}

impl Exporter {
    /// Begins to export.
    pub fn start(target: Target, resource: &Resource, pipeline: Arc<Pipeline>) -> Self {
        let (control, controlled) = watch::channel(Control { target: target.clone(), stopping: false });
        let run = Run {
            pipeline,
            resource: request::resource(&resource.instance),
            line: Line::new(target),
            control: controlled,
            failures: 0,
            told: false,
        };
        Self { control, task: tokio::spawn(run.run()) }
    }

    /// Sends to another place from now on, also what waits already.
    pub fn redirect(&self, target: Target) {
        self.control.send_modify(|control| control.target = target);
    }

    /// Sends what is there and ends.
    pub async fn stop(self) {
        self.control.send_modify(|control| control.stopping = true);
        let mut task = self.task;
        if timeout(LAST, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("the last spans were not taken in time");
        }
    }
}

struct Run {
    pipeline: Arc<Pipeline>,
    resource: Vec<u8>,
    line: Line,
    control: watch::Receiver<Control>,
    /// Batches that this collector lost in a row.
    failures: u32,
    /// Whether it was said that spans are lost, and not yet that they are not any more.
    told: bool,
}

impl Run {
    async fn run(mut self) {
        while !self.is_stopping() {
            self.gather().await;
            let lost = self.send().await;
            if lost {
                self.rest(backoff(self.failures)).await;
            }
        }
        // One attempt for each batch; if the first is lost the others would be too, only later.
        while !self.send().await && !self.pipeline.is_empty() {}
    }

    /// Waits for a full batch, or for the time after the first span.
    async fn gather(&mut self) {
        let pipeline = Arc::clone(&self.pipeline);
        tokio::select! {
            () = pipeline.waiting(false) => {}
            () = self.told() => return,
        }
        tokio::select! {
            () = pipeline.waiting(true) => {}
            () = sleep(DELAY) => {}
            () = self.told() => {}
        }
    }

    /// Sends a batch of what waits. True if it was lost.
    async fn send(&mut self) -> bool {
        let batch = self.pipeline.take();
        if batch.is_empty() {
            return false;
        }
        let spans = batch.len() as u64;
        let body = request::body(&self.resource, batch);
        let mut outcome = self.line.send(body.clone(), PATIENCE).await;
        if let Err(Failure { retry: Some(pause), .. }) = outcome
            && !self.is_stopping()
        {
            self.rest(pause.unwrap_or(PAUSE).min(LONGEST_PAUSE)).await;
            outcome = self.line.send(body, PATIENCE).await;
        }
        self.report(outcome, spans)
    }

    /// Counts, and says once of each collector that it fails, and once that it works again: whoever heard the one hears the other, also if that is another collector by then.
    fn report(&mut self, outcome: Result<u64, Failure>, spans: u64) -> bool {
        if let Some(news) = news(&outcome, self.failures, self.told, self.line.place()) {
            tracing::warn!("{news}");
        }
        self.told = outcome.is_err();
        match outcome {
            Ok(rejected) => {
                self.pipeline.exported(spans, rejected);
                self.failures = 0;
                false
            }
            Err(_) => {
                self.pipeline.lost(spans);
                self.failures = self.failures.saturating_add(1);
                true
            }
        }
    }

    /// Rests, unless there is news.
    async fn rest(&mut self, time: Duration) {
        let end = Instant::now() + time;
        tokio::select! {
            () = sleep_until(end) => {}
            () = self.told() => {}
        }
    }

    /// Ends when there is another target or an end.
    async fn told(&mut self) {
        if self.control.changed().await.is_err() {
            // Whoever could stop it is gone; what it was told last stays, and it ends.
            return;
        }
        let Control { target, stopping } = self.control.borrow_and_update().clone();
        if !stopping {
            self.line = Line::new(target);
            self.failures = 0;
        }
    }

    fn is_stopping(&self) -> bool {
        self.control.borrow().stopping || self.control.has_changed().is_err()
    }
}

/// What is to be said after a batch, if this collector lost so many before it, and it was told that spans are lost.
fn news(outcome: &Result<u64, Failure>, lost: u32, told: bool, place: &str) -> Option<String> {
    match outcome {
        Ok(_) => told.then(|| format!("the collector at {place} takes the API server's spans again")),
        Err(failure) => (lost == 0).then(|| {
            let why = &failure.why;
            format!(
                "the collector at {place} does not take the API server's spans, which are lost until it does: {why}"
            )
        }),
    }
}

/// One second, then twice as long each time.
fn backoff(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_BACKOFF)
}

#[cfg(test)]
mod tests;
