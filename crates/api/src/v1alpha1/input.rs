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

/// Inputs of a pipeline for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineInputs {
    /// Telemetry that is sent to the collectors with OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpInput>,
}

/// Inputs of a pipeline for logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogPipelineInputs {
    /// Logs that are sent to the collectors with OTLP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otlp: Option<OtlpInput>,
    /// Logs that containers write to their standard output and standard error. A collector on each node reads
    /// them. By default the pipeline receives none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<RuntimeInput>,
}

/// Logs that containers write to their standard output and standard error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeInput {
    /// Whether the pipeline receives logs of containers. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Namespaces to receive logs from. Default: all namespaces except the system namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<RuntimeNamespaceSelector>,
    /// Containers to receive logs from, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containers: Option<ContainerSelector>,
    /// Workloads to receive logs from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<WorkloadSelector>,
    /// Whether records that were made from a JSON line also carry the line as it was written, in the attribute
    /// `log.original`. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_original_body: Option<bool>,
    /// Whether the annotations of a pod become attributes `k8s.pod.annotation.…` of its logs. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_annotations: Option<bool>,
    /// Whether the labels of a pod are left out of its logs. Otherwise they become attributes `k8s.pod.label.…`.
    /// Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop_labels: Option<bool>,
    /// How lines are joined to records: `auto` (default) joins the lines of stack traces, and `none` makes each
    /// line a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiline: Option<MultilineMode>,
    /// What is read from a line beside its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parse: Option<LineParsing>,
}

/// Selects namespaces by name, with either `include` or `exclude`. The system namespaces are `kube-system`,
/// `kube-public`, `kube-node-lease`, `istio-system`, and those of the operator and of its collectors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.include) && has(self.exclude))", "set either `include` or `exclude`"))]
#[x_kube(validation = (
    "!(has(self.include) && has(self.system) && self.system)",
    "`system` cannot be combined with `include`: name the system namespaces in `include`"
))]
pub struct RuntimeNamespaceSelector {
    /// Selects only these namespaces, which may be system namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub include: Vec<String>,
    /// Selects all namespaces except these and the system namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub exclude: Vec<String>,
    /// Whether system namespaces are selected, too. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<bool>,
}

/// How lines are joined to records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MultilineMode {
    /// The lines of a stack trace are one record.
    #[default]
    Auto,
    /// Each line is a record.
    None,
}

/// What is read from a line beside its text. A line that is not a JSON object stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!has(self.json) || self.json || !(has(self.message) && self.message || has(self.severity) && self.severity || has(self.traceContext) && self.traceContext)",
    "`message`, `severity` and `traceContext` need `json`"
))]
pub struct LineParsing {
    /// Whether the fields of a JSON line become attributes. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<bool>,
    /// Whether the `msg` or `message` of a JSON line becomes the body of the record. Default: that of `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<bool>,
    /// Whether the `level`, `severity` or another usual spelling of it in a JSON line becomes the severity of the
    /// record. Default: that of `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<bool>,
    /// Whether `trace_id`, `span_id`, `traceparent` and their usual other spellings in a JSON line become the ids
    /// of the record. Default: that of `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_context: Option<bool>,
}

/// Selects containers by name, with either `include` or `exclude`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("!(has(self.include) && has(self.exclude))", "set either `include` or `exclude`"))]
pub struct ContainerSelector {
    /// Selects only containers with these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub include: Vec<String>,
    /// Selects all containers except those with these names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub exclude: Vec<String>,
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
