//! The machine-readable output of `status`. Fields are added over time, and none changes its meaning.

use serde::Serialize;

use crate::inventory::viewer::StoreInfo;

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstallOverview {
    pub(super) version: String,
    pub(super) cluster: ClusterOverview,
    pub(super) operator: WorkloadOverview,
    pub(super) webhook: WorkloadOverview,
    pub(super) telemetry: TelemetryOverview,
    pub(super) pipelines: Vec<PipelineOverview>,
    pub(super) collectors: Vec<CollectorOverview>,
    pub(super) viewer: ViewerOverview,
    /// All problems, a sentence each. Empty if there are none.
    pub(super) problems: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterOverview {
    pub(super) reachable: bool,
    pub(super) server: String,
    /// Where the choice of this cluster comes from.
    pub(super) source: String,
    pub(super) version: String,
}

/// A workload beside the collectors.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkloadOverview {
    /// `Ready`, `Degraded`, `Absent`, or `Unknown` if it cannot be read.
    pub(super) state: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Ready and desired pods.
    pub(super) ready: String,
    /// Why pods are not ready, according to the scheduler or a kubelet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
    /// The leader, if the workload elects one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leader: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TelemetryOverview {
    /// `Absent` while all defaults apply.
    pub(super) state: String,
    pub(super) endpoint: String,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PipelineOverview {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) state: String,
    pub(super) ready: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) backend: String,
    /// Null if no collector could be queried.
    pub(super) received: Option<u64>,
    pub(super) sent: Option<u64>,
    pub(super) dropped: Option<u64>,
    pub(super) queued_bytes: Option<u64>,
    pub(super) queue_capacity_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CollectorOverview {
    pub(super) pod: String,
    pub(super) tier: String,
    pub(super) phase: String,
    pub(super) ready: bool,
    pub(super) restarts: i32,
    pub(super) age_seconds: i64,
    pub(super) version: String,
    /// `ready`, or why its status could not be read.
    pub(super) says: String,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ViewerOverview {
    pub(super) url: String,
    pub(super) reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<StoreInfo>,
}
