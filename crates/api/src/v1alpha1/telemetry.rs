//! How the collectors run.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

use super::{pipelines::conditions, sending::OutputDefaults};
use crate::State;

/// How the collectors run. Everything in it has a default, and without it all defaults hold.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "telemetry.kubewake.io",
    version = "v1alpha1",
    kind = "Telemetry",
    plural = "telemetries",
    shortname = "tel"
)]
#[kube(status = "TelemetryStatus", derive = "PartialEq", category = "telemetry")]
#[kube(doc = "Telemetry says how the collectors run. There is one, named `default`.")]
#[kube(validation = ("self.metadata.name == 'default'", "there is one Telemetry, and its name is `default`"))]
#[kube(printcolumn = r#"{"name": "State", "type": "string", "jsonPath": ".status.state"}"#)]
#[kube(printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.reason"}"#)]
#[kube(printcolumn = r#"{"name": "Endpoint", "type": "string", "jsonPath": ".status.endpoints.otlp.grpc"}"#)]
#[kube(printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#)]
#[serde(rename_all = "camelCase")]
pub struct TelemetrySpec {
    /// How many collectors there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<ReplicaRange>,
    /// When there are more of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<ScalingOptions>,
    /// What each of them may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
    /// The collectors in which whole traces wait, which are there while a pipeline has `sampling.tail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sticky: Option<StickyTierOptions>,
    /// The collector's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub image: Option<String>,
    /// What it takes to pull the image: Secrets in the operator's namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub image_pull_secrets: Vec<PullSecret>,
    /// How many pipelines of each kind are active at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<PipelineSlots>,
    /// What the collectors receive beside OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receivers: Option<ReceiverOptions>,
    /// Whether the collectors say which pod sent something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enrichment: Option<EnrichmentOptions>,
    /// Pods that forward telemetry of others, such as a collector of your own in front of these: they are
    /// believed which pod something comes from. Of every other pod it is what the address of its connection
    /// says: `k8s.pod.uid`, `k8s.pod.ip`, `k8s.pod.name`, `k8s.namespace.name` and the names of its workload
    /// that it claims are overwritten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub trusted_relays: Vec<TrustedRelay>,
    /// What the collectors log: `debug`, `info` (default), `warn` or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_level: Option<CollectorLogLevel>,
    /// What pipelines have that do not say it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defaults: Option<OutputDefaults>,
}

/// How many collectors there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.min) || !has(self.max) || self.min <= self.max",
    "`min` must not be greater than `max`"
))]
pub struct ReplicaRange {
    /// At least so many. Default: 2, or `max` if that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub min: Option<i32>,
    /// At most so many. Default: 10, or `min` if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max: Option<i32>,
}

/// When there are more collectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalingOptions {
    /// When they use more CPU than so many percent of what they request. Default: 80.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub cpu_utilization: Option<i32>,
}

/// What a container requests, and what it may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerResources {
    /// What it requests, such as `cpu: 100m` and `memory: 128Mi`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub requests: BTreeMap<String, ResourceQuantity>,
    /// What it may use. The collectors hold telemetry in three quarters of `memory`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub limits: BTreeMap<String, ResourceQuantity>,
}

/// An amount as Kubernetes writes it: `100m`, `512Mi`, `2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ResourceQuantity(pub String);

impl<'de> Deserialize<'de> for ResourceQuantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            _ => Err(de::Error::custom("a quantity is a number or a text")),
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

/// The collectors in which whole traces wait.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StickyTierOptions {
    /// How many there are. Default: 2. When that changes, traces that wait may be seen by two of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub replicas: Option<i32>,
    /// What each of them may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
}

/// A Secret to pull images with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullSecret {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Pods that run under one ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrustedRelay {
    /// The namespace of the pods.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: String,
    /// The ServiceAccount that the pods run under.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub service_account: String,
}

/// How many pipelines of each kind are active at once. Others wait until one is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSlots {
    /// TracePipelines. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub traces: Option<i32>,
    /// LogPipelines. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub logs: Option<i32>,
    /// MetricPipelines. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub metrics: Option<i32>,
}

/// What the collectors receive beside OTLP, which they always do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverOptions {
    /// OpenCensus, for programs and meshes of old.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencensus: Option<OpenCensusOptions>,
}

/// OpenCensus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenCensusOptions {
    /// Whether it is received, at port 55678. Default: false.
    #[serde(default)]
    pub enabled: bool,
}

/// Whether the collectors say which pod sent something.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnrichmentOptions {
    /// Whether they do. They do in any case while a pipeline selects what it takes. Default: true.
    #[serde(default = "default_true")]
    pub enabled: bool,
}

fn default_true() -> bool {
    true
}

/// What the collectors log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CollectorLogLevel {
    /// Everything
    Debug,
    /// What happens
    #[default]
    Info,
    /// What may be wrong
    Warn,
    /// What is wrong
    Error,
}

/// What has become of the collectors.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TelemetryStatus {
    /// The generation that all of this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// All of it in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Why it is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Where programs send to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<CollectorEndpoints>,
    /// What holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// Where programs send to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollectorEndpoints {
    /// OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpEndpoints>,
    /// OpenCensus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opencensus: Option<String>,
}

/// Where programs send OTLP to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtlpEndpoints {
    /// With gRPC.
    pub grpc: String,
    /// With HTTP.
    pub http: String,
}
