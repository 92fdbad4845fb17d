//! Telemetry: the settings of the collectors.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{pipelines::conditions, sending::OutputDefaults};
use crate::State;

/// Settings of the collectors. Every field has a default, and without a Telemetry all defaults apply.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "telemetry.kubewake.io",
    version = "v1alpha1",
    kind = "Telemetry",
    plural = "telemetries",
    shortname = "tel"
)]
#[kube(status = "TelemetryStatus", derive = "PartialEq", category = "telemetry")]
#[kube(doc = "Telemetry configures the collectors. Its only object is named `default`.")]
#[kube(validation = ("self.metadata.name == 'default'", "the only Telemetry is named `default`"))]
#[kube(printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#)]
#[kube(printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.reason"}"#)]
#[kube(printcolumn = r#"{"name": "Endpoint", "type": "string", "jsonPath": ".status.endpoints.otlp.grpc"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct TelemetrySpec {
    /// Minimum and maximum number of gateway collectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<ReplicaRange>,
    /// Settings of the autoscaler of the gateway collectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingOptions>,
    /// Resource requests and limits of each gateway collector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
    /// Collectors of the sticky tier, which run while a pipeline has `sampling.tail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky: Option<StickyTierOptions>,
    /// Collectors on the nodes, which run while a LogPipeline has `input.runtime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentOptions>,
    /// Image of the collectors. Default: `--collector-image` of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub image: Option<String>,
    /// Secrets in the operator's namespace for pulling the image. Collectors on the nodes need Secrets of the same
    /// names in the namespace `kubewake-agents`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub image_pull_secrets: Vec<PullSecret>,
    /// Maximum number of active pipelines of each kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<PipelineSlots>,
    /// Receivers of the collectors in addition to OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receivers: Option<ReceiverOptions>,
    /// Enrichment of telemetry with attributes of the sending pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrichment: Option<EnrichmentOptions>,
    /// Pods that forward telemetry of other pods, such as your own collectors in front of these collectors. The
    /// collectors trust these pods to name the pod that the telemetry comes from. For all other pods, the
    /// collectors overwrite `k8s.pod.uid`, `k8s.pod.ip`, `k8s.pod.name`, `k8s.namespace.name` and the names of
    /// workloads with those of the pod that the connection comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub trusted_relays: Vec<TrustedRelay>,
    /// Log level of the collectors: `debug`, `info` (default), `warn` or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<CollectorLogLevel>,
    /// Defaults of the outputs of all pipelines. Fields that a pipeline sets take precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<OutputDefaults>,
}

/// Minimum and maximum number of gateway collectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.min) || !has(self.max) || self.min <= self.max",
    "`min` must not be greater than `max`"
))]
pub struct ReplicaRange {
    /// Minimum number of collectors. Default: 2, or `max` if that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub min: Option<i32>,
    /// Maximum number of collectors. Default: 10, or `min` if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max: Option<i32>,
}

/// Settings of the autoscaler of the gateway collectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalingOptions {
    /// Target of the CPU utilization, in percent of the CPU request. Above it collectors are added. Default:
    /// 80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub cpu_utilization: Option<i32>,
}

/// Resource requests and limits of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResources {
    /// Resource requests, such as `cpu: 100m` and `memory: 128Mi`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub requests: BTreeMap<String, ResourceQuantity>,
    /// Resource limits, such as `memory: 512Mi`. A collector uses up to three quarters of its memory limit for
    /// telemetry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub limits: BTreeMap<String, ResourceQuantity>,
}

/// A quantity in the format of Kubernetes, such as `100m`, `512Mi` or `2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ResourceQuantity(pub String);

impl<'de> Deserialize<'de> for ResourceQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            _ => Err(de::Error::custom("a quantity must be a number or a string")),
        }
    }
}

impl JsonSchema for ResourceQuantity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": true,
            "maxLength": 64,
            "pattern": r"^[0-9]+(\.[0-9]+)?([eE][0-9]+|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
        })
    }
}

/// Collectors of the sticky tier, which hold the spans of a trace until its sampling decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StickyTierOptions {
    /// Number of collectors in the sticky tier. When it changes, two collectors may decide about the same
    /// waiting trace. Default: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: Option<i32>,
    /// Resource requests and limits of each collector in the sticky tier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
}

/// Collectors on the nodes, which read the logs of containers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentOptions {
    /// Resource requests and limits of the collector on each node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
    /// Directories of the nodes that links in `/var/log/pods` lead to, such as Docker's
    /// `/var/lib/docker/containers`. Each ends with `/containers`. Collectors follow no other links. Container
    /// runtimes that write to `/var/log/pods` itself, such as containerd and CRI-O, need none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        inner(length(max = 255), regex(pattern = r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+/containers$"))
    )]
    pub linked_log_directories: Vec<String>,
}

/// A Secret for pulling images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullSecret {
    /// Name of the Secret in the operator's namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Pods that run under a given ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedRelay {
    /// Namespace of the pods and of their ServiceAccount.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// Name of the ServiceAccount of the pods.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub service_account: String,
}

/// Maximum number of active pipelines of each kind. Further pipelines are Pending until an active one is
/// deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSlots {
    /// Maximum number of active TracePipelines. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub traces: Option<i32>,
    /// Maximum number of active LogPipelines. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub logs: Option<i32>,
    /// Maximum number of active MetricPipelines. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub metrics: Option<i32>,
}

/// Receivers of the collectors in addition to OTLP, which is always enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverOptions {
    /// OpenCensus, for older applications and service meshes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencensus: Option<OpenCensusOptions>,
}

/// The OpenCensus receiver of the collectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenCensusOptions {
    /// Whether the collectors receive OpenCensus on port 55678. Default: false.
    #[serde(default)]
    pub enabled: bool,
}

/// Enrichment of telemetry with attributes of the sending pod.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnrichmentOptions {
    /// Whether the collectors add attributes of the sending pod. While a pipeline selects by namespace or
    /// workload, they always add them. Default: true.
    #[serde(default = "default_true")]
    pub enabled: bool,
}

fn default_true() -> bool {
    true
}

/// Log level of the collectors' own log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CollectorLogLevel {
    /// All messages, including debugging information
    Debug,
    /// Informational messages, warnings and errors
    #[default]
    Info,
    /// Warnings and errors, and nothing else
    Warn,
    /// Errors, and nothing else
    Error,
}

/// Observed status of the collectors.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TelemetryStatus {
    /// Generation of the Telemetry that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Summary of the conditions in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Reason of the condition that determines the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Addresses that applications send telemetry to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<CollectorEndpoints>,
    /// Conditions of the Telemetry: `Accepted`, `Configured` and `CollectorReady`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Addresses that applications send telemetry to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollectorEndpoints {
    /// Addresses for OTLP, by transport protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpEndpoints>,
    /// Address for OpenCensus, if that receiver is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencensus: Option<String>,
}

/// Addresses for OTLP, by transport protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtlpEndpoints {
    /// Address for OTLP over gRPC.
    pub grpc: String,
    /// Address for OTLP over HTTP.
    pub http: String,
}
