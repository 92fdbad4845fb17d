//! Counters. Names and labels are closed enums; `telemetry` turns them into text for Prometheus and `/status`.
//!
//! Counters outlive the components that count: a component that is rebuilt finds its earlier ones. Those of a
//! pipeline end with it: the next pipeline of the same id starts at zero.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use kubewake_otlp::Signal;
use kubewake_runtime::label_enum;
use tokio::time::Instant;

pub use self::pipeline::PipelineStats;
use super::{AtomicInstant, CallStats, Code, DeliveryProgress, RejectReason, RejectionCounts, SamplerStats};

mod pipeline;

label_enum! {
    pub enum Transport {
        Grpc => "grpc",
        Http => "http",
    }
}

label_enum! {
    /// Why a request was refused before its items could be counted, classified by what its sender can do.
    pub enum EarlyRefusal {
        /// There was no memory for it; the sender may retry.
        Memory => "memory",
        /// It is larger than allowed, as sent or once decompressed.
        TooLarge => "too_large",
        Malformed => "malformed",
        /// Its compression is unknown or not allowed.
        Encoding => "encoding",
        /// Its sender is not authenticated, or not allowed.
        Unauthenticated => "unauthenticated",
        /// It did not arrive completely, or not in time.
        Incomplete => "incomplete",
    }
}

label_enum! {
    /// Why data was lost, classified by what an operator can do.
    pub enum DropReason {
        /// The exporter's queue was full.
        QueueFull => "queue_full",
        /// The memory budget was used up.
        MemoryLimit => "memory_limit",
        /// The destination refused it for good.
        Refused => "refused",
        /// The destination took the request and rejected a part of it.
        Rejected => "rejected",
        /// No attempt succeeded in the time given.
        RetriesExhausted => "retries_exhausted",
        /// It was still held at the drain deadline.
        Shutdown => "shutdown",
    }
}

label_enum! {
    /// The class of the last error, by where to look for the cause.
    pub enum ErrorClass {
        None => "none",
        Connection => "connection",
        /// It did not respond in time.
        Timeout => "timeout",
        /// It asks to slow down or to retry later.
        Throttled => "throttled",
        /// It does not accept the credentials.
        Authentication => "authentication",
        Refused => "refused",
        /// It is not what is configured: wrong path, wrong protocol, or an invalid response.
        Protocol => "protocol",
        /// A local failure: a file, a credential that cannot be read.
        Local => "local",
    }
}

/// Counters of a receiver for one transport.
#[derive(Debug, Default)]
pub struct ReceiverStats {
    accepted: PerSignal,
    refused: PerSignal,
    failed: PerSignal,
    early_refusals: [AtomicU64; EarlyRefusal::ALL.len()],
    calls: PerSignal<CallStats>,
}

#[derive(Debug, Default)]
pub struct PerSignal<T = AtomicU64>([T; 3]);

impl PerSignal {
    pub fn add(&self, signal: Signal, n: u64) {
        self.cell(signal).fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self, signal: Signal) -> u64 {
        self.cell(signal).load(Ordering::Relaxed)
    }
}

impl<T> PerSignal<T> {
    fn cell(&self, signal: Signal) -> &T {
        let [traces, metrics, logs] = &self.0;
        match signal {
            Signal::Traces => traces,
            Signal::Metrics => metrics,
            Signal::Logs => logs,
        }
    }
}

impl ReceiverStats {
    /// Counts a request that was refused before its items were known.
    pub fn count_early_refusal(&self, reason: EarlyRefusal) {
        if let Some(cell) = self.early_refusals.get(reason as usize) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Requests that were refused for this reason.
    pub fn early_refusals(&self, reason: EarlyRefusal) -> u64 {
        self.early_refusals.get(reason as usize).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// The durations of calls, by signal.
    pub fn calls(&self, signal: Signal) -> &CallStats {
        self.calls.cell(signal)
    }

    /// Items that a pipeline took.
    pub fn accepted(&self) -> &PerSignal {
        &self.accepted
    }

    /// Items that no pipeline had room for.
    pub fn refused(&self) -> &PerSignal {
        &self.refused
    }

    /// Items that could not be taken for another reason.
    pub fn failed(&self) -> &PerSignal {
        &self.failed
    }
}

/// Counters of a processor, over all pipelines of one signal.
#[derive(Debug, Default)]
pub struct ProcessorStats {
    pub incoming: AtomicU64,
    pub outgoing: AtomicU64,
    pub refused: AtomicU64,
    /// Items that it dropped on purpose.
    pub filtered: AtomicU64,
    /// Its decisions, if it is a sampler.
    pub sampled: SamplerStats,
    /// Batches that were sent because they were full.
    pub size_triggers: AtomicU64,
    /// Batches that were sent because of the timeout.
    pub timeout_triggers: AtomicU64,
    /// The current number of metadata combinations.
    pub metadata_cardinality: AtomicU64,
    /// Sizes of the sent batches, in items.
    pub batch_items: BatchSizeHistogram,
    /// Sizes of the sent batches, in bytes.
    pub batch_bytes: BatchSizeHistogram,
}

/// Counters of an exporter in one pipeline.
#[derive(Debug, Default)]
pub struct ExporterStats {
    /// Items that the destination took.
    pub sent: AtomicU64,
    /// Items that were given up after trying.
    pub send_failed: AtomicU64,
    /// Items that found no room in the queue.
    pub enqueue_failed: AtomicU64,
    /// Items that the destination rejected in requests that it took.
    pub rejected: RejectionStats,
    /// Items that it took after they were shortened to its limits.
    pub truncated: AtomicU64,
    pub in_flight: AtomicI64,
    pub queue: QueueGauge,
    /// The capacity of the queue; zero without a queue.
    pub queue_capacity: AtomicU64,
    /// Sizes of the batches sent, in items.
    pub batch_items: BatchSizeHistogram,
    /// Sizes of the batches sent, in bytes.
    pub batch_bytes: BatchSizeHistogram,
    /// Durations of its attempts.
    pub calls: CallStats,
    /// The outcome of recent attempts.
    pub progress: DeliveryProgress,
}

/// Counters of rejected items by reason.
#[derive(Debug, Default)]
pub struct RejectionStats([AtomicU64; RejectReason::ALL.len()]);

impl RejectionStats {
    pub fn count(&self, rejected: &RejectionCounts) {
        for (reason, items) in rejected.iter() {
            self.add(reason, items);
        }
    }

    fn add(&self, reason: RejectReason, items: u64) {
        if let Some(count) = self.0.get(reason as usize) {
            count.fetch_add(items, Ordering::Relaxed);
        }
    }

    /// The number of items rejected for each reason.
    pub fn iter(&self) -> impl Iterator<Item = (RejectReason, u64)> + '_ {
        RejectReason::ALL.iter().copied().zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// The number of all rejected items.
    pub fn total(&self) -> u64 {
        self.iter().map(|(_, items)| items).sum()
    }

    fn absorb(&self, other: &Self) {
        other.iter().for_each(|(reason, items)| self.add(reason, items));
    }
}

/// The contents of a queue, including batches that its workers are sending.
#[derive(Debug, Default)]
pub struct QueueGauge {
    size: AtomicU64,
    oldest: AtomicInstant,
}

impl QueueGauge {
    /// Sets the size, in the unit of the sizer, and the time of the oldest entry.
    pub fn set(&self, size: u64, oldest: Option<Instant>) {
        self.size.store(size, Ordering::Relaxed);
        self.oldest.set(oldest);
    }

    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// When the oldest entry was enqueued.
    pub fn oldest(&self) -> Option<Instant> {
        self.oldest.get()
    }
}

impl ExporterStats {
    /// Resets the gauges of an exporter that is no longer in use; the counters stay.
    pub fn retire(&self) {
        self.queue.set(0, None);
        self.queue_capacity.store(0, Ordering::Relaxed);
    }
}

impl ExporterStats {
    /// Adds the counters of another exporter that is no longer in use. Gauges and progress are not merged.
    pub fn absorb(&self, other: &Self) {
        let counters = [
            (&self.sent, &other.sent),
            (&self.send_failed, &other.send_failed),
            (&self.enqueue_failed, &other.enqueue_failed),
            (&self.truncated, &other.truncated),
        ];
        for (sum, more) in counters {
            sum.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.rejected.absorb(&other.rejected);
        self.batch_items.absorb(&other.batch_items);
        self.batch_bytes.absorb(&other.batch_bytes);
        self.calls.absorb(&other.calls);
    }
}

/// A histogram of batch sizes, with the bounds of the Collector's histograms of batch sizes in bytes.
/// Histograms of items use the first of them, up to [`BatchSizeHistogram::MAX_ITEMS_BOUND`].
#[derive(Debug)]
pub struct BatchSizeHistogram {
    buckets: [AtomicU64; BatchSizeHistogram::BUCKET_BOUNDS.len()],
    sum: AtomicU64,
    count: AtomicU64,
}

impl Default for BatchSizeHistogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; _], sum: AtomicU64::new(0), count: AtomicU64::new(0) }
    }
}

impl BatchSizeHistogram {
    pub const BUCKET_BOUNDS: [u64; 39] = [
        10, 25, 50, 75, 100, 250, 500, 750, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 20_000,
        30_000, 50_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000, 1_000_000,
        2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000, 7_000_000, 8_000_000, 9_000_000,
    ];

    /// The largest bound of a histogram of items.
    pub const MAX_ITEMS_BOUND: u64 = 100_000;

    pub fn record(&self, size: u64) {
        let at = Self::BUCKET_BOUNDS.partition_point(|bound| *bound < size);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(size, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn absorb(&self, other: &Self) {
        let cells = self.buckets.iter().chain([&self.sum, &self.count]);
        for (cell, more) in cells.zip(other.buckets.iter().chain([&other.sum, &other.count])) {
            cell.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Cumulative counts by upper bound, then the sum and the count of all.
    pub fn snapshot(&self) -> (Vec<(u64, u64)>, u64, u64) {
        let mut total = 0;
        let counts = self.buckets.iter().map(|b| b.load(Ordering::Relaxed));
        let rows = Self::BUCKET_BOUNDS.iter().zip(counts).map(|(bound, n)| {
            total += n;
            (*bound, total)
        });
        (rows.collect(), self.sum.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed))
    }
}

/// The address that an exporter sends to, in the form of the Collector's labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DestinationLabels {
    pub address: String,
    pub port: String,
    pub path: String,
}

impl From<Code> for ErrorClass {
    fn from(code: Code) -> Self {
        match code {
            Code::Ok => ErrorClass::None,
            Code::DeadlineExceeded => ErrorClass::Timeout,
            Code::Unauthenticated | Code::PermissionDenied => ErrorClass::Authentication,
            Code::ResourceExhausted | Code::Unavailable => ErrorClass::Throttled,
            Code::Unimplemented | Code::NotFound => ErrorClass::Protocol,
            _ => ErrorClass::Refused,
        }
    }
}
