//! `tail_sampling`

use std::time::Duration;

use super::yaml::{YamlMap, YamlValue};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TailSamplingSection {
    pub decision_wait: Option<Duration>,
    pub decision_wait_after_root_received: Option<Duration>,
    pub num_traces: Option<i64>,
    pub sampled_cache_size: Option<i64>,
    pub non_sampled_cache_size: Option<i64>,
    pub sample_on_first_match: bool,
    pub maximum_trace_size_bytes: Option<i64>,
    pub late_error_wait: Option<Duration>,
    pub policies: Vec<PolicySection>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PolicySection {
    pub name: String,
    /// `type`, and the settings of that name.
    pub rule: TailSamplingRule,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TailSamplingRule {
    AlwaysSample,
    TraceFlags,
    StatusCode(Vec<&'static str>),
    Latency(i64, Option<i64>),
    Probabilistic(f64, Option<String>),
    StringAttribute {
        key: String,
        values: Vec<String>,
        regex: bool,
        invert: bool,
    },
    NumericAttribute {
        key: String,
        min: Option<i64>,
        max: Option<i64>,
        invert: bool,
    },
    BooleanAttribute {
        key: String,
        value: bool,
        invert: bool,
    },
    SpanCount(i32, Option<i32>),
    TraceState(String, Vec<String>),
    RateLimiting(i64, Option<i64>),
    BytesLimiting(i64, Option<i64>),
    And(Vec<PolicySection>),
    Drop(Vec<PolicySection>),
    Not(Box<PolicySection>),
    Composite {
        max_total_spans_per_second: i64,
        parts: Vec<PolicySection>,
        /// `rate_allocation`: `policy` and `percent`
        shares: Vec<(String, i64)>,
    },
}

impl TailSamplingSection {
    pub(super) fn to_value(&self) -> YamlMap {
        let cache = YamlMap::default()
            .with_optional("sampled_cache_size", self.sampled_cache_size)
            .with_optional("non_sampled_cache_size", self.non_sampled_cache_size);
        YamlMap::default()
            .with_optional("decision_wait", self.decision_wait)
            .with_optional("decision_wait_after_root_received", self.decision_wait_after_root_received)
            .with_optional("num_traces", self.num_traces)
            .with_optional("decision_cache", Some(cache).filter(|cache| *cache != YamlMap::default()))
            .with_flag("sample_on_first_match", self.sample_on_first_match)
            .with_optional("maximum_trace_size_bytes", self.maximum_trace_size_bytes)
            .with_optional("late_error_wait", self.late_error_wait)
            .with_list("policies", self.policies.iter().map(PolicySection::to_value))
    }
}

impl PolicySection {
    fn to_value(&self) -> YamlValue {
        let (kind, settings) = self.rule.settings();
        let settings = Some(settings).filter(|settings| *settings != YamlMap::default());
        YamlMap::default().with_field("name", &self.name).with_field("type", kind).with_optional(kind, settings).into()
    }
}

impl TailSamplingRule {
    /// `type`, and the settings under that name.
    fn settings(&self) -> (&'static str, YamlMap) {
        let map = YamlMap::default();
        let parts = |parts: &[PolicySection]| parts.iter().map(PolicySection::to_value).collect::<Vec<_>>();
        match self {
            Self::AlwaysSample => ("always_sample", map),
            Self::TraceFlags => ("trace_flags", map),
            Self::StatusCode(codes) => ("status_code", map.with_list("status_codes", codes.iter().copied())),
            Self::Latency(threshold, upper) => {
                ("latency", map.with_field("threshold_ms", *threshold).with_optional("upper_threshold_ms", *upper))
            }
            Self::Probabilistic(percentage, salt) => (
                "probabilistic",
                map.with_optional("hash_salt", salt.as_ref()).with_field("sampling_percentage", *percentage),
            ),
            Self::StringAttribute { key, values, regex, invert } => (
                "string_attribute",
                map.with_field("key", key)
                    .with_list("values", values)
                    .with_flag("enabled_regex_matching", *regex)
                    .with_flag("invert_match", *invert),
            ),
            Self::NumericAttribute { key, min, max, invert } => (
                "numeric_attribute",
                map.with_field("key", key)
                    .with_optional("min_value", *min)
                    .with_optional("max_value", *max)
                    .with_flag("invert_match", *invert),
            ),
            Self::BooleanAttribute { key, value, invert } => (
                "boolean_attribute",
                map.with_field("key", key).with_field("value", *value).with_flag("invert_match", *invert),
            ),
            Self::SpanCount(min, max) => {
                ("span_count", map.with_field("min_spans", *min).with_optional("max_spans", *max))
            }
            Self::TraceState(key, values) => ("trace_state", map.with_field("key", key).with_list("values", values)),
            Self::RateLimiting(rate, burst) => {
                ("rate_limiting", map.with_field("spans_per_second", *rate).with_optional("burst_capacity", *burst))
            }
            Self::BytesLimiting(rate, burst) => {
                ("bytes_limiting", map.with_field("bytes_per_second", *rate).with_optional("burst_capacity", *burst))
            }
            Self::And(policies) => ("and", map.with_list("and_sub_policy", parts(policies))),
            Self::Drop(policies) => ("drop", map.with_list("drop_sub_policy", parts(policies))),
            Self::Not(policy) => ("not", map.with_field("not_sub_policy", policy.to_value())),
            Self::Composite { max_total_spans_per_second, parts: policies, shares } => {
                let share = |(policy, percent): &(String, i64)| {
                    YamlMap::default().with_field("policy", policy).with_field("percent", *percent)
                };
                let map = map
                    .with_field("max_total_spans_per_second", *max_total_spans_per_second)
                    .with_list("composite_sub_policy", parts(policies))
                    .with_list("rate_allocation", shares.iter().map(share));
                ("composite", map)
            }
        }
    }
}
