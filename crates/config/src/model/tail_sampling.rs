//! `tail_sampling`: which whole traces are kept.

use std::time::Duration;

use crate::Pattern;

/// `tail_sampling`
#[derive(Clone, Debug, PartialEq)]
pub struct TailSampling {
    /// `decision_wait`: how long after its first span a trace is decided on.
    pub decision_wait: Duration,
    /// `decision_wait_after_root_received`: how long after its root, if that is earlier; zero: never.
    pub decision_wait_after_root: Duration,
    /// `num_traces`: so many traces are known at once, decided or not.
    pub num_traces: usize,
    /// `block_on_overflow`: senders wait while there are so many.
    pub block_on_overflow: bool,
    /// `decision_cache::sampled_cache_size`, in traces; zero: none.
    pub sampled_cache_size: usize,
    /// `decision_cache::non_sampled_cache_size`, in traces; zero: none.
    pub non_sampled_cache_size: usize,
    /// `sample_on_first_match`: a trace is kept as soon as a policy says so.
    pub sample_on_first_match: bool,
    /// `sampling_strategy`
    pub strategy: SamplingStrategy,
    /// `drop_pending_traces_on_shutdown`: what is undecided at the end is dropped.
    pub drop_pending_on_shutdown: bool,
    /// `maximum_trace_size_bytes`: a larger trace is dropped; zero: never.
    pub maximum_trace_size: u64,
    /// `num_shards`; zero: one for each core, and fewer where the limits are small.
    pub num_shards: usize,
    /// `record_policy`: kept spans say which policy kept them. Ours.
    pub record_policy: bool,
    /// `late_error_wait`: so long a dropped trace can still be had when an error comes late. Ours.
    pub late_error_wait: Duration,
    /// `overload_sampling_percentage`: the share of traces that are kept when there is no memory to wait. Ours.
    pub overload_percentage: f64,
    /// `policies`, in the order of the document.
    pub policies: Vec<SamplingPolicy>,
}

impl Default for TailSampling {
    fn default() -> Self {
        Self {
            decision_wait: Duration::from_secs(30),
            decision_wait_after_root: Duration::ZERO,
            num_traces: 50_000,
            block_on_overflow: false,
            sampled_cache_size: 0,
            non_sampled_cache_size: 0,
            sample_on_first_match: false,
            strategy: SamplingStrategy::TraceComplete,
            drop_pending_on_shutdown: false,
            maximum_trace_size: 0,
            num_shards: 0,
            record_policy: false,
            late_error_wait: Duration::ZERO,
            overload_percentage: 10.0,
            policies: Vec::new(),
        }
    }
}

/// What a decision looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingStrategy {
    /// `trace-complete`: all spans that came until it is time.
    TraceComplete,
    /// `span-ingest`: each arrival by itself, at once.
    SpanIngest,
}

/// A policy with its name.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingPolicy {
    /// `name`
    pub name: String,
    /// Its type, with its settings.
    pub rule: SamplingRule,
}

/// What a policy goes by.
#[derive(Clone, Debug, PartialEq)]
pub enum SamplingRule {
    /// `always_sample`
    Always,
    /// `latency`, in milliseconds.
    Latency {
        /// `threshold_ms`
        threshold: i64,
        /// `upper_threshold_ms`; zero: none.
        upper: i64,
    },
    /// `numeric_attribute`
    Numeric {
        /// `key`
        key: String,
        /// `min_value`
        min: i64,
        /// `max_value`
        max: i64,
        /// `invert_match`
        invert: bool,
    },
    /// `probabilistic`
    Probabilistic {
        /// `hash_salt`; empty: the Collector's own.
        salt: String,
        /// `sampling_percentage`
        percentage: f64,
    },
    /// `status_code`
    Status {
        /// `status_codes`, by their numbers in OTLP.
        codes: Vec<i32>,
    },
    /// `string_attribute`
    Text {
        /// `key`
        key: String,
        /// `values`
        values: TextValues,
        /// `invert_match`
        invert: bool,
    },
    /// `rate_limiting`, in spans.
    RateLimiting(Allowed),
    /// `bytes_limiting`, in bytes.
    BytesLimiting(Allowed),
    /// `span_count`
    SpanCount {
        /// `min_spans`
        min: i64,
        /// `max_spans`; zero: any.
        max: i64,
    },
    /// `trace_state`
    TraceState {
        /// `key`
        key: String,
        /// `values`
        values: Vec<String>,
    },
    /// `trace_flags`
    TraceFlags,
    /// `boolean_attribute`
    Boolean {
        /// `key`
        key: String,
        /// `value`
        value: bool,
        /// `invert_match`
        invert: bool,
    },
    /// `and`
    And(Vec<SamplingPolicy>),
    /// `not`
    Not(Box<SamplingPolicy>),
    /// `drop`
    Drop(Vec<SamplingPolicy>),
    /// `composite`
    Composite {
        /// `max_total_spans_per_second`
        max_total: i64,
        /// `composite_sub_policy`, each with its share of spans a second.
        parts: Vec<(SamplingPolicy, i64)>,
    },
}

/// What text is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextValues {
    /// Any of these, as they are. An empty one never matches.
    Exact(Vec<String>),
    /// Any of these is found in it.
    Patterns(Vec<Pattern>),
}

/// So much a second, and so much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// `spans_per_second` or `bytes_per_second`
    pub per_second: i64,
    /// `burst_capacity`
    pub burst: i64,
}

impl SamplingRule {
    /// What is hashed in front of a trace's id where `hash_salt` is empty.
    pub const DEFAULT_SALT: &str = "default-hash-seed";

    /// The salts of all probabilities in it that are neither none nor all.
    pub fn salts(&self) -> Vec<&str> {
        match self {
            Self::Probabilistic { salt, percentage } if *percentage > 0.0 && *percentage < 100.0 => {
                vec![if salt.is_empty() { Self::DEFAULT_SALT } else { salt }]
            }
            Self::And(parts) | Self::Drop(parts) => parts.iter().flat_map(|part| part.rule.salts()).collect(),
            Self::Not(part) => part.rule.salts(),
            Self::Composite { parts, .. } => parts.iter().flat_map(|(part, _)| part.rule.salts()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether what it says of a trace can change with more spans, or with other traces, so that it cannot be asked of parts.
    pub fn is_stateful(&self) -> bool {
        match self {
            Self::RateLimiting(_) | Self::BytesLimiting(_) => true,
            Self::Latency { upper, .. } => *upper > 0,
            Self::SpanCount { max, .. } => *max > 0,
            Self::And(parts) | Self::Drop(parts) => parts.iter().any(|part| part.rule.is_stateful()),
            Self::Not(part) => part.rule.is_stateful(),
            Self::Composite { parts, .. } => parts.iter().any(|(part, _)| part.rule.is_stateful()),
            _ => false,
        }
    }
}
