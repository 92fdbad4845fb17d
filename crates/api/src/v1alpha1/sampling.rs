//! Sampling: the traces that a pipeline keeps.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{policy::TailSamplingPolicy, value::duration};

/// Sampling of traces. By default all traces are kept. With both `percentage` and `tail`, `percentage` is
/// applied first.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SamplingOptions {
    /// Percentage of the traces to keep, decided by trace ID. All collectors decide alike, and spans are not
    /// delayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<f64>,
    /// Tail sampling: policies decide by the content of whole traces. Until the decision, spans wait in a
    /// separate tier of collectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailSamplingOptions>,
}

/// Tail sampling of whole traces.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TailSamplingOptions {
    /// Time from the first span of a trace to the decision. Default: `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub decision_wait: Option<String>,
    /// Time from the root span of a trace to the decision, if that is earlier. Default: `0s`, which disables
    /// this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub decision_wait_after_root_received: Option<String>,
    /// Number of traces that each collector keeps track of. Default: 50000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub num_traces: Option<i64>,
    /// Cache of decisions beyond `numTraces`, for spans that arrive late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_cache: Option<DecisionCacheOptions>,
    /// Keeps a trace as soon as one policy keeps it, unless there is a `drop` policy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sample_on_first_match: bool,
    /// Drops traces that are larger than this number of bytes. Default: 0, which means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1099511627776_i64))]
    pub maximum_trace_size_bytes: Option<i64>,
    /// Time after the decision in which a span with an error causes the policies to be evaluated again for a
    /// dropped trace. Default: `0s`, which disables this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub late_error_wait: Option<String>,
    /// Sampling policies. A trace is kept if any policy keeps it and no `drop` policy drops it.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub policies: Vec<TailSamplingPolicy>,
}

/// Cache of sampling decisions for spans that arrive late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionCacheOptions {
    /// Number of kept traces in the cache. Each takes 16 bytes. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000_000))]
    pub sampled_cache_size: Option<i64>,
    /// Number of dropped traces in the cache. Each takes 8 bytes. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000_000))]
    pub non_sampled_cache_size: Option<i64>,
}
