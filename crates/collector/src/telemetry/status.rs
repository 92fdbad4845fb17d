//! The `/status` document: what is loaded, what was refused, and how each pipeline is doing.
//!
//! Plain data, made by a pure function from counters, from what the engine says is running, and from a clock.

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
    delivery::{DropStatus, EndedStatus, ExporterStatus, MemoryStatus, PipelineStatus, State, state},
    diagnosis::Diagnosis,
};
use super::{Process, rfc3339};
use crate::core::{Destination, Look, Registry, TailStats};

/// What the engine says of itself.
#[derive(Clone, Debug, Default)]
pub struct RunningInfo {
    /// Whether it takes data.
    pub phase: Phase,
    /// The document that is in force.
    pub revision: Option<Revision>,
    /// The document that was given last, if it was refused. A later one that is accepted clears it.
    pub refused: Option<RefusedRevision>,
    /// The pipelines of the document in force.
    pub pipelines: Vec<RunningPipeline>,
}

/// Where the collector is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Not everything serves yet.
    #[default]
    Starting,
    /// It takes data.
    Ready,
    /// It takes no more data, and delivers what it holds.
    Draining,
}

/// A document that was put into effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// Tells documents apart: a hash of the document as it was given.
    pub hash: String,
    /// How many documents were put into effect, this one included.
    pub number: u64,
    /// When.
    pub loaded_at: SystemTime,
}

/// A document that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRevision {
    /// A hash of the document as it was given.
    pub hash: String,
    /// When.
    pub refused_at: SystemTime,
    /// Every reason; none of them holds a secret.
    pub reasons: Vec<String>,
}

/// A pipeline that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningPipeline {
    /// Its id.
    pub id: PipelineId,
    /// Which one it is of all that have had its id, if the document says.
    pub uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carries data.
    pub carries: Vec<String>,
    /// Its processors.
    pub processors: Vec<ComponentId>,
    /// Its exporters, each with the destination under which it counts.
    pub exporters: Vec<(ComponentId, Destination)>,
}

/// The document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The program's version.
    pub version: String,
    /// When the process started.
    pub started: String,
    /// Seconds since then.
    pub uptime_seconds: f64,
    /// Whether it takes data.
    pub phase: Phase,
    /// The document in force.
    pub revision: Option<RevisionStatus>,
    /// The last document, if it was refused.
    pub refused: Option<RefusedStatus>,
    /// By pipeline id.
    pub pipelines: BTreeMap<String, PipelineStatus>,
    /// Pipelines that are not in the document any more and have lost something, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedStatus>,
    /// By processor id, where there is a tail sampler.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub samplers: BTreeMap<String, SamplerStatus>,
    /// By processor id, where there is one that looks at a cluster.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, ClusterStatus>,
}

/// How a tail sampler is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SamplerStatus {
    /// Whether it has the memory to let traces wait.
    pub state: SamplerState,
    /// Traces that it knows, decided or not.
    pub traces: u64,
    /// Bytes of spans that wait for a decision.
    pub waiting_bytes: u64,
    /// How often memory ran short.
    pub overloads: u64,
}

/// Whether a tail sampler does what its policies say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplerState {
    /// It does.
    Ok,
    /// Memory is short: new traces are kept or dropped at random, at once.
    Overloaded,
}

/// How a processor gets on with the cluster that it looks at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClusterStatus {
    /// `connecting`, `synced` or `failing`.
    pub state: &'static str,
    /// Since when.
    pub since: Option<Past>,
    /// Pods that are known.
    pub pods: u64,
    /// The class of the last error; `none` so far.
    pub last_error: &'static str,
    /// What the API server said in it, as `http:403`, if it answered.
    pub last_error_code: Option<String>,
    /// When that was.
    pub last_failure: Option<Past>,
}

/// The document in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RevisionStatus {
    /// [`Revision::hash`]
    pub hash: String,
    /// [`Revision::number`]
    pub number: u64,
    /// When it was put into effect.
    pub time: String,
}

/// A refused document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusedStatus {
    /// [`RefusedRevision::hash`]
    pub hash: String,
    /// When it was refused.
    pub time: String,
    /// Every reason.
    pub reasons: Vec<String>,
}

/// When something happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Past {
    /// In RFC 3339.
    pub time: String,
    /// Seconds since then.
    pub age_seconds: f64,
}

/// One moment, on both clocks: durations come from the one that never jumps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// For durations.
    pub instant: Instant,
    /// For people.
    pub wall: SystemTime,
}

impl Clock {
    /// This moment.
    pub fn now() -> Self {
        Self { instant: Instant::now(), wall: SystemTime::now() }
    }

    /// An earlier moment, as it is shown.
    fn past(&self, at: Option<Instant>) -> Option<Past> {
        let age = self.instant.saturating_duration_since(at?);
        let time = self.wall.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Past { time: rfc3339(time), age_seconds: seconds(age) })
    }
}

/// Makes the document.
pub fn build(
    registry: &Registry,
    process: &Process,
    running: &RunningInfo,
    check: &PipelineCheck,
    clock: Clock,
) -> Status {
    let pipelines = running.pipelines.iter();
    Status {
        version: process.version().to_owned(),
        started: rfc3339(process.started_at()),
        uptime_seconds: seconds(process.uptime(clock.instant)),
        phase: running.phase,
        revision: running.revision.as_ref().map(RevisionStatus::of),
        refused: running.refused.as_ref().map(RefusedStatus::of),
        pipelines: pipelines.map(|p| (p.id.to_string(), PipelineStatus::of(registry, p, check, clock))).collect(),
        ended: registry.last_ended().iter().filter_map(|ended| EndedStatus::of(ended, clock)).collect(),
        samplers: samplers(registry, running),
        clusters: registry
            .clusters()
            .iter()
            .filter_map(|(id, stats)| Some((id.to_string(), ClusterStatus::of(&stats.look()?, clock))))
            .collect(),
    }
}

/// The tail samplers of the document in force; the counters of others stay, and are nobody's state.
fn samplers(registry: &Registry, running: &RunningInfo) -> BTreeMap<String, SamplerStatus> {
    let runs = |id: &ComponentId| running.pipelines.iter().any(|pipeline| pipeline.processors.contains(id));
    let known = registry.samplers().into_iter().filter(|(id, _)| runs(id));
    known.map(|(id, stats)| (id.to_string(), SamplerStatus::of(&stats))).collect()
}

impl SamplerStatus {
    fn of(stats: &TailStats) -> Self {
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
    fn of(look: &Look, clock: Clock) -> Self {
        Self {
            state: look.state.name(),
            since: clock.past(Some(look.since)),
            pods: look.pods,
            last_error: look.last_error.name(),
            last_error_code: look.last_said.map(|said| said.to_string()),
            last_failure: clock.past(look.last_failure),
        }
    }
}

impl RevisionStatus {
    fn of(revision: &Revision) -> Self {
        Self { hash: revision.hash.clone(), number: revision.number, time: rfc3339(revision.loaded_at) }
    }
}

impl RefusedStatus {
    fn of(refused: &RefusedRevision) -> Self {
        let (hash, reasons) = (refused.hash.clone(), refused.reasons.clone());
        Self { hash, time: rfc3339(refused.refused_at), reasons }
    }
}

fn seconds(duration: Duration) -> f64 {
    // Milliseconds are enough for people, and keep the document short.
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
