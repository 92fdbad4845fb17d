//! Inputs: the telemetry that a pipeline receives.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Selects the telemetry that the pipeline receives by the namespace and workload of the sending pod. By
/// default the pipeline receives everything that is sent to the collectors.
///
/// The collectors identify the sending pod by the address of its connection. For a sender that they cannot
/// identify, they use the resource attributes that it sends, such as `k8s.namespace.name`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TracePipelineInput {
    /// Namespaces to receive telemetry from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<NamespaceSelector>,
    /// Workloads to receive telemetry from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<WorkloadSelector>,
}

/// Inputs of a pipeline for logs or metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineInputs {
    /// Telemetry that is sent to the collectors with OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpInput>,
}

/// Selects the OTLP telemetry that the pipeline receives by the namespace and workload of the sending pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OtlpInput {
    /// Whether the pipeline receives OTLP telemetry. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Namespaces to receive telemetry from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<NamespaceSelector>,
    /// Workloads to receive telemetry from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<WorkloadSelector>,
}

/// Selects namespaces by name, with either `include` or `exclude`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.include) && has(self.exclude))", "set either `include` or `exclude`"))]
pub struct NamespaceSelector {
    /// Selects only these namespaces. Telemetry without a namespace is not selected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub include: Vec<String>,
    /// Selects all namespaces except these. Telemetry without a namespace is selected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub exclude: Vec<String>,
}

/// Selects workloads, with either `include` or `exclude`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.include) && has(self.exclude))", "set either `include` or `exclude`"))]
pub struct WorkloadSelector {
    /// Selects only the workloads in this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub include: Vec<WorkloadReference>,
    /// Selects all workloads except those in this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub exclude: Vec<WorkloadReference>,
}

/// A workload by kind and name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadReference {
    /// Kind of the workload, such as `Deployment`.
    pub kind: WorkloadKind,
    /// Name of the workload in its namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Namespace of the workload. Without it, workloads of this name match in all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
}

/// Kind of a workload in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum WorkloadKind {
    /// A Deployment of the group `apps`
    Deployment,
    /// A StatefulSet of the group `apps`
    StatefulSet,
    /// A DaemonSet of the group `apps`
    DaemonSet,
    /// A ReplicaSet of the group `apps`
    ReplicaSet,
    /// A Job of the group `batch`
    Job,
    /// A CronJob of the group `batch`
    CronJob,
    /// A Pod, with or without another workload as its owner
    Pod,
}
