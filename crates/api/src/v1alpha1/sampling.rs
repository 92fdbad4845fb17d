//! Which traces a pipeline keeps.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{policy::TailSamplingPolicy, value::duration};

/// Which traces a pipeline keeps. Without it all of them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SamplingOptions {
    /// How many percent of the traces are kept, by their ids. All collectors decide alike, and nothing waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub percentage: Option<f64>,
    /// Which traces are kept, by what is in them. Their spans wait until all should be there, in collectors of
    /// their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<TailSamplingOptions>,
}

/// Sampling by whole traces.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TailSamplingOptions {
    /// How long after its first span a trace is decided on. Default: `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub decision_wait: Option<String>,
    /// How long after its root, if that is sooner. Default: `0s`, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub decision_wait_after_root_received: Option<String>,
    /// So many traces are known at once in each collector. Default: 50000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub num_traces: Option<i64>,
    /// Decisions that are remembered beyond that, for spans that come late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision_cache: Option<DecisionCacheOptions>,
    /// A trace is kept as soon as a policy keeps it, unless a policy drops traces.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sample_on_first_match: bool,
    /// A larger trace is dropped. Default: 0, never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1099511627776_i64))]
    pub maximum_trace_size_bytes: Option<i64>,
    /// So long a dropped trace can still be brought back by an error that comes late. Default: `0s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub late_error_wait: Option<String>,
    /// What is kept: a trace that any policy keeps and none drops.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub policies: Vec<TailSamplingPolicy>,
}

/// Decisions that are remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionCacheOptions {
    /// Traces that were kept; each takes 16 bytes. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000_000))]
    pub sampled_cache_size: Option<i64>,
    /// Traces that were dropped; each takes 8 bytes. Default: 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000_000))]
    pub non_sampled_cache_size: Option<i64>,
}
