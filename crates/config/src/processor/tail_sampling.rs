//! `tail_sampling`: decides which whole traces are kept.

mod encode;
mod policy;
mod settings;

use std::time::Duration;

use kubewake_otlp::Signal;

use crate::{
    RegexPattern,
    component::{ComponentSettings, ProcessorSettings},
    decode::{Cursor, DecodeReport},
    encode::YamlMap,
};

#[derive(Clone, Debug, PartialEq)]
pub struct TailSamplingProcessor {
    /// `decision_wait`: how long after its first span a trace is decided on.
    pub decision_wait: Duration,
    /// `decision_wait_after_root_received`: how long after its root, if that is earlier; zero: never.
    pub decision_wait_after_root: Duration,
    /// `num_traces`: the number of traces that are remembered at once, decided or not.
    pub num_traces: usize,
    /// `block_on_overflow`: senders wait while that number is reached.
    pub block_on_overflow: bool,
    /// `decision_cache::sampled_cache_size`, in traces; zero: none.
    pub sampled_cache_size: usize,
    /// `decision_cache::non_sampled_cache_size`, in traces; zero: none.
    pub non_sampled_cache_size: usize,
    /// `sample_on_first_match`: a trace is kept as soon as a policy says so.
    pub sample_on_first_match: bool,
    pub strategy: SamplingStrategy,
    /// `drop_pending_traces_on_shutdown`: undecided traces are dropped at shutdown.
    pub drop_pending_on_shutdown: bool,
    /// `maximum_trace_size_bytes`: a larger trace is dropped; zero: never.
    pub maximum_trace_size: u64,
    /// `num_shards`; zero: one for each core, and fewer where the limits are small.
    pub num_shards: usize,
    /// `record_policy`: kept spans say which policy kept them. Ours.
    pub record_policy: bool,
    /// `late_error_wait`: how long a dropped trace can be recovered when an error comes late. Ours.
    pub late_error_wait: Duration,
    /// `overload_sampling_percentage`: the share of traces that are kept when there is no memory to wait. Ours.
    pub overload_percentage: f64,
    /// `policies`, in the order of the document.
    pub policies: Vec<SamplingPolicy>,
}

impl Default for TailSamplingProcessor {
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

/// The spans that a decision is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingStrategy {
    /// `trace-complete`: all spans that arrived before the decision.
    TraceComplete,
    /// `span-ingest`: each arrival by itself, at once.
    SpanIngest,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SamplingPolicy {
    pub name: String,
    /// Its type, with its settings.
    pub rule: SamplingRule,
}

/// The rule by which a policy decides.
#[derive(Clone, Debug, PartialEq)]
pub enum SamplingRule {
    Always,
    /// `latency`, in milliseconds.
    Latency {
        threshold: i64,
        upper: i64,
    },
    Numeric {
        key: String,
        min: i64,
        max: i64,
        invert: bool,
    },
    Probabilistic {
        /// `hash_salt`; empty: the Collector's own.
        salt: String,
        percentage: f64,
    },
    Status {
        /// `status_codes`, by their numbers in OTLP.
        codes: Vec<i32>,
    },
    Text {
        key: String,
        values: TextValues,
        invert: bool,
    },
    RateLimiting(PolicyRateLimit),
    /// `bytes_limiting`, in bytes.
    BytesLimiting(PolicyRateLimit),
    SpanCount {
        min: i64,
        max: i64,
    },
    TraceState {
        key: String,
        values: Vec<String>,
    },
    TraceFlags,
    Boolean {
        key: String,
        value: bool,
        invert: bool,
    },
    And(Vec<SamplingPolicy>),
    Not(Box<SamplingPolicy>),
    Drop(Vec<SamplingPolicy>),
    Composite {
        max_total: i64,
        /// `composite_sub_policy`, each with its entry of `rate_allocation`.
        parts: Vec<CompositePart>,
    },
}

/// A policy of a composite, and its share of the rate.
#[derive(Clone, Debug, PartialEq)]
pub struct CompositePart {
    pub policy: SamplingPolicy,
    /// `percent` of the total; one that is not positive means an equal share, and `None` no spans.
    pub percent: Option<i64>,
}

impl CompositePart {
    /// Its share of the total in spans per second, if there are `count` parts.
    pub fn share(&self, max_total: i64, count: usize) -> i64 {
        match self.percent {
            None => 0,
            Some(percent) if percent > 0 => (percent as f64 / 100.0 * max_total as f64) as i64,
            Some(_) => (max_total as f64 / count.max(1) as f64) as i64,
        }
    }
}

/// Texts or patterns to compare with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextValues {
    /// Any of these texts, as they are. An empty one never matches.
    Exact(Vec<String>),
    /// Any of these patterns, found anywhere in the text.
    Patterns(Vec<RegexPattern>),
}

/// The rate limit of a policy, and its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyRateLimit {
    pub per_second: i64,
    pub burst: i64,
}

impl SamplingRule {
    /// The prefix of a trace's id for hashing where `hash_salt` is empty.
    pub const DEFAULT_SALT: &str = "default-hash-seed";

    /// The salts of all probabilities in it other than 0 and 100 percent.
    pub fn salts(&self) -> Vec<&str> {
        match self {
            Self::Probabilistic { salt, percentage } if *percentage > 0.0 && *percentage < 100.0 => {
                vec![if salt.is_empty() { Self::DEFAULT_SALT } else { salt }]
            }
            Self::And(parts) | Self::Drop(parts) => parts.iter().flat_map(|part| part.rule.salts()).collect(),
            Self::Not(part) => part.rule.salts(),
            Self::Composite { parts, .. } => parts.iter().flat_map(|part| part.policy.rule.salts()).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether its decision about a trace can change with more spans or with other traces, so that parts cannot
    /// be decided by themselves.
    pub fn is_stateful(&self) -> bool {
        match self {
            Self::RateLimiting(_) | Self::BytesLimiting(_) => true,
            Self::Latency { upper, .. } => *upper > 0,
            Self::SpanCount { max, .. } => *max > 0,
            Self::And(parts) | Self::Drop(parts) => parts.iter().any(|part| part.rule.is_stateful()),
            Self::Not(part) => part.rule.is_stateful(),
            Self::Composite { parts, .. } => parts.iter().any(|part| part.policy.rule.is_stateful()),
            _ => false,
        }
    }
}

impl ComponentSettings for TailSamplingProcessor {
    fn decode(at: &Cursor<'_>, report: &DecodeReport) -> Option<Self> {
        settings::decode(at, report)
    }

    fn encode(&self) -> YamlMap {
        encode::settings(self)
    }

    fn public_fields() -> &'static [&'static str] {
        &["policies"]
    }
}

impl ProcessorSettings for TailSamplingProcessor {
    fn signals(&self) -> &'static [Signal] {
        &[Signal::Traces]
    }

    fn keeps_requests(&self) -> bool {
        false
    }
}
