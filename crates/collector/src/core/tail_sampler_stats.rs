//! Counters of a tail sampler.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use kubewake_runtime::lock::Mutex;

/// The decision on a trace, with the labels of the Collector's contrib repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SamplingOutcome {
    Sampled,
    NotSampled,
    /// Dropped by a `drop` policy.
    Dropped,
}

impl SamplingOutcome {
    pub const ALL: [Self; 3] = [Self::Sampled, Self::NotSampled, Self::Dropped];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::NotSampled => "not_sampled",
            Self::Dropped => "dropped",
        }
    }

    pub const fn sampled(self) -> &'static str {
        if matches!(self, Self::Sampled) { "true" } else { "false" }
    }
}

/// Why a trace was decided before its decision wait was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EarlyDecision {
    /// The maximum number of traces was reached.
    NumTraces,
    /// The trace had grown too large to wait.
    Size,
    /// There was no memory for new traces to wait.
    Overload,
}

impl EarlyDecision {
    pub const ALL: [Self; 3] = [Self::NumTraces, Self::Size, Self::Overload];

    pub const fn name(self) -> &'static str {
        match self {
            Self::NumTraces => "num_traces",
            Self::Size => "size",
            Self::Overload => "overload",
        }
    }
}

#[derive(Debug, Default)]
pub struct PolicyStats {
    counts: [TraceCounts; SamplingOutcome::ALL.len()],
}

#[derive(Debug, Default)]
pub struct TraceCounts {
    pub traces: AtomicU64,
    pub spans: AtomicU64,
    pub bytes: AtomicU64,
}

impl PolicyStats {
    /// Counts the decision of a policy on a trace.
    pub fn count(&self, outcome: SamplingOutcome, spans: u64, bytes: u64) {
        let counts = self.counts(outcome);
        counts.traces.fetch_add(1, Ordering::Relaxed);
        counts.spans.fetch_add(spans, Ordering::Relaxed);
        counts.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The traces with this decision.
    pub fn counts(&self, outcome: SamplingOutcome) -> &TraceCounts {
        let [sampled, not_sampled, dropped] = &self.counts;
        match outcome {
            SamplingOutcome::Sampled => sampled,
            SamplingOutcome::NotSampled => not_sampled,
            SamplingOutcome::Dropped => dropped,
        }
    }
}

/// A histogram with configurable bounds.
#[derive(Debug)]
pub struct ValueHistogram {
    bounds: &'static [u64],
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
    count: AtomicU64,
}

impl ValueHistogram {
    pub fn new(bounds: &'static [u64]) -> Self {
        let buckets = bounds.iter().map(|_| AtomicU64::new(0)).collect();
        Self { bounds, buckets, sum: AtomicU64::new(0), count: AtomicU64::new(0) }
    }

    pub fn record(&self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(value, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Cumulative counts by upper bound, then the sum and the count of all.
    pub fn snapshot(&self) -> (Vec<(u64, u64)>, u64, u64) {
        let mut total = 0;
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        let rows = self.bounds.iter().zip(counts).map(|(bound, count)| {
            total += count;
            (*bound, total)
        });
        (rows.collect(), self.sum.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed))
    }
}

/// Durations of decision runs, in milliseconds.
const DECISION_TIME_BOUNDS_MS: &[u64] = &[
    1, 2, 5, 10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000, 30_000,
    50_000,
];

/// OpenTelemetry's default bounds; here in seconds.
const AGE_BOUNDS_SECS: &[u64] = &[0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

/// The counters of a tail sampler, over all its pipelines.
#[derive(Debug)]
pub struct TailSamplerStats {
    policies: Mutex<BTreeMap<String, Arc<PolicyStats>>>,
    /// Traces by decision.
    decided: [AtomicU64; SamplingOutcome::ALL.len()],
    early: [AtomicU64; EarlyDecision::ALL.len()],
    /// Spans kept because of a cached decision.
    pub cached_kept: AtomicU64,
    pub cached_dropped: AtomicU64,
    /// Traces seen for the first time.
    pub new_traces: AtomicU64,
    /// Traces that were dropped because they were too large.
    pub too_large: AtomicU64,
    /// Known traces, decided or not.
    pub traces: AtomicU64,
    /// Bytes of traces that wait for a decision.
    pub waiting_bytes: AtomicU64,
    /// Dropped traces that a late error revived.
    pub promoted: AtomicU64,
    /// Spans of kept traces with an unreadable trace state, or with another randomness than the decision used,
    /// so that the trace state does not tell the sampling probability.
    pub unreadable_trace_states: AtomicU64,
    /// The number of pipelines without memory for new traces to wait.
    pub overloaded: AtomicU64,
    pub overloads: AtomicU64,
    /// Durations of decision runs, in milliseconds.
    pub decision_time: ValueHistogram,
    /// Seconds from a decision to a late span.
    pub late_age: ValueHistogram,
    /// Seconds from the first span of a trace until the trace is removed.
    pub removal_age: ValueHistogram,
}

impl Default for TailSamplerStats {
    fn default() -> Self {
        Self {
            policies: Mutex::default(),
            decided: Default::default(),
            early: Default::default(),
            cached_kept: AtomicU64::new(0),
            cached_dropped: AtomicU64::new(0),
            new_traces: AtomicU64::new(0),
            too_large: AtomicU64::new(0),
            traces: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            promoted: AtomicU64::new(0),
            unreadable_trace_states: AtomicU64::new(0),
            overloaded: AtomicU64::new(0),
            overloads: AtomicU64::new(0),
            decision_time: ValueHistogram::new(DECISION_TIME_BOUNDS_MS),
            late_age: ValueHistogram::new(AGE_BOUNDS_SECS),
            removal_age: ValueHistogram::new(AGE_BOUNDS_SECS),
        }
    }
}

impl TailSamplerStats {
    pub fn policy(&self, name: &str) -> Arc<PolicyStats> {
        let mut policies = self.policies.lock();
        policies.entry(name.to_owned()).or_default().clone()
    }

    /// All policies, current and former.
    pub fn policies(&self) -> Vec<(String, Arc<PolicyStats>)> {
        let policies = self.policies.lock();
        policies.iter().map(|(name, stats)| (name.clone(), stats.clone())).collect()
    }

    pub fn count_decision(&self, outcome: SamplingOutcome) {
        if let Some(count) = self.decided.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn decisions(&self, outcome: SamplingOutcome) -> u64 {
        self.decided.get(outcome as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts a trace that was decided early.
    pub fn count_early_decision(&self, why: EarlyDecision) {
        if let Some(count) = self.early.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn early_decisions(&self, why: EarlyDecision) -> u64 {
        self.early.get(why as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}
