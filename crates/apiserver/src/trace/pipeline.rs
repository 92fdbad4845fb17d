//! What lies between finished spans and the exporter: a bounded queue, and the rules of the day.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::{Scope, TraceId};

/// Spans that wait for the exporter: kube-apiserver's own bound.
pub(super) const QUEUE: usize = 2048;
/// At most so many are sent at once: kube-apiserver's own bound.
pub(super) const BATCH: usize = 512;

/// Where finished spans go. It outlives every reload, so that no span is lost by one.
#[derive(Debug)]
pub struct Pipeline {
    sampling: ArcSwap<Sampling>,
    queue: Mutex<Vec<Finished>>,
    /// Told when there is something to send, and when there is a batch full.
    waiting: Notify,
    counters: Counters,
}

/// Which spans are made, and whose children they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampling {
    /// So many of a million roots are sampled.
    pub ratio_per_million: u32,
    /// Callers in these groups are believed: their trace goes on here.
    pub trusted_groups: Vec<String>,
    /// Whether authentication leaves no trace of its own where the caller has one.
    pub joined_authentication: bool,
}

/// A finished span, as OTLP's `Span`.
#[derive(Debug)]
pub struct Finished {
    /// Who made it.
    pub scope: Scope,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// What became of spans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Taken by the collector.
    pub exported: u64,
    /// Lost: the queue was full, or the collector did not take them.
    pub dropped: u64,
    /// Batches that the collector did not take.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Counters {
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Sampling {
    /// As OpenTelemetry's TraceIDRatioBased: the upper 63 bits of the lower half of the id, below a share of all.
    fn samples(&self, trace: TraceId) -> bool {
        let share = f64::from(self.ratio_per_million.min(1_000_000)) / 1e6;
        trace.low() >> 1 < (share * (1_u64 << 63) as f64) as u64
    }
}

impl Pipeline {
    /// A pipeline that nobody empties yet.
    pub fn new(sampling: Sampling) -> Arc<Self> {
        Arc::new(Self {
            sampling: ArcSwap::from_pointee(sampling),
            queue: Mutex::default(),
            waiting: Notify::new(),
            counters: Counters::default(),
        })
    }

    /// Goes by other rules from now on.
    pub fn set_sampling(&self, sampling: Sampling) {
        self.sampling.store(Arc::new(sampling));
    }

    /// What became of spans so far.
    pub fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { exported, dropped, failed } = &self.counters;
        Counts { exported: load(exported), dropped: load(dropped), failed: load(failed) }
    }

    /// Up to a batch of what waits, oldest first.
    pub fn take(&self) -> Vec<Finished> {
        let mut queue = self.queue();
        let count = queue.len().min(BATCH);
        if count == queue.len() { std::mem::take(&mut *queue) } else { queue.drain(..count).collect() }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }

    /// Waits until there is something, or a full batch.
    pub(super) async fn waiting(&self, full: bool) {
        let wanted = if full { BATCH } else { 1 };
        while self.queue().len() < wanted {
            self.waiting.notified().await;
        }
    }

    pub(super) fn trusts(&self, is_in: impl Fn(&str) -> bool) -> bool {
        self.sampling.load().trusted_groups.iter().any(|group| is_in(group))
    }

    pub(super) fn joins_authentication(&self) -> bool {
        self.sampling.load().joined_authentication
    }

    pub(super) fn samples(&self, trace: TraceId) -> bool {
        self.sampling.load().samples(trace)
    }

    pub(super) fn push(&self, finished: Finished) {
        let mut queue = self.queue();
        if queue.len() >= QUEUE {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.push(finished);
        let length = queue.len();
        drop(queue);
        // Waking the exporter for every span would cost more than the span.
        if length == 1 || length == BATCH {
            self.waiting.notify_one();
        }
    }

    pub(super) fn exported(&self, spans: u64, rejected: u64) {
        self.counters.exported.fetch_add(spans.saturating_sub(rejected), Ordering::Relaxed);
        self.counters.dropped.fetch_add(rejected, Ordering::Relaxed);
    }

    pub(super) fn lost(&self, spans: u64) {
        self.counters.failed.fetch_add(1, Ordering::Relaxed);
        self.counters.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Vec<Finished>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
