//! Policies of sampling by whole traces: the collector's, under their names.
//!
//! A schema of Kubernetes cannot contain itself, so that what may stand within what has types of its own.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filter::StatusCode;

/// A policy: a name, and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting), has(self.and), has(self.not), has(self.drop), has(self.composite)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct TailSamplingPolicy {
    /// Its name, by which counters and spans tell policies apart.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The rules that stand anywhere.
    #[serde(flatten)]
    pub plain: PlainRules,
    /// Keeps a trace if all of these do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub and: Option<AndPolicy>,
    /// Keeps a trace if this does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<NotPolicy>,
    /// Nobody keeps a trace if all of these would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<DropPolicy>,
    /// Keeps a trace if the first of these that would has something left of its share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub composite: Option<CompositePolicy>,
}

/// The rules that stand anywhere.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlainRules {
    /// Keeps all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always_sample: Option<AlwaysSampleRule>,
    /// Keeps a trace with a span of one of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<StatusCodeRule>,
    /// Keeps a trace that took long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyRule>,
    /// Keeps a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probabilistic: Option<ProbabilisticRule>,
    /// Keeps a trace by a text attribute of a span or a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string_attribute: Option<StringAttributeRule>,
    /// Keeps a trace by a whole number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numeric_attribute: Option<NumericAttributeRule>,
    /// Keeps a trace by a boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boolean_attribute: Option<BooleanAttributeRule>,
    /// Keeps a trace by how many spans it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_count: Option<SpanCountRule>,
    /// Keeps a trace by its trace state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_state: Option<TraceStateRule>,
    /// Keeps a trace with a span that has the flag *sampled*.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_flags: Option<TraceFlagsRule>,
    /// Keeps so many spans a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limiting: Option<RateLimitingRule>,
    /// Keeps so many bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_limiting: Option<BytesLimitingRule>,
}

/// Keeps all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct AlwaysSampleRule {}

/// Keeps a trace with a span that has the flag *sampled*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct TraceFlagsRule {}

/// Keeps a trace with a span of one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCodeRule {
    /// One of these.
    #[schemars(length(min = 1, max = 3))]
    pub status_codes: Vec<StatusCode>,
}

/// Keeps a trace that took long, from its first start to its last end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatencyRule {
    /// So many milliseconds or more.
    #[schemars(range(min = 0))]
    pub threshold_ms: i64,
    /// And not more than that. Default: 0, no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub upper_threshold_ms: Option<i64>,
}

/// Keeps a percentage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProbabilisticRule {
    /// So many percent.
    #[schemars(range(min = 0, max = 100))]
    pub sampling_percentage: f64,
    /// What is hashed with the id of the trace; the same everywhere keeps the same traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub hash_salt: Option<String>,
}

/// Keeps a trace by a text attribute of a span or a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StringAttributeRule {
    /// Its key.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// It is one of these.
    #[schemars(length(min = 1, max = 128), inner(length(max = 1024)))]
    pub values: Vec<String>,
    /// Or matches one of them as an expression (RE2).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub enabled_regex_matching: bool,
    /// Keeps a trace in which nothing matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert_match: bool,
}

/// Keeps a trace by a whole number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NumericAttributeRule {
    /// Its key.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// It is at least this. Default: 0, no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_value: Option<i64>,
    /// It is at most this. Default: 0, no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_value: Option<i64>,
    /// Keeps a trace in which nothing matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert_match: bool,
}

/// Keeps a trace by a boolean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BooleanAttributeRule {
    /// Its key.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// It is this.
    pub value: bool,
    /// Keeps a trace in which nothing matches.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub invert_match: bool,
}

/// Keeps a trace by how many spans it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SpanCountRule {
    /// At least so many.
    #[schemars(range(min = 0))]
    pub min_spans: i32,
    /// At most so many. Default: 0, no bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_spans: Option<i32>,
}

/// Keeps a trace by its trace state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TraceStateRule {
    /// The key.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
    /// It is one of these.
    #[schemars(length(min = 1, max = 128), inner(length(max = 256)))]
    pub values: Vec<String>,
}

/// Keeps so many spans a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitingRule {
    /// So many.
    #[schemars(range(min = 1))]
    pub spans_per_second: i64,
    /// So many can come at once. Default: twice as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub burst_capacity: Option<i64>,
}

/// Keeps so many bytes a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BytesLimitingRule {
    /// So many.
    #[schemars(range(min = 1))]
    pub bytes_per_second: i64,
    /// So many can come at once. Default: twice as many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub burst_capacity: Option<i64>,
}

/// Keeps a trace if all of these do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AndPolicy {
    /// All of these.
    #[schemars(length(min = 1, max = 16))]
    pub and_sub_policy: Vec<AndPart>,
}

/// Nobody keeps a trace if all of these would.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DropPolicy {
    /// All of these.
    #[schemars(length(min = 1, max = 16))]
    pub drop_sub_policy: Vec<AndPart>,
}

/// Keeps a trace if this does not.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotPolicy {
    /// This.
    pub not_sub_policy: NotPart,
}

/// Keeps a trace if the first of these that would has something left of its share.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompositePolicy {
    /// So many spans a second in all.
    #[schemars(range(min = 1))]
    pub max_total_spans_per_second: i64,
    /// These, in their order.
    #[schemars(length(min = 1, max = 16))]
    pub composite_sub_policy: Vec<CompositePart>,
    /// What share of the spans each of them has. One that is not named keeps nothing.
    #[schemars(length(min = 1, max = 16))]
    pub rate_allocation: Vec<RateAllocation>,
}

/// The share of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateAllocation {
    /// The name of the policy.
    #[schemars(length(min = 1, max = 128))]
    pub policy: String,
    /// Its share in percent.
    #[schemars(range(min = 0, max = 100))]
    pub percent: i64,
}

/// A part of `and` or `drop`: a name, and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting), has(self.not)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct AndPart {
    /// Its name.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The rules that stand anywhere.
    #[serde(flatten)]
    pub plain: PlainRules,
    /// Keeps a trace if this does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not: Option<NotPolicy>,
}

/// What `not` turns round: a name, and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct NotPart {
    /// Its name.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The rules that stand anywhere.
    #[serde(flatten)]
    pub plain: PlainRules,
}

/// A part of `composite`: a name, and exactly one rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "[has(self.alwaysSample), has(self.statusCode), has(self.latency), has(self.probabilistic), has(self.stringAttribute), has(self.numericAttribute), has(self.booleanAttribute), has(self.spanCount), has(self.traceState), has(self.traceFlags), has(self.rateLimiting), has(self.bytesLimiting), has(self.and)].exists_one(set, set)",
    "a policy has exactly one rule"
))]
pub struct CompositePart {
    /// Its name.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// The rules that stand anywhere.
    #[serde(flatten)]
    pub plain: PlainRules,
    /// Keeps a trace if all of these do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub and: Option<AndPolicy>,
}
