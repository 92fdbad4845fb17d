//! What a pipeline takes.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a pipeline takes: everything that is sent to the collectors, unless it is said here.
///
/// Who sent something is what the collectors know of the pod that it came from, or what the sender says of itself
/// (`k8s.namespace.name` and its like). Selecting is for order, and keeps no secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TracePipelineInput {
    /// The namespaces that it takes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<NamespaceSelector>,
    /// The workloads that it takes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<WorkloadSelector>,
}

/// What a pipeline of logs or metrics takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineInputs {
    /// What is sent to the collectors by OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpInput>,
}

/// What is sent to the collectors by OTLP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtlpInput {
    /// Whether the pipeline takes it. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The namespaces that it takes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<NamespaceSelector>,
    /// The workloads that it takes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<WorkloadSelector>,
}

/// Namespaces: only these, or all but these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.include) && has(self.exclude))", "set either `include` or `exclude`"))]
pub struct NamespaceSelector {
    /// Only these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub include: Vec<String>,
    /// All but these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub exclude: Vec<String>,
}

/// Workloads: only these, or all but these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.include) && has(self.exclude))", "set either `include` or `exclude`"))]
pub struct WorkloadSelector {
    /// Only these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub include: Vec<WorkloadReference>,
    /// All but these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub exclude: Vec<WorkloadReference>,
}

/// A workload.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// What it is.
    pub kind: WorkloadKind,
    /// Its name.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Its namespace. Without it that name is meant in all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
}

/// What a workload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum WorkloadKind {
    /// Deployment
    Deployment,
    /// StatefulSet
    StatefulSet,
    /// DaemonSet
    DaemonSet,
    /// ReplicaSet
    ReplicaSet,
    /// Job
    Job,
    /// CronJob
    CronJob,
    /// Pod
    Pod,
}
