//! The document as a whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{EndedPipelineReport, PipelineReport};

/// The status of one collector.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct CollectorStatus {
    pub version: String,
    /// In RFC 3339.
    pub started: String,
    /// Seconds since then.
    pub uptime_seconds: f64,
    pub phase: CollectorPhase,
    /// The document in force.
    pub revision: Option<RevisionReport>,
    /// The last document, if it was refused.
    pub refused: Option<RefusalReport>,
    /// Pipelines by id, such as `traces/backend`.
    pub pipelines: BTreeMap<String, PipelineReport>,
    /// Pipelines that are no longer in the document and have lost data, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedPipelineReport>,
    /// Tail samplers, by processor id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub samplers: BTreeMap<String, SamplerReport>,
    /// Processors that watch a cluster, by processor id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, ClusterReport>,
    /// Receivers of log files, by id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub log_files: BTreeMap<String, LogFilesReport>,
}

impl CollectorStatus {
    /// Items of the pipeline with this uid that were lost outside of it: on the way between collectors, or by
    /// pipelines that are no longer in the document.
    pub fn dropped_elsewhere(&self, uid: &str) -> u64 {
        let carriers = self.pipelines.values().filter(|pipeline| pipeline.carries_uid(uid));
        let ended = self.ended.iter().filter(|pipeline| pipeline.concerns_uid(uid));
        let dropped = carriers.map(|pipeline| &pipeline.dropped).chain(ended.map(|pipeline| &pipeline.dropped));
        dropped.flat_map(BTreeMap::values).fold(0, |sum, items| sum.saturating_add(*items))
    }
}

/// A receiver of log files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct LogFilesReport {
    /// Logs that are followed.
    pub logs: u64,
    /// How often something was wrong with a file, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub problems: BTreeMap<String, u64>,
    /// How far each exporter is.
    pub outputs: Vec<LogOutputReport>,
}

/// How far an exporter is that log files are read for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct LogOutputReport {
    /// The pipeline, such as `logs/backend`.
    pub pipeline: String,
    pub exporter: String,
    /// Bytes of the logs that it has not dealt with.
    pub lag_bytes: u64,
    /// The age of the last line that it has dealt with; 0 if none is left.
    pub lag_seconds: u64,
    /// Bytes that were removed before it had dealt with them.
    pub lost_bytes: u64,
}

/// The phase in the life of a collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CollectorPhase {
    Starting,
    Ready,
    /// The collector takes no more data, and delivers its queues.
    Draining,
    /// A phase that this version does not know. No collector writes it.
    #[default]
    #[serde(other)]
    Unknown,
}

impl CollectorPhase {
    /// The word in the document.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Unknown => "unknown",
        }
    }
}

/// A document that was put into effect.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RevisionReport {
    /// A hash of the document text, which tells documents apart.
    pub hash: String,
    /// The number of documents that were put into effect, including this one.
    #[serde(default)]
    pub number: u64,
    /// When it was put into effect, in RFC 3339.
    #[serde(default)]
    pub time: String,
}

/// A document that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct RefusalReport {
    /// A hash of the document text.
    pub hash: String,
    /// When it was refused, in RFC 3339.
    #[serde(default)]
    pub time: String,
    /// Every reason; none of them holds a secret.
    #[serde(default)]
    pub reasons: Vec<String>,
}

/// The state of a tail sampler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct SamplerReport {
    /// Whether there is memory for traces to wait.
    pub state: SamplerState,
    /// Known traces, decided or not.
    pub traces: u64,
    /// Bytes of spans that wait for a decision.
    pub waiting_bytes: u64,
    /// How often memory ran short.
    pub overloads: u64,
}

/// Whether a tail sampler follows its policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplerState {
    Ok,
    /// Memory is short: new traces are kept or dropped at random, at once.
    Overloaded,
    /// A state that this version does not know. No collector writes it.
    #[default]
    #[serde(other)]
    Unknown,
}

/// The state of the cluster watches of a processor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct ClusterReport {
    pub state: String,
    pub since: Option<EventTime>,
    pub pods: u64,
    /// The class of the last error; `none` before the first.
    pub last_error: String,
    /// The status of the API server's response, as `http:403`, if it responded.
    pub last_error_code: Option<String>,
    pub last_failure: Option<EventTime>,
}

/// When something happened.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct EventTime {
    /// The time in RFC 3339.
    pub time: String,
    /// Seconds since then.
    pub age_seconds: f64,
}
