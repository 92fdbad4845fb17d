//! The `/status` document: what is loaded, what was refused, and how each pipeline is doing.
//!
//! Plain data, made by a pure function from counters, the engine's running state, and a clock.

mod delivery;
mod diagnosis;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::atomic::Ordering,
    time::{Duration, SystemTime},
};

use kubewake_config::{ComponentId, PipelineId, model::PipelineCheck};
use serde::Serialize;
use tokio::time::Instant;

pub use self::{
    delivery::{DropStatus, EndedPipelineStatus, ExporterStatus, MemoryStatus, PipelineStatus, SendState, send_state},
    diagnosis::PipelineDiagnosis,
};
use super::{ProcessIdentity, format_rfc3339};
use crate::core::{ClusterSnapshot, DestinationLabels, StatsRegistry, TailSamplerStats};

/// The running state of the collector.
#[derive(Clone, Debug, Default)]
pub struct RunningInfo {
    pub phase: CollectorPhase,
    /// The document in force.
    pub revision: Option<LoadedRevision>,
    /// The last document, if it was refused. A later one that is applied clears it.
    pub refused: Option<RefusedRevision>,
    /// The pipelines of the document in force.
    pub pipelines: Vec<PipelineInfo>,
}

/// The phase in the life of the collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CollectorPhase {
    #[default]
    Starting,
    Ready,
    /// The collector takes no more data, and delivers its queues.
    Draining,
}

/// A document that was put into effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedRevision {
    /// A hash of the document text, which tells documents apart.
    pub hash: String,
    /// The number of documents that were put into effect, including this one.
    pub number: u64,
    pub loaded_at: SystemTime,
}

/// A document that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRevision {
    /// A hash of the document text.
    pub hash: String,
    pub refused_at: SystemTime,
    /// Every reason; none of them holds a secret.
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineInfo {
    pub id: PipelineId,
    /// Tells pipelines with the same id apart, if the document sets it.
    pub uid: Option<String>,
    /// The uids of the pipelines in other collectors for which it carries data.
    pub carries: Vec<String>,
    pub processors: Vec<ComponentId>,
    /// The exporters, each with the destination of its counters.
    pub exporters: Vec<(ComponentId, DestinationLabels)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectorStatus {
    pub version: String,
    pub started: String,
    /// Seconds since then.
    pub uptime_seconds: f64,
    pub phase: CollectorPhase,
    pub revision: Option<RevisionStatus>,
    /// The last document, if it was refused.
    pub refused: Option<RefusedStatus>,
    pub pipelines: BTreeMap<String, PipelineStatus>,
    /// Pipelines that are no longer in the document and have lost data, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedPipelineStatus>,
    /// Tail samplers, by processor id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub samplers: BTreeMap<String, SamplerStatus>,
    /// Processors that watch a cluster, by processor id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, ClusterStatus>,
}

/// The state of a tail sampler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SamplerStatus {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplerState {
    Ok,
    /// Memory is short: new traces are kept or dropped at random, at once.
    Overloaded,
}

/// The state of the cluster watches of a processor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterStatus {
    pub state: &'static str,
    pub since: Option<EventTime>,
    pub pods: u64,
    /// The class of the last error; `none` before the first.
    pub last_error: &'static str,
    /// The status of the API server's response, as `http:403`, if it responded.
    pub last_error_code: Option<String>,
    pub last_failure: Option<EventTime>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RevisionStatus {
    pub hash: String,
    pub number: u64,
    /// When it was put into effect.
    pub time: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedStatus {
    pub hash: String,
    pub time: String,
    pub reasons: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventTime {
    /// The time in RFC 3339.
    pub time: String,
    /// Seconds since then.
    pub age_seconds: f64,
}

/// One moment on both clocks: durations come from the monotonic one.
#[derive(Clone, Copy, Debug)]
pub struct StatusClock {
    pub instant: Instant,
    pub wall: SystemTime,
}

impl StatusClock {
    pub fn now() -> Self {
        Self { instant: Instant::now(), wall: SystemTime::now() }
    }

    /// The displayed form of an earlier moment.
    fn event_time(&self, at: Option<Instant>) -> Option<EventTime> {
        let age = self.instant.saturating_duration_since(at?);
        let time = self.wall.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        Some(EventTime { time: format_rfc3339(time), age_seconds: rounded_seconds(age) })
    }
}

pub fn build_status(
    registry: &StatsRegistry,
    process: &ProcessIdentity,
    running: &RunningInfo,
    check: &PipelineCheck,
    clock: StatusClock,
) -> CollectorStatus {
    let pipelines = running.pipelines.iter();
    CollectorStatus {
        version: process.version().to_owned(),
        started: format_rfc3339(process.started_at()),
        uptime_seconds: rounded_seconds(process.uptime(clock.instant)),
        phase: running.phase,
        revision: running.revision.as_ref().map(RevisionStatus::from_revision),
        refused: running.refused.as_ref().map(RefusedStatus::from_revision),
        pipelines: pipelines
            .map(|p| (p.id.to_string(), PipelineStatus::for_pipeline(registry, p, check, clock)))
            .collect(),
        ended: registry.last_ended().iter().filter_map(|ended| EndedPipelineStatus::from_ended(ended, clock)).collect(),
        samplers: samplers(registry, running),
        clusters: registry
            .clusters()
            .iter()
            .filter_map(|(id, stats)| Some((id.to_string(), ClusterStatus::from_snapshot(&stats.snapshot()?, clock))))
            .collect(),
    }
}

/// The tail samplers of the document in force. Counters of former ones remain in the registry and are not
/// shown.
fn samplers(registry: &StatsRegistry, running: &RunningInfo) -> BTreeMap<String, SamplerStatus> {
    let runs = |id: &ComponentId| running.pipelines.iter().any(|pipeline| pipeline.processors.contains(id));
    let known = registry.samplers().into_iter().filter(|(id, _)| runs(id));
    known.map(|(id, stats)| (id.to_string(), SamplerStatus::from_stats(&stats))).collect()
}

impl SamplerStatus {
    fn from_stats(stats: &TailSamplerStats) -> Self {
        let overloaded = stats.overloaded.load(Ordering::Relaxed) > 0;
        Self {
            state: if overloaded { SamplerState::Overloaded } else { SamplerState::Ok },
            traces: stats.traces.load(Ordering::Relaxed),
            waiting_bytes: stats.waiting_bytes.load(Ordering::Relaxed),
            overloads: stats.overloads.load(Ordering::Relaxed),
        }
    }
}

impl ClusterStatus {
    fn from_snapshot(look: &ClusterSnapshot, clock: StatusClock) -> Self {
        Self {
            state: look.state.name(),
            since: clock.event_time(Some(look.since)),
            pods: look.pods,
            last_error: look.last_error.name(),
            last_error_code: look.last_status.map(|said| said.to_string()),
            last_failure: clock.event_time(look.last_failure),
        }
    }
}

impl RevisionStatus {
    fn from_revision(revision: &LoadedRevision) -> Self {
        Self { hash: revision.hash.clone(), number: revision.number, time: format_rfc3339(revision.loaded_at) }
    }
}

impl RefusedStatus {
    fn from_revision(refused: &RefusedRevision) -> Self {
        let hash = refused.hash.clone();
        let reasons = refused.reasons.clone();
        Self { hash, time: format_rfc3339(refused.refused_at), reasons }
    }
}

fn rounded_seconds(duration: Duration) -> f64 {
    // Milliseconds are precise enough, and keep the document short.
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
