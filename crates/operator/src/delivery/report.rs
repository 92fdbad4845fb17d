//! What a collector says of itself, as far as it matters to pipelines. What else it says is passed over, and what an old one does not say is as if nothing were the matter.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The `/status` of a collector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The document in force.
    pub revision: Option<Revision>,
    /// The last document, if it was refused.
    pub refused: Option<Refused>,
    /// By id, such as `traces/backend`.
    pub pipelines: BTreeMap<String, PipelineReport>,
    /// Pipelines that its document does not have any more, and that lost something.
    pub ended: Vec<EndedReport>,
}

/// What a pipeline lost that a collector's document does not have any more.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EndedReport {
    /// Such as `traces/backend`.
    pub id: String,
    /// Which one it was of all that have had its id.
    pub uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carried data.
    pub carries: Vec<String>,
    /// The last loss.
    pub last_drop: Option<Loss>,
}

impl EndedReport {
    /// Why it lost something lately of the pipeline of this uid, if it did.
    pub fn lost_lately(&self, uid: Option<&str>) -> Option<&Loss> {
        let concerns =
            uid.is_some_and(|uid| self.uid.as_deref() == Some(uid) || self.carries.iter().any(|of| of == uid));
        self.last_drop.as_ref().filter(|drop| concerns && drop.age_seconds < LATELY_SECONDS)
    }
}

/// How long a loss is said to be a recent one; collectors do so for as long with those of the pipelines that they have.
const LATELY_SECONDS: f64 = 300.0;

/// A document in force.
#[derive(Clone, Debug, Deserialize)]
pub struct Revision {
    /// [`Document::hash`](kubewake_api::Document)
    pub hash: String,
}

/// A document that was refused.
#[derive(Clone, Debug, Deserialize)]
pub struct Refused {
    /// [`Document::hash`](kubewake_api::Document)
    pub hash: String,
    /// Why.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// How a pipeline is doing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PipelineReport {
    /// Which one it is of all that have had its id; an old collector does not say.
    pub uid: Option<String>,
    /// In a word.
    pub diagnosis: Diagnosis,
    /// The last loss.
    pub last_drop: Option<Loss>,
    /// How each of its exporters is doing.
    pub exporters: BTreeMap<String, ExporterReport>,
}

impl PipelineReport {
    /// Whether it is about the pipeline of this uid, and not about one that had the id before.
    pub fn is_of(&self, uid: Option<&str>) -> bool {
        self.uid.is_none() || uid.is_none() || self.uid.as_deref() == uid
    }

    /// Whether something came in, and nothing of it was left for any exporter to send.
    pub fn sends_nothing(&self) -> bool {
        let is_idle = |exporter: &ExporterReport| exporter.state == "idle";
        self.diagnosis == Diagnosis::Delivering && !self.exporters.is_empty() && self.exporters.values().all(is_idle)
    }
}

/// A loss.
#[derive(Clone, Debug, Deserialize)]
pub struct Loss {
    /// Why.
    pub reason: String,
    /// How long ago.
    #[serde(default)]
    pub age_seconds: f64,
}

/// How an exporter is doing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExporterReport {
    /// How it gets on.
    pub state: String,
    /// The class of its last error.
    pub last_error: String,
    /// What its destination said then.
    pub last_error_code: Option<String>,
}

impl ExporterReport {
    /// Whether its last attempt failed.
    pub fn fails(&self) -> bool {
        matches!(self.state.as_str(), "retrying" | "failing" | "stalled")
    }
}

/// How a pipeline is doing, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Diagnosis {
    /// Nothing came in lately.
    NoData = 1,
    /// Data comes in and goes out.
    Delivering,
    /// A queue or the memory is nearly full.
    BufferFilling,
    /// What is held waits for the backend.
    BackendSlow,
    /// Something was lost lately.
    DataDropped,
    /// The backend cannot be reached.
    BackendUnreachable,
    /// The backend refuses what is sent.
    BackendRefuses,
    /// Something that this version does not know, and so gives way to everything else.
    #[default]
    #[serde(other)]
    Unknown = 0,
}
