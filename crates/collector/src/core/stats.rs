//! Counters. Names and labels are closed enums; text for Prometheus and for `/status` is made elsewhere from these.
//!
//! Counters outlive the components that count: a component that is rebuilt finds the ones it had. Those of a pipeline end with it: whoever has its id next begins with zero.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use kubewake_otlp::Signal;
use tokio::time::Instant;

pub use self::pipeline::PipelineStats;
use super::{Calls, Code, Moment, Progress, SamplerStats};

mod pipeline;

/// A closed set of names.
macro_rules! closed {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// All of them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The name in labels and documents.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }
    };
}

pub(super) use closed;

closed! {
    /// How data came in.
    Transport {
        /// OTLP/gRPC
        Grpc => "grpc",
        /// OTLP/HTTP
        Http => "http",
    }
}

closed! {
    /// Why a request was refused before its items could be counted, by what its sender would do about it.
    TurnedAway {
        /// There was no memory for it; it may come again.
        Memory => "memory",
        /// It is larger than allowed, as sent or once decompressed.
        TooLarge => "too_large",
        /// It is not OTLP.
        Malformed => "malformed",
        /// It is compressed in a way that is unknown or not allowed.
        Encoding => "encoding",
        /// Its sender did not say who it is, or may not come in.
        Unauthenticated => "unauthenticated",
        /// It did not arrive whole, or not in time.
        Incomplete => "incomplete",
    }
}

closed! {
    /// Why data was lost, by what one would do about it.
    DropReason {
        /// The exporter's buffer was full.
        QueueFull => "queue_full",
        /// The memory budget was used up.
        MemoryLimit => "memory_limit",
        /// The destination refused it for good.
        Refused => "refused",
        /// The destination took the request and rejected a part of it.
        Rejected => "rejected",
        /// No attempt succeeded in the time given.
        RetriesExhausted => "retries_exhausted",
        /// It was still held when the time for shutting down was over.
        Shutdown => "shutdown",
    }
}

closed! {
    /// What kind of error came last, by where one would look.
    ErrorClass {
        /// None so far.
        None => "none",
        /// The destination cannot be reached.
        Connection => "connection",
        /// It did not answer in time.
        Timeout => "timeout",
        /// It asks to come back later.
        Throttled => "throttled",
        /// It does not accept our credentials.
        Authentication => "authentication",
        /// It refuses the data.
        Refused => "refused",
        /// It is not what we think it is: wrong path, wrong protocol, a bad answer.
        Protocol => "protocol",
        /// A local failure: a file, a credential that cannot be read.
        Local => "local",
    }
}

/// What a receiver counts for one transport.
#[derive(Debug, Default)]
pub struct ReceiverStats {
    accepted: PerSignal,
    refused: PerSignal,
    failed: PerSignal,
    turned_away: [AtomicU64; TurnedAway::ALL.len()],
    calls: PerSignal<Calls>,
}

/// A counter for each signal.
#[derive(Debug, Default)]
pub struct PerSignal<T = AtomicU64>([T; 3]);

impl PerSignal {
    /// Adds to the counter of `signal`.
    pub fn add(&self, signal: Signal, n: u64) {
        self.cell(signal).fetch_add(n, Ordering::Relaxed);
    }

    /// Reads it.
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
    pub fn turn_away(&self, reason: TurnedAway) {
        if let Some(cell) = self.turned_away.get(reason as usize) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Requests that were refused for this reason.
    pub fn turned_away(&self, reason: TurnedAway) -> u64 {
        self.turned_away.get(reason as usize).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// How long calls of a signal took.
    pub fn calls(&self, signal: Signal) -> &Calls {
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

/// What a processor counts, in all pipelines of one signal together.
#[derive(Debug, Default)]
pub struct ProcessorStats {
    /// Items in.
    pub incoming: AtomicU64,
    /// Items out.
    pub outgoing: AtomicU64,
    /// Items that it refused.
    pub refused: AtomicU64,
    /// Items that it was there to drop.
    pub filtered: AtomicU64,
    /// What it decided, if it is a sampler.
    pub sampled: SamplerStats,
    /// Batches that left because they were full.
    pub size_triggers: AtomicU64,
    /// Batches that left because their time was up.
    pub timeout_triggers: AtomicU64,
    /// Combinations of metadata that are told apart at the moment.
    pub metadata_cardinality: AtomicU64,
    /// Sizes of the batches that left, in items.
    pub batch_items: Histogram,
    /// Sizes of the batches that left, in bytes.
    pub batch_bytes: Histogram,
}

/// What an exporter counts, in one pipeline.
#[derive(Debug, Default)]
pub struct ExporterStats {
    /// Items that the destination took.
    pub sent: AtomicU64,
    /// Items that were given up after trying.
    pub send_failed: AtomicU64,
    /// Items that found no room in the queue.
    pub enqueue_failed: AtomicU64,
    /// Items that the destination rejected in partial successes.
    pub rejected: AtomicU64,
    /// Requests under way.
    pub in_flight: AtomicI64,
    /// What the queue holds.
    pub queue: QueueGauge,
    /// What it may hold; zero without a queue.
    pub queue_capacity: AtomicU64,
    /// Sizes of the batches sent, in items.
    pub batch_items: Histogram,
    /// Sizes of the batches sent, in bytes.
    pub batch_bytes: Histogram,
    /// How long its attempts took.
    pub calls: Calls,
    /// How its attempts have been going.
    pub progress: Progress,
}

/// What a queue holds, with what its workers are sending.
#[derive(Debug, Default)]
pub struct QueueGauge {
    size: AtomicU64,
    oldest: Moment,
}

impl QueueGauge {
    /// It holds so much, by its sizer, and the oldest of it came then.
    pub fn show(&self, size: u64, oldest: Option<Instant>) {
        self.size.store(size, Ordering::Relaxed);
        self.oldest.set(oldest);
    }

    /// How much it holds.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// When the oldest of it came.
    pub fn oldest(&self) -> Option<Instant> {
        self.oldest.get()
    }
}

impl ExporterStats {
    /// It is no longer in use: the gauges go, the counters stay.
    pub fn retire(&self) {
        self.queue.show(0, None);
        self.queue_capacity.store(0, Ordering::Relaxed);
    }
}

impl ExporterStats {
    /// Adds what another one counted and will not count on. Gauges and the course of its attempts stay its own.
    pub fn absorb(&self, other: &Self) {
        let counters = [
            (&self.sent, &other.sent),
            (&self.send_failed, &other.send_failed),
            (&self.enqueue_failed, &other.enqueue_failed),
            (&self.rejected, &other.rejected),
        ];
        for (sum, more) in counters {
            sum.fetch_add(more.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.batch_items.absorb(&other.batch_items);
        self.batch_bytes.absorb(&other.batch_bytes);
        self.calls.absorb(&other.calls);
    }
}

/// Counts by size; the bounds are those of the Collector's histograms of batch sizes in bytes. Those of sizes in items
/// are the first of them, up to [`Histogram::LAST_BOUND_OF_ITEMS`].
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; Histogram::BOUNDS.len()],
    sum: AtomicU64,
    count: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: [const { AtomicU64::new(0) }; _], sum: AtomicU64::new(0), count: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Upper bounds of the buckets.
    pub const BOUNDS: [u64; 39] = [
        10, 25, 50, 75, 100, 250, 500, 750, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000, 20_000,
        30_000, 50_000, 100_000, 200_000, 300_000, 400_000, 500_000, 600_000, 700_000, 800_000, 900_000, 1_000_000,
        2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000, 7_000_000, 8_000_000, 9_000_000,
    ];

    /// The largest bound of a histogram of items.
    pub const LAST_BOUND_OF_ITEMS: u64 = 100_000;

    /// Counts one size.
    pub fn record(&self, size: u64) {
        let at = Self::BOUNDS.partition_point(|bound| *bound < size);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(size, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what another one counted.
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
        let rows = Self::BOUNDS.iter().zip(counts).map(|(bound, n)| {
            total += n;
            (*bound, total)
        });
        (rows.collect(), self.sum.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed))
    }
}

/// Where an exporter sends to, as the Collector's labels say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// `server_address`
    pub address: String,
    /// `server_port`
    pub port: String,
    /// `url_path`
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
