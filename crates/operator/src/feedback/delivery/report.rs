//! The part of a collector's `/status` that concerns pipelines. Other fields are ignored, and fields that an
//! old collector does not send count as healthy.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The `/status` of a collector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CollectorStatusReport {
    pub revision: Option<RevisionReport>,
    /// The last document, if it was refused.
    pub refused: Option<RefusedRevisionReport>,
    /// Pipelines by id, such as `traces/backend`.
    pub pipelines: BTreeMap<String, PipelineStatusReport>,
    /// Pipelines that its document no longer has, and that lost something.
    pub ended: Vec<EndedPipelineStatusReport>,
}

/// A pipeline that a collector's document no longer has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EndedPipelineStatusReport {
    pub id: String,
    /// Its uid, which tells pipelines of the same id apart.
    pub uid: Option<String>,
    /// The uids of the pipelines for which it carried data.
    pub carries: Vec<String>,
    pub last_drop: Option<DropReport>,
}

impl EndedPipelineStatusReport {
    /// The last drop that concerns the pipeline of this uid, if it was recent.
    pub fn recent_drop(&self, uid: Option<&str>) -> Option<&DropReport> {
        let concerns =
            uid.is_some_and(|uid| self.uid.as_deref() == Some(uid) || self.carries.iter().any(|of| of == uid));
        self.last_drop.as_ref().filter(|drop| concerns && drop.age_seconds < RECENT_LOSS_SECONDS)
    }
}

/// How long a loss counts as recent; the same time as in collectors for pipelines that they have.
const RECENT_LOSS_SECONDS: f64 = 300.0;

#[derive(Clone, Debug, Deserialize)]
pub struct RevisionReport {
    pub hash: String,
}

/// A document that a collector refused.
#[derive(Clone, Debug, Deserialize)]
pub struct RefusedRevisionReport {
    pub hash: String,
    #[serde(default)]
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PipelineStatusReport {
    /// Its uid, which tells pipelines of the same id apart; an old collector does not send it.
    pub uid: Option<String>,
    pub diagnosis: ReportedDiagnosis,
    pub last_drop: Option<DropReport>,
    /// How each of its exporters is doing.
    pub exporters: BTreeMap<String, ExporterStatusReport>,
}

impl PipelineStatusReport {
    /// Whether this is about the pipeline of this uid, and not about another one that had its id.
    pub fn matches_uid(&self, uid: Option<&str>) -> bool {
        self.uid.is_none() || uid.is_none() || self.uid.as_deref() == uid
    }

    /// Whether something came in, and none of it was left for any exporter to send.
    pub fn sends_nothing(&self) -> bool {
        let is_idle = |exporter: &ExporterStatusReport| exporter.state == "idle";
        self.diagnosis == ReportedDiagnosis::Delivering
            && !self.exporters.is_empty()
            && self.exporters.values().all(is_idle)
    }
}

#[derive(Clone, Debug, Deserialize)]
pub struct DropReport {
    pub reason: String,
    #[serde(default)]
    pub age_seconds: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExporterStatusReport {
    pub state: String,
    /// The class of its last error.
    pub last_error: String,
    /// The code with which its destination answered then.
    pub last_error_code: Option<String>,
}

impl ExporterStatusReport {
    /// Whether its last attempt failed.
    pub fn is_failing(&self) -> bool {
        matches!(self.state.as_str(), "retrying" | "failing" | "stalled")
    }
}

/// The diagnosis of a pipeline, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum ReportedDiagnosis {
    NoData = 1,
    /// Data comes in and goes out.
    Delivering,
    /// A queue or the memory is nearly full.
    BufferFilling,
    /// Data waits for the backend.
    BackendSlow,
    DataDropped,
    BackendUnreachable,
    /// The backend refuses what is sent.
    BackendRefuses,
    /// A diagnosis that this version does not know, and that yields to all others.
    #[default]
    #[serde(other)]
    Unknown = 0,
}
