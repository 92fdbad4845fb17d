//! Pipelines and their exporters.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::EventTime;

/// How long a loss counts as recent, for readers. Collectors use the same time for pipelines of their document.
pub(super) const RECENT_LOSS_SECONDS: f64 = 300.0;

/// The status of a pipeline in one collector.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct PipelineReport {
    /// Tells pipelines with the same id apart, if the document sets it. Old collectors do not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The uids of the pipelines in other collectors for which it carries data: its losses are theirs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
    /// The summary of all fields.
    pub diagnosis: PipelineDiagnosis,
    /// The worst state of its exporters.
    pub state: SendState,
    pub received: u64,
    /// When data was last received.
    pub last_received: Option<EventTime>,
    /// When a request was last refused for want of memory.
    pub last_refused: Option<EventTime>,
    /// Items that destinations took; each destination counts separately.
    pub delivered: u64,
    /// Items lost, by reason.
    pub dropped: BTreeMap<String, u64>,
    pub last_drop: Option<DropReport>,
    /// The class of the last error of any exporter; `none` before the first.
    pub last_error: String,
    /// The status of the last error, as `grpc:16` or `http:401`, if the destination responded.
    pub last_error_code: Option<String>,
    /// When an attempt of any exporter last failed.
    pub last_failure: Option<EventTime>,
    /// When a destination last took data.
    pub last_success: Option<EventTime>,
    /// Failed attempts since the last success, of the worst exporter.
    pub failures: u64,
    /// The memory of the pipeline; `None` while it is not running.
    pub memory: Option<MemoryReport>,
    pub exporters: BTreeMap<String, ExporterReport>,
}

/// The losses of a pipeline that is no longer in the document.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct EndedPipelineReport {
    pub id: String,
    /// Tells pipelines with the same id apart, if the document set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The uids of the pipelines in other collectors for which it carried data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
    /// Items lost, by reason.
    pub dropped: BTreeMap<String, u64>,
    pub last_drop: Option<DropReport>,
}

/// The last loss of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct DropReport {
    pub reason: String,
    #[serde(flatten)]
    pub at: EventTime,
}

/// The memory that a pipeline may use for new requests, including the shared pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct MemoryReport {
    pub used_bytes: u64,
    pub limit_bytes: u64,
}

/// The status of an exporter in a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ExporterReport {
    pub state: SendState,
    /// The size of its queue in the unit of the sizer, including batches in flight.
    pub queue_size: u64,
    /// The capacity of its queue; zero without a queue.
    pub queue_capacity: u64,
    /// When the oldest entry of its queue was enqueued.
    pub oldest: Option<EventTime>,
    /// Requests in flight, including those that wait for another attempt.
    pub in_flight: u64,
    /// A moving mean of the durations of successful attempts.
    pub latency_seconds: Option<f64>,
    /// The class of its last error; `none` before the first.
    pub last_error: String,
    /// The status of the last error, as `grpc:16` or `http:401`, if the destination responded.
    pub last_error_code: Option<String>,
    /// When an attempt last failed.
    pub last_failure: Option<EventTime>,
    /// When its destination last took data.
    pub last_success: Option<EventTime>,
    pub failures: u64,
    /// When the first of these failures was.
    pub failing_since: Option<EventTime>,
    /// The status of each destination of a load balancing exporter, by endpoint.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, ExporterReport>,
}

/// The state of delivery, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SendState {
    /// Nothing is held, and nothing was sent lately.
    Idle = 1,
    /// Data is delivered, or delivery has just begun.
    Ok,
    /// The last attempt failed, and the data will be sent again.
    Retrying,
    /// The last attempt failed, and the data was lost or returned to its sender.
    Failing,
    /// Attempts have been failing for too long without a success.
    Stalled,
    /// A state that this version does not know, and that yields to all others. No collector writes it.
    #[default]
    #[serde(other)]
    Unknown = 0,
}

/// The diagnosis of a pipeline, best first. The worst that applies is reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum PipelineDiagnosis {
    /// Nothing was received within the interval, and nothing is held.
    NoData = 1,
    /// Data is received and delivered.
    Delivering,
    /// A queue or the memory is nearly full, or memory was too short for a request within the interval.
    BufferFilling,
    /// Nothing fails, but queued data has waited long; or the destination asks to slow down.
    BackendSlow,
    /// Data was lost within the interval, and attempts do not fail at the moment, or only because the
    /// destination asks to slow down.
    DataDropped,
    /// A destination cannot be reached, does not respond in time, or is temporarily unavailable.
    BackendUnreachable,
    /// A destination responds, and refuses the data or the credentials.
    BackendRefuses,
    /// A diagnosis that this version does not know, and that yields to all others. No collector writes it.
    #[default]
    #[serde(other)]
    Unknown = 0,
}

impl PipelineReport {
    /// Whether this is about the pipeline of this uid, and not about another one that had its id.
    pub fn matches_uid(&self, uid: Option<&str>) -> bool {
        self.uid.is_none() || uid.is_none() || self.uid.as_deref() == uid
    }

    /// Whether its losses are those of the pipeline with this uid in another collector.
    pub fn carries_uid(&self, uid: &str) -> bool {
        self.carries.iter().any(|carried| carried == uid)
    }

    /// Whether something came in, and none of it was left for any exporter to send.
    pub fn sends_nothing(&self) -> bool {
        self.diagnosis == PipelineDiagnosis::Delivering
            && !self.exporters.is_empty()
            && self.exporters.values().all(|exporter| exporter.state == SendState::Idle)
    }
}

impl EndedPipelineReport {
    /// Whether its losses are those of the pipeline with this uid.
    pub fn concerns_uid(&self, uid: &str) -> bool {
        self.uid.as_deref() == Some(uid) || self.carries.iter().any(|carried| carried == uid)
    }

    /// The last drop that concerns the pipeline of this uid, if it was recent.
    pub fn recent_drop(&self, uid: Option<&str>) -> Option<&DropReport> {
        let concerns = uid.is_some_and(|uid| self.concerns_uid(uid));
        self.last_drop.as_ref().filter(|drop| concerns && drop.at.age_seconds < RECENT_LOSS_SECONDS)
    }
}

impl ExporterReport {
    /// Whether its last attempt failed.
    pub fn is_failing(&self) -> bool {
        matches!(self.state, SendState::Retrying | SendState::Failing | SendState::Stalled)
    }
}
