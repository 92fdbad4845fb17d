//! Writes the settings of `tail_sampling`.

use super::{
    CompositePart, PolicyRateLimit, SamplingPolicy, SamplingRule, TailSamplingProcessor, TextValues,
    policy::STATUS_CODES, settings::SAMPLING_STRATEGIES,
};
use crate::{
    RegexPattern,
    encode::{YamlMap, keyword},
};

pub(super) fn settings(processor: &TailSamplingProcessor) -> YamlMap {
    let default = TailSamplingProcessor::default();
    let strategy = |processor: &TailSamplingProcessor| keyword(&SAMPLING_STRATEGIES, &processor.strategy);
    let cache = YamlMap::default().with_changed("sampled_cache_size", processor.sampled_cache_size, 0).with_changed(
        "non_sampled_cache_size",
        processor.non_sampled_cache_size,
        0,
    );
    let (after_root, overload) = ("decision_wait_after_root_received", "overload_sampling_percentage");
    YamlMap::default()
        .with_changed("decision_wait", processor.decision_wait, default.decision_wait)
        .with_changed(after_root, processor.decision_wait_after_root, default.decision_wait_after_root)
        .with_changed("num_traces", processor.num_traces, default.num_traces)
        .with_flag("block_on_overflow", processor.block_on_overflow)
        .with_section("decision_cache", cache)
        .with_flag("sample_on_first_match", processor.sample_on_first_match)
        .with_changed("sampling_strategy", strategy(processor), strategy(&default))
        .with_flag("drop_pending_traces_on_shutdown", processor.drop_pending_on_shutdown)
        .with_changed("maximum_trace_size_bytes", processor.maximum_trace_size, default.maximum_trace_size)
        .with_changed("num_shards", processor.num_shards, default.num_shards)
        .with_flag("record_policy", processor.record_policy)
        .with_changed("late_error_wait", processor.late_error_wait, default.late_error_wait)
        .with_changed(overload, processor.overload_percentage, default.overload_percentage)
        .with_list("policies", processor.policies.iter().map(SamplingPolicy::encode))
}

impl SamplingPolicy {
    fn encode(&self) -> YamlMap {
        let (kind, settings) = self.rule.encode();
        YamlMap::default().with_field("name", &self.name).with_field("type", kind).with_section(kind, settings)
    }
}

impl SamplingRule {
    /// `type`, and the settings under that name.
    fn encode(&self) -> (&'static str, YamlMap) {
        let map = YamlMap::default();
        let list = |policies: &[SamplingPolicy]| policies.iter().map(SamplingPolicy::encode).collect::<Vec<_>>();
        match self {
            Self::Always => ("always_sample", map),
            Self::TraceFlags => ("trace_flags", map),
            Self::Status { codes } => {
                ("status_code", map.with_list("status_codes", codes.iter().map(|code| keyword(&STATUS_CODES, code))))
            }
            Self::Latency { threshold, upper } => (
                "latency",
                map.with_changed("threshold_ms", *threshold, 0).with_changed("upper_threshold_ms", *upper, 0),
            ),
            Self::Probabilistic { salt, percentage } => {
                ("probabilistic", map.with_text("hash_salt", salt).with_field("sampling_percentage", *percentage))
            }
            Self::Text { key, values, invert } => {
                let map = map.with_field("key", key).with_list("values", values.texts());
                let map = map.with_flag("enabled_regex_matching", matches!(values, TextValues::Patterns(_)));
                ("string_attribute", map.with_flag("invert_match", *invert))
            }
            Self::Numeric { key, min, max, invert } => (
                "numeric_attribute",
                map.with_field("key", key)
                    .with_changed("min_value", *min, i64::MIN)
                    .with_changed("max_value", *max, i64::MAX)
                    .with_flag("invert_match", *invert),
            ),
            Self::Boolean { key, value, invert } => (
                "boolean_attribute",
                map.with_field("key", key).with_field("value", *value).with_flag("invert_match", *invert),
            ),
            Self::SpanCount { min, max } => {
                ("span_count", map.with_changed("min_spans", *min, 0).with_changed("max_spans", *max, 0))
            }
            Self::TraceState { key, values } => ("trace_state", map.with_field("key", key).with_list("values", values)),
            Self::RateLimiting(limit) => ("rate_limiting", limit.encode("spans_per_second")),
            Self::BytesLimiting(limit) => ("bytes_limiting", limit.encode("bytes_per_second")),
            Self::And(policies) => ("and", map.with_list("and_sub_policy", list(policies))),
            Self::Drop(policies) => ("drop", map.with_list("drop_sub_policy", list(policies))),
            Self::Not(policy) => ("not", map.with_field("not_sub_policy", policy.encode())),
            Self::Composite { max_total, parts } => {
                let map = map
                    .with_field("max_total_spans_per_second", *max_total)
                    .with_list("composite_sub_policy", parts.iter().map(|part| part.policy.encode()))
                    .with_list("rate_allocation", parts.iter().filter_map(CompositePart::encode_share));
                ("composite", map)
            }
        }
    }
}

impl CompositePart {
    fn encode_share(&self) -> Option<YamlMap> {
        let percent = self.percent?;
        Some(YamlMap::default().with_field("policy", &self.policy.name).with_field("percent", percent))
    }
}

impl PolicyRateLimit {
    /// The burst is twice the rate unless it is set.
    fn encode(&self, rate: &'static str) -> YamlMap {
        let default_burst = self.per_second.saturating_mul(2);
        YamlMap::default().with_field(rate, self.per_second).with_changed("burst_capacity", self.burst, default_burst)
    }
}

impl TextValues {
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Exact(texts) => texts.iter().map(String::as_str).collect(),
            Self::Patterns(patterns) => patterns.iter().map(RegexPattern::as_str).collect(),
        }
    }
}
