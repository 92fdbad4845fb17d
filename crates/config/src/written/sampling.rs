//! `tail_sampling`

use std::time::Duration;

use super::yaml::{Map, Value};

/// `tail_sampling`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailSampling {
    /// `decision_wait`
    pub decision_wait: Option<Duration>,
    /// `decision_wait_after_root_received`
    pub decision_wait_after_root_received: Option<Duration>,
    /// `num_traces`
    pub num_traces: Option<i64>,
    /// `decision_cache: sampled_cache_size`
    pub sampled_cache_size: Option<i64>,
    /// `decision_cache: non_sampled_cache_size`
    pub non_sampled_cache_size: Option<i64>,
    /// `sample_on_first_match`
    pub sample_on_first_match: bool,
    /// `maximum_trace_size_bytes`
    pub maximum_trace_size_bytes: Option<i64>,
    /// `late_error_wait`
    pub late_error_wait: Option<Duration>,
    /// `policies`
    pub policies: Vec<Policy>,
}

/// One of `policies`.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// `name`
    pub name: String,
    /// `type`, and the settings of that name.
    pub rule: Rule,
}

/// What a policy keeps.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// `always_sample`
    AlwaysSample,
    /// `trace_flags`
    TraceFlags,
    /// `status_code: status_codes`
    StatusCode(Vec<&'static str>),
    /// `latency: threshold_ms` and `upper_threshold_ms`
    Latency(i64, Option<i64>),
    /// `probabilistic: sampling_percentage` and `hash_salt`
    Probabilistic(f64, Option<String>),
    /// `string_attribute`
    StringAttribute {
        /// `key`
        key: String,
        /// `values`
        values: Vec<String>,
        /// `enabled_regex_matching`
        regex: bool,
        /// `invert_match`
        invert: bool,
    },
    /// `numeric_attribute`
    NumericAttribute {
        /// `key`
        key: String,
        /// `min_value`
        min: Option<i64>,
        /// `max_value`
        max: Option<i64>,
        /// `invert_match`
        invert: bool,
    },
    /// `boolean_attribute`
    BooleanAttribute {
        /// `key`
        key: String,
        /// `value`
        value: bool,
        /// `invert_match`
        invert: bool,
    },
    /// `span_count: min_spans` and `max_spans`
    SpanCount(i32, Option<i32>),
    /// `trace_state: key` and `values`
    TraceState(String, Vec<String>),
    /// `rate_limiting: spans_per_second` and `burst_capacity`
    RateLimiting(i64, Option<i64>),
    /// `bytes_limiting: bytes_per_second` and `burst_capacity`
    BytesLimiting(i64, Option<i64>),
    /// `and: and_sub_policy`
    And(Vec<Policy>),
    /// `drop: drop_sub_policy`
    Drop(Vec<Policy>),
    /// `not: not_sub_policy`
    Not(Box<Policy>),
    /// `composite`
    Composite {
        /// `max_total_spans_per_second`
        max_total_spans_per_second: i64,
        /// `composite_sub_policy`
        parts: Vec<Policy>,
        /// `rate_allocation`: `policy` and `percent`
        shares: Vec<(String, i64)>,
    },
}

impl TailSampling {
    pub(super) fn to_value(&self) -> Map {
        let cache = Map::default()
            .maybe("sampled_cache_size", self.sampled_cache_size)
            .maybe("non_sampled_cache_size", self.non_sampled_cache_size);
        Map::default()
            .maybe("decision_wait", self.decision_wait)
            .maybe("decision_wait_after_root_received", self.decision_wait_after_root_received)
            .maybe("num_traces", self.num_traces)
            .maybe("decision_cache", Some(cache).filter(|cache| *cache != Map::default()))
            .flag("sample_on_first_match", self.sample_on_first_match)
            .maybe("maximum_trace_size_bytes", self.maximum_trace_size_bytes)
            .maybe("late_error_wait", self.late_error_wait)
            .list("policies", self.policies.iter().map(Policy::to_value))
    }
}

impl Policy {
    fn to_value(&self) -> Value {
        let (kind, settings) = self.rule.settings();
        let settings = Some(settings).filter(|settings| *settings != Map::default());
        Map::default().with("name", &self.name).with("type", kind).maybe(kind, settings).into()
    }
}

impl Rule {
    /// `type`, and what stands under that name.
    fn settings(&self) -> (&'static str, Map) {
        let map = Map::default();
        let parts = |parts: &[Policy]| parts.iter().map(Policy::to_value).collect::<Vec<_>>();
        match self {
            Self::AlwaysSample => ("always_sample", map),
            Self::TraceFlags => ("trace_flags", map),
            Self::StatusCode(codes) => ("status_code", map.list("status_codes", codes.iter().copied())),
            Self::Latency(threshold, upper) => {
                ("latency", map.with("threshold_ms", *threshold).maybe("upper_threshold_ms", *upper))
            }
            Self::Probabilistic(percentage, salt) => {
                ("probabilistic", map.maybe("hash_salt", salt.as_ref()).with("sampling_percentage", *percentage))
            }
            Self::StringAttribute { key, values, regex, invert } => (
                "string_attribute",
                map.with("key", key)
                    .list("values", values)
                    .flag("enabled_regex_matching", *regex)
                    .flag("invert_match", *invert),
            ),
            Self::NumericAttribute { key, min, max, invert } => (
                "numeric_attribute",
                map.with("key", key).maybe("min_value", *min).maybe("max_value", *max).flag("invert_match", *invert),
            ),
            Self::BooleanAttribute { key, value, invert } => {
                ("boolean_attribute", map.with("key", key).with("value", *value).flag("invert_match", *invert))
            }
            Self::SpanCount(min, max) => ("span_count", map.with("min_spans", *min).maybe("max_spans", *max)),
            Self::TraceState(key, values) => ("trace_state", map.with("key", key).list("values", values)),
            Self::RateLimiting(rate, burst) => {
                ("rate_limiting", map.with("spans_per_second", *rate).maybe("burst_capacity", *burst))
            }
            Self::BytesLimiting(rate, burst) => {
                ("bytes_limiting", map.with("bytes_per_second", *rate).maybe("burst_capacity", *burst))
            }
            Self::And(policies) => ("and", map.list("and_sub_policy", parts(policies))),
            Self::Drop(policies) => ("drop", map.list("drop_sub_policy", parts(policies))),
            Self::Not(policy) => ("not", map.with("not_sub_policy", policy.to_value())),
            Self::Composite { max_total_spans_per_second, parts: policies, shares } => {
                let share =
                    |(policy, percent): &(String, i64)| Map::default().with("policy", policy).with("percent", *percent);
                let map = map
                    .with("max_total_spans_per_second", *max_total_spans_per_second)
                    .list("composite_sub_policy", parts(policies))
                    .list("rate_allocation", shares.iter().map(share));
                ("composite", map)
            }
        }
    }
}
