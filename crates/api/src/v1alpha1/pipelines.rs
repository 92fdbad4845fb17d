//! The three kinds of pipelines.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{
    filter::{LogFilter, MetricFilter, SpanFilter},
    input::{LogPipelineInputs, PipelineInputs, TracePipelineInput},
    log_output::LogPipelineOutput,
    output::PipelineOutput,
    sampling::SamplingOptions,
};
use crate::State;

/// Specification of a TracePipeline: its input, filters, sampling and output.
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
    /// Input of the pipeline. By default the pipeline receives all traces that are sent to the collectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<TracePipelineInput>,
    /// Filters of the pipeline. A span that matches any of them is dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub filter: Vec<SpanFilter>,
    /// Sampling of traces. By default all traces are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingOptions>,
    /// Output of the pipeline: the backend that it sends to.
    pub output: PipelineOutput,
    /// Pauses the pipeline: it receives nothing and keeps its slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Specification of a LogPipeline: its input, filters and output.
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
    /// Inputs of the pipeline. By default the pipeline receives all logs that are sent to the collectors, and no
    /// logs of containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<LogPipelineInputs>,
    /// Filters of the pipeline. A log record that matches any of them is dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub filter: Vec<LogFilter>,
    /// Output of the pipeline: the backend that it sends to.
    pub output: LogPipelineOutput,
    /// Pauses the pipeline: it receives nothing and keeps its slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Specification of a MetricPipeline: its input, filters and output.
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
    /// Input of the pipeline. By default the pipeline receives all metrics that are sent to the collectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PipelineInputs>,
    /// Filters of the pipeline. A metric that matches any of them is dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub filter: Vec<MetricFilter>,
    /// Output of the pipeline: the backend that it sends to.
    pub output: PipelineOutput,
    /// Pauses the pipeline: it receives nothing and keeps its slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
}

/// Observed status of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineStatus {
    /// Generation of the pipeline that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Summary of the conditions in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Reason of the condition that determines the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of ready collectors and of all collectors that run the pipeline, such as `2/2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<String>,
    /// Endpoint of the output, or the Secret or ConfigMap that holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Telemetry of this pipeline that collectors dropped because they could not deliver it before they
    /// terminated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped_at_shutdown: Option<ShutdownDrops>,
    /// Conditions of the pipeline: `Accepted`, `Configured`, `CollectorReady` and `Delivering`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Telemetry that collectors dropped when they terminated.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownDrops {
    /// Number of spans, log records or data points that were dropped since the pipeline was created.
    #[schemars(range(min = 0))]
    pub items: i64,
    /// When the last of these collectors terminated.
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
