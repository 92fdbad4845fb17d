//! Policies of sampling by whole traces: the collector's, under their names.
//!
//! A schema of Kubernetes cannot contain itself, so that what may stand within what has types of its own.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filter::StatusCode;

/// A policy has a name and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting), has(self.and), has(self.not), has(self.drop), has(self.composite)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct TailSamplingPolicy {
    /// Name of the policy, which metrics and spans use as a label.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Rules that are allowed at every level.
    #[serde(flatten)]
    pub plain: PlainRules,
    /// Keeps a trace if all sub-policies keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub and: Option<AndPolicy>,
    /// Keeps a trace if the sub-policy does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<NotPolicy>,
    /// Drops a trace if all sub-policies keep it, even if other policies keep the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<DropPolicy>,
    /// Keeps a trace if the first sub-policy that keeps it is within its share of the rate limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composite: Option<CompositePolicy>,
}

/// Rules that are allowed at every level.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlainRules {
    /// Keeps all traces without any condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_sample: Option<AlwaysSampleRule>,
    /// Keeps a trace if a span has one of the given status codes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<StatusCodeRule>,
    /// Keeps a trace if its duration is within the given limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyRule>,
    /// Keeps a percentage of the traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probabilistic: Option<ProbabilisticRule>,
    /// Keeps a trace by the text value of a span or resource attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_attribute: Option<StringAttributeRule>,
    /// Keeps a trace by the integer value of a span or resource attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numeric_attribute: Option<NumericAttributeRule>,
    /// Keeps a trace by the boolean value of a span or resource attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boolean_attribute: Option<BooleanAttributeRule>,
    /// Keeps a trace by its number of spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_count: Option<SpanCountRule>,
    /// Keeps a trace by the trace state of its spans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_state: Option<TraceStateRule>,
    /// Keeps a trace if a span has the flag *sampled*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_flags: Option<TraceFlagsRule>,
    /// Keeps a limited number of spans per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limiting: Option<RateLimitingRule>,
    /// Keeps a limited number of bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_limiting: Option<BytesLimitingRule>,
}

/// Keeps all traces without any condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct AlwaysSampleRule {}

/// Keeps a trace if a span has the flag *sampled*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TraceFlagsRule {}

/// Keeps a trace if a span has one of the given status codes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCodeRule {
    /// Status codes of spans, of which one must match.
    #[schemars(length(min = 1, max = 3))]
    pub status_codes: Vec<StatusCode>,
}

/// Keeps a trace by its duration, from its earliest start to its latest end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatencyRule {
    /// Minimum duration of the trace in milliseconds.
    #[schemars(range(min = 0))]
    pub threshold_ms: i64,
    /// Maximum duration of the trace in milliseconds. Default: 0, which means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub upper_threshold_ms: Option<i64>,
}

/// Keeps a percentage of the traces.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbabilisticRule {
    /// Percentage of the traces to keep.
    #[schemars(range(min = 0, max = 100))]
    pub sampling_percentage: f64,
    /// Salt of the hash of the trace ID. Policies with the same salt keep the same traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub hash_salt: Option<String>,
}

/// Keeps a trace by the text value of a span or resource attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StringAttributeRule {
    /// Key of the span or resource attribute.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Values or regular expressions, of which one must match.
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub values: Vec<String>,
    /// Whether `values` are regular expressions (RE2).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enabled_regex_matching: bool,
    /// Keeps a trace if no attribute matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert_match: bool,
}

/// Keeps a trace by the integer value of a span or resource attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumericAttributeRule {
    /// Key of the span or resource attribute.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Minimum value of the attribute. Default: 0, which means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_value: Option<i64>,
    /// Maximum value of the attribute. Default: 0, which means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_value: Option<i64>,
    /// Keeps a trace if no attribute matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert_match: bool,
}

/// Keeps a trace by the boolean value of a span or resource attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BooleanAttributeRule {
    /// Key of the span or resource attribute.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Value that the attribute must have.
    pub value: bool,
    /// Keeps a trace if no attribute matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert_match: bool,
}

/// Keeps a trace by its number of spans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpanCountRule {
    /// Minimum number of spans in the trace.
    #[schemars(range(min = 0))]
    pub min_spans: i32,
    /// Maximum number of spans in the trace. Default: 0, which means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_spans: Option<i32>,
}

/// Keeps a trace by the trace state of its spans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceStateRule {
    /// Key in the trace state.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// Values, of which one must match.
    #[schemars(length(min = 1, max = 128), inner(length(max = 256)))]
    pub values: Vec<String>,
}

/// Keeps a limited number of spans per second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitingRule {
    /// Maximum number of spans per second.
    #[schemars(range(min = 1))]
    pub spans_per_second: i64,
    /// Maximum number of spans in a burst. Default: twice `spansPerSecond`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub burst_capacity: Option<i64>,
}

/// Keeps a limited number of bytes per second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BytesLimitingRule {
    /// Maximum number of bytes per second.
    #[schemars(range(min = 1))]
    pub bytes_per_second: i64,
    /// Maximum number of bytes in a burst. Default: twice `bytesPerSecond`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub burst_capacity: Option<i64>,
}

/// Keeps a trace if all sub-policies keep it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AndPolicy {
    /// Sub-policies, which must all keep the trace.
    #[schemars(length(min = 1, max = 16))]
    pub and_sub_policy: Vec<AndPart>,
}

/// Drops a trace if all sub-policies keep it, even if other policies keep the trace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DropPolicy {
    /// Sub-policies, which must all keep the trace for it to be dropped.
    #[schemars(length(min = 1, max = 16))]
    pub drop_sub_policy: Vec<AndPart>,
}

/// Keeps a trace if the sub-policy does not keep it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotPolicy {
    /// Sub-policy whose decision is inverted.
    pub not_sub_policy: NotPart,
}

/// Keeps a trace if the first sub-policy that keeps it is within its share of the rate limit.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositePolicy {
    /// Maximum number of spans per second of all sub-policies together.
    #[schemars(range(min = 1))]
    pub max_total_spans_per_second: i64,
    /// Sub-policies, which are evaluated in this order.
    #[schemars(length(min = 1, max = 16))]
    pub composite_sub_policy: Vec<CompositePart>,
    /// Shares of the rate limit. A sub-policy without a share keeps nothing.
    #[schemars(length(min = 1, max = 16))]
    pub rate_allocation: Vec<RateAllocation>,
}

/// Share of a sub-policy in the rate limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateAllocation {
    /// Name of the sub-policy.
    #[schemars(length(min = 1, max = 128))]
    pub policy: String,
    /// Share in percent of `maxTotalSpansPerSecond`.
    #[schemars(range(min = 0, max = 100))]
    pub percent: i64,
}

/// A sub-policy of `and` or `drop` has a name and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting), has(self.not)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct AndPart {
    /// Name that describes the sub-policy.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Rules that are allowed at every level.
    #[serde(flatten)]
    pub plain: PlainRules,
    /// Keeps a trace if the sub-policy does not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<NotPolicy>,
}

/// The sub-policy of `not` has a name and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct NotPart {
    /// Name that describes the sub-policy.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Rules that are allowed at every level.
    #[serde(flatten)]
    pub plain: PlainRules,
}

/// A sub-policy of `composite` has a name and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting), has(self.and)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct CompositePart {
    /// Name of the sub-policy, which `rateAllocation` refers to.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Rules that are allowed at every level.
    #[serde(flatten)]
    pub plain: PlainRules,
    /// Keeps a trace if all sub-policies keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub and: Option<AndPolicy>,
}
