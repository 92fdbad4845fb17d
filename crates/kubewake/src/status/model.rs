//! What `status` says, as programs read it. Fields are added with time, and none changes its meaning.

use serde::Serialize;

use crate::survey::viewer::Store;

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    /// The version of this program.
    pub(super) version: String,
    pub(super) cluster: Cluster,
    pub(super) operator: Workload,
    pub(super) webhook: Workload,
    pub(super) telemetry: Telemetry,
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) collectors: Vec<Collector>,
    pub(super) viewer: Viewer,
    /// All that is not as it should be, a sentence each. Empty if all is well.
    pub(super) problems: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cluster {
    pub(super) reachable: bool,
    pub(super) server: String,
    /// Who says that this is the cluster.
    pub(super) source: String,
    pub(super) version: String,
}

/// Something that runs beside the collectors.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Workload {
    /// `Ready`, `Degraded`, `Absent`, or `Unknown` if it cannot be seen.
    pub(super) state: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Pods that are ready, of how many.
    pub(super) ready: String,
    /// Who leads, where somebody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leader: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Telemetry {
    /// `Absent` while all defaults hold.
    pub(super) state: String,
    /// Where programs send to.
    pub(super) endpoint: String,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pipeline {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) state: String,
    pub(super) ready: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) backend: String,
    /// Null where no collector could be asked.
    pub(super) received: Option<u64>,
    pub(super) sent: Option<u64>,
    pub(super) dropped: Option<u64>,
    pub(super) queued_bytes: Option<u64>,
    pub(super) queue_capacity_bytes: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Collector {
    pub(super) pod: String,
    pub(super) tier: String,
    pub(super) phase: String,
    pub(super) ready: bool,
    pub(super) restarts: i32,
    pub(super) age_seconds: i64,
    pub(super) version: String,
    /// What it says of itself: `ready`; or why that could not be seen.
    pub(super) says: String,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Viewer {
    pub(super) url: String,
    pub(super) reachable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<Store>,
}
