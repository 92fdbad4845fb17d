//! The pipeline between finished spans and the exporter: a bounded queue, and the current sampling.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use kubewake_runtime::lock::Mutex;
use tokio::sync::Notify;

use super::{InstrumentationScope, TraceId};

/// The limit of queued spans: kube-apiserver's own bound.
pub(super) const MAX_QUEUED_SPANS: usize = 2048;
/// The limit of a batch: kube-apiserver's own bound.
pub(super) const MAX_BATCH_SPANS: usize = 512;

/// The destination of finished spans. It outlives every reload, so that none loses spans.
#[derive(Debug)]
pub struct SpanPipeline {
    sampling: ArcSwap<SpanSampling>,
    queue: Mutex<Vec<FinishedSpan>>,
    /// Notified when the queue is no longer empty, and when it has a full batch.
    waiting: Notify,
    counters: SpanCounters,
}

/// The rules of sampling and of trust in callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanSampling {
    /// The sampling rate of root spans, per million.
    pub ratio_per_million: u32,
    /// Groups whose members are trusted with trace context: their trace is continued.
    pub trusted_groups: Vec<String>,
    /// Whether authentication starts no trace of its own where the caller has one.
    pub joined_authentication: bool,
}

/// A finished span, as OTLP's `Span`.
#[derive(Debug)]
pub struct FinishedSpan {
    pub scope: InstrumentationScope,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    pub exported: u64,
    /// Lost spans: the queue was full, or the collector did not accept them.
    pub dropped: u64,
    /// Batches that the collector did not accept.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct SpanCounters {
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl SpanSampling {
    /// OpenTelemetry's TraceIDRatioBased: compares the upper 63 bits of the lower half of the id with the rate.
    fn samples(&self, trace: TraceId) -> bool {
        let share = f64::from(self.ratio_per_million.min(1_000_000)) / 1e6;
        trace.lower_half() >> 1 < (share * (1_u64 << 63) as f64) as u64
    }
}

impl SpanPipeline {
    /// A pipeline without an exporter.
    pub fn new(sampling: SpanSampling) -> Arc<Self> {
        Arc::new(Self {
            sampling: ArcSwap::from_pointee(sampling),
            queue: Mutex::default(),
            waiting: Notify::new(),
            counters: SpanCounters::default(),
        })
    }

    pub fn set_sampling(&self, sampling: SpanSampling) {
        self.sampling.store(Arc::new(sampling));
    }

    /// The counters of spans so far.
    pub fn counts(&self) -> SpanCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let SpanCounters { exported, dropped, failed } = &self.counters;
        SpanCounts { exported: load(exported), dropped: load(dropped), failed: load(failed) }
    }

    /// Takes up to a batch of queued spans, oldest first.
    pub fn take(&self) -> Vec<FinishedSpan> {
        let mut queue = self.lock_queue();
        let count = queue.len().min(MAX_BATCH_SPANS);
        if count == queue.len() { std::mem::take(&mut *queue) } else { queue.drain(..count).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.lock_queue().is_empty()
    }

    /// Waits until the queue has a span, or a full batch.
    pub(super) async fn wait_for_spans(&self, full: bool) {
        let wanted = if full { MAX_BATCH_SPANS } else { 1 };
        while self.lock_queue().len() < wanted {
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

    pub(super) fn push(&self, finished: FinishedSpan) {
        let mut queue = self.lock_queue();
        if queue.len() >= MAX_QUEUED_SPANS {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.push(finished);
        let length = queue.len();
        drop(queue);
        // Waking the exporter for every span would cost more than the span.
        if length == 1 || length == MAX_BATCH_SPANS {
            self.waiting.notify_one();
        }
    }

    pub(super) fn count_exported(&self, spans: u64, rejected: u64) {
        self.counters.exported.fetch_add(spans.saturating_sub(rejected), Ordering::Relaxed);
        self.counters.dropped.fetch_add(rejected, Ordering::Relaxed);
    }

    pub(super) fn count_lost(&self, spans: u64) {
        self.counters.failed.fetch_add(1, Ordering::Relaxed);
        self.counters.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    fn lock_queue(&self) -> std::sync::MutexGuard<'_, Vec<FinishedSpan>> {
        self.queue.lock()
    }
}
