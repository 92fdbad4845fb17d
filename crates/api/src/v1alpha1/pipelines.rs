//! The three kinds of pipelines.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    filter::{LogFilter, MetricFilter, SpanFilter},
    input::{PipelineInputs, TracePipelineInput},
    output::PipelineOutput,
    sampling::SamplingOptions,
};
use crate::State;

/// What a pipeline of traces takes, keeps, and where it sends it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(group = "telemetry.kubewake.io", version = "v1alpha1", kind = "TracePipeline", shortname = "tracep")]
#[kube(status = "PipelineStatus", derive = "PartialEq", category = "telemetry")]
#[kube(doc = "A TracePipeline sends the traces of the cluster to a backend.")]
#[kube(validation = ("self.metadata.name.size() <= 63", "the name of a pipeline has at most 63 characters"))]
#[kube(printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#)]
#[kube(printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.ready"}"#)]
#[kube(printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.reason"}"#)]
#[kube(printcolumn = r#"{"name": "Backend", "type": "string", "jsonPath": ".status.backend"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct TracePipelineSpec {
    /// What it takes. Without it everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<TracePipelineInput>,
    /// What it drops: spans that match one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub filter: Vec<SpanFilter>,
    /// Which traces it keeps. Without it all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingOptions>,
    /// Where it sends to.
    pub output: PipelineOutput,
    /// Nothing flows while this is true. It keeps its slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// What a pipeline of logs takes, keeps, and where it sends it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(group = "telemetry.kubewake.io", version = "v1alpha1", kind = "LogPipeline", shortname = "logp")]
#[kube(status = "PipelineStatus", derive = "PartialEq", category = "telemetry")]
#[kube(doc = "A LogPipeline sends the logs of the cluster to a backend.")]
#[kube(validation = ("self.metadata.name.size() <= 63", "the name of a pipeline has at most 63 characters"))]
#[kube(printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#)]
#[kube(printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.ready"}"#)]
#[kube(printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.reason"}"#)]
#[kube(printcolumn = r#"{"name": "Backend", "type": "string", "jsonPath": ".status.backend"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct LogPipelineSpec {
    /// What it takes. Without it everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PipelineInputs>,
    /// What it drops: records that match one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub filter: Vec<LogFilter>,
    /// Where it sends to.
    pub output: PipelineOutput,
    /// Nothing flows while this is true. It keeps its slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// What a pipeline of metrics takes, keeps, and where it sends it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(group = "telemetry.kubewake.io", version = "v1alpha1", kind = "MetricPipeline", shortname = "metricp")]
#[kube(status = "PipelineStatus", derive = "PartialEq", category = "telemetry")]
#[kube(doc = "A MetricPipeline sends the metrics of the cluster to a backend.")]
#[kube(validation = ("self.metadata.name.size() <= 63", "the name of a pipeline has at most 63 characters"))]
#[kube(printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#)]
#[kube(printcolumn = r#"{"name": "Ready", "type": "string", "jsonPath": ".status.ready"}"#)]
#[kube(printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.reason"}"#)]
#[kube(printcolumn = r#"{"name": "Backend", "type": "string", "jsonPath": ".status.backend"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct MetricPipelineSpec {
    /// What it takes. Without it everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PipelineInputs>,
    /// What it drops: metrics that match one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub filter: Vec<MetricFilter>,
    /// Where it sends to.
    pub output: PipelineOutput,
    /// Nothing flows while this is true. It keeps its slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// What has become of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStatus {
    /// The generation that all of this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// All of it in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Why it is in that state: the reason of the condition that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many of the collectors that carry it are ready, of how many: `2/2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Where it sends to, or where that is written if that is a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// What collectors held for it that ended before they could deliver it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_at_shutdown: Option<ShutdownDrops>,
    /// `Accepted`, `Configured`, `CollectorReady` and `Delivering`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// What collectors dropped when they ended.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownDrops {
    /// Spans, log records or data points, since the pipeline was made.
    #[schemars(range(min = 0))]
    pub items: i64,
    /// When the last of these collectors ended.
    #[schemars(schema_with = "date_time")]
    pub last_time: Time,
}

fn date_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// The list of conditions as every kind of Kubernetes has it.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "maxLength": 316},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                "message": {"type": "string", "maxLength": 32768},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            },
        },
    })
}
