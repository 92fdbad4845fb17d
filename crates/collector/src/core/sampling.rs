//! What a tail sampler counts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// What became of a trace, as the labels of the Collector's contributions say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SamplingOutcome {
    /// Kept.
    Sampled,
    /// Kept by nobody.
    NotSampled,
    /// Dropped by a policy that drops.
    Dropped,
}

impl SamplingOutcome {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sampled, Self::NotSampled, Self::Dropped];

    /// `decision`
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::NotSampled => "not_sampled",
            Self::Dropped => "dropped",
        }
    }

    /// `sampled`
    pub const fn sampled(self) -> &'static str {
        if matches!(self, Self::Sampled) { "true" } else { "false" }
    }
}

/// Why a trace was decided on before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EarlyDecision {
    /// There were as many traces as there may be.
    NumTraces,
    /// It had grown too large to wait.
    Size,
    /// There was no memory to let new ones wait.
    Overload,
}

impl EarlyDecision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::NumTraces, Self::Size, Self::Overload];

    /// The name in labels.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NumTraces => "num_traces",
            Self::Size => "size",
            Self::Overload => "overload",
        }
    }
}

/// Counters of one policy.
#[derive(Debug, Default)]
pub struct PolicyStats {
    counts: [Counts; SamplingOutcome::ALL.len()],
}

/// Traces, with their spans and bytes.
#[derive(Debug, Default)]
pub struct Counts {
    /// Traces.
    pub traces: AtomicU64,
    /// Their spans.
    pub spans: AtomicU64,
    /// Their bytes.
    pub bytes: AtomicU64,
}

impl PolicyStats {
    /// Counts what the policy said of a trace.
    pub fn count(&self, outcome: SamplingOutcome, spans: u64, bytes: u64) {
        let counts = self.of(outcome);
        counts.traces.fetch_add(1, Ordering::Relaxed);
        counts.spans.fetch_add(spans, Ordering::Relaxed);
        counts.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What it said so often.
    pub fn of(&self, outcome: SamplingOutcome) -> &Counts {
        let [sampled, not_sampled, dropped] = &self.counts;
        match outcome {
            SamplingOutcome::Sampled => sampled,
            SamplingOutcome::NotSampled => not_sampled,
            SamplingOutcome::Dropped => dropped,
        }
    }
}

/// Counts by size, with bounds of its own.
#[derive(Debug)]
pub struct Distribution {
    bounds: &'static [u64],
    buckets: Vec<AtomicU64>,
    sum: AtomicU64,
    count: AtomicU64,
}

impl Distribution {
    /// With these upper bounds.
    pub fn new(bounds: &'static [u64]) -> Self {
        let buckets = bounds.iter().map(|_| AtomicU64::new(0)).collect();
        Self { bounds, buckets, sum: AtomicU64::new(0), count: AtomicU64::new(0) }
    }

    /// Counts one value.
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

/// Milliseconds of a run of decisions.
const LATENCIES: &[u64] = &[
    1, 2, 5, 10, 25, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1000, 2000, 3000, 4000, 5000, 10_000, 20_000, 30_000,
    50_000,
];

/// OpenTelemetry's own, for what has none; here for seconds.
const AGES: &[u64] = &[0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000];

/// What a tail sampler counts, in all its pipelines together.
#[derive(Debug)]
pub struct TailStats {
    policies: Mutex<BTreeMap<String, Arc<PolicyStats>>>,
    /// Traces by what became of them.
    decided: [AtomicU64; SamplingOutcome::ALL.len()],
    early: [AtomicU64; EarlyDecision::ALL.len()],
    /// Spans that followed a decision that a cache remembered: kept.
    pub cached_kept: AtomicU64,
    /// The same: dropped.
    pub cached_dropped: AtomicU64,
    /// Traces that were seen for the first time.
    pub new_traces: AtomicU64,
    /// Traces that were dropped because they were too large.
    pub too_large: AtomicU64,
    /// Traces that are known at the moment, decided or not.
    pub traces: AtomicU64,
    /// Bytes that wait at the moment.
    pub waiting_bytes: AtomicU64,
    /// Dropped traces that a late error brought back.
    pub promoted: AtomicU64,
    /// Spans of kept traces whose trace state could not be read, or has another randomness than what they were kept by: it does not say the
    /// probability.
    pub unreadable_trace_states: AtomicU64,
    /// In how many pipelines there is no memory to let new traces wait.
    pub overloaded: AtomicU64,
    /// How often that began.
    pub overloads: AtomicU64,
    /// Milliseconds that runs of decisions took.
    pub decision_time: Distribution,
    /// Seconds from a decision to a span that came late.
    pub late_age: Distribution,
    /// Seconds from the first span of a trace until it is forgotten.
    pub removal_age: Distribution,
}

impl Default for TailStats {
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
            decision_time: Distribution::new(LATENCIES),
            late_age: Distribution::new(AGES),
            removal_age: Distribution::new(AGES),
        }
    }
}

impl TailStats {
    /// The counters of a policy.
    pub fn policy(&self, name: &str) -> Arc<PolicyStats> {
        let mut policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        policies.entry(name.to_owned()).or_default().clone()
    }

    /// All policies that there are or were.
    pub fn policies(&self) -> Vec<(String, Arc<PolicyStats>)> {
        let policies = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        policies.iter().map(|(name, stats)| (name.clone(), stats.clone())).collect()
    }

    /// Counts what became of a trace.
    pub fn decide(&self, outcome: SamplingOutcome) {
        if let Some(count) = self.decided.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Traces of which that became.
    pub fn decided(&self, outcome: SamplingOutcome) -> u64 {
        self.decided.get(outcome as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Counts a trace that was decided on before its time.
    pub fn hurry(&self, why: EarlyDecision) {
        if let Some(count) = self.early.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Traces that were decided on early for that reason.
    pub fn hurried(&self, why: EarlyDecision) -> u64 {
        self.early.get(why as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}
