//! The `/status` document: what is loaded, what was refused, and how each pipeline is doing.
//!
//! A pure function makes it from counters, the engine's running state, and a clock. Its types are those that readers
//! use, too: `kubewake_status`.

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
use kubewake_status::{
    ClusterReport, CollectorPhase, CollectorStatus, EventTime, LogFilesReport, LogOutputReport, RefusalReport,
    RevisionReport, SamplerReport, SamplerState,
};
use tokio::time::Instant;

pub use self::delivery::send_state;
use super::{ProcessIdentity, format_rfc3339};
use crate::core::{
    ClusterSnapshot, DestinationLabels, LogFileStats, LogOutputProgress, StatsRegistry, TailSamplerStats,
};

/// The running state of the collector.
#[derive(Clone, Debug)]
pub struct RunningInfo {
    pub phase: CollectorPhase,
    /// The document in force.
    pub revision: Option<LoadedRevision>,
    /// The last document, if it was refused. A later one that is applied clears it.
    pub refused: Option<RefusedRevision>,
    /// The pipelines of the document in force.
    pub pipelines: Vec<PipelineInfo>,
}

impl Default for RunningInfo {
    fn default() -> Self {
        Self { phase: CollectorPhase::Starting, revision: None, refused: None, pipelines: Vec::new() }
    }
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
        revision: running.revision.as_ref().map(revision_report),
        refused: running.refused.as_ref().map(refusal_report),
        pipelines: pipelines
            .map(|p| (p.id.to_string(), delivery::pipeline_report(registry, p, check, clock)))
            .collect(),
        ended: registry.last_ended().iter().filter_map(|ended| delivery::ended_pipeline_report(ended, clock)).collect(),
        samplers: samplers(registry, running),
        clusters: registry
            .clusters()
            .iter()
            .filter_map(|(id, stats)| Some((id.to_string(), cluster_report(&stats.snapshot()?, clock))))
            .collect(),
        log_files: registry.log_files().iter().filter_map(|(id, stats)| log_files_report(id, stats)).collect(),
    }
}

/// The receiver of log files, if it runs.
fn log_files_report(id: &ComponentId, stats: &LogFileStats) -> Option<(String, LogFilesReport)> {
    let output = |output: LogOutputProgress| LogOutputReport {
        pipeline: output.pipeline.to_string(),
        exporter: output.exporter.to_string(),
        lag_bytes: output.lag_bytes,
        lag_seconds: output.lag_seconds,
        lost_bytes: output.lost_bytes,
    };
    let outputs: Vec<LogOutputReport> = stats.outputs().into_iter().map(output).collect();
    let problems = stats.problems().into_iter().map(|(kind, count)| (kind.to_owned(), count)).collect();
    let logs = stats.logs.load(Ordering::Relaxed);
    (!outputs.is_empty()).then(|| (id.to_string(), LogFilesReport { logs, problems, outputs }))
}

/// The tail samplers of the document in force. Counters of former ones remain in the registry and are not
/// shown.
fn samplers(registry: &StatsRegistry, running: &RunningInfo) -> BTreeMap<String, SamplerReport> {
    let runs = |id: &ComponentId| running.pipelines.iter().any(|pipeline| pipeline.processors.contains(id));
    let known = registry.samplers().into_iter().filter(|(id, _)| runs(id));
    known.map(|(id, stats)| (id.to_string(), sampler_report(&stats))).collect()
}

fn sampler_report(stats: &TailSamplerStats) -> SamplerReport {
    let is_overloaded = stats.overloaded.load(Ordering::Relaxed) > 0;
    SamplerReport {
        state: if is_overloaded { SamplerState::Overloaded } else { SamplerState::Ok },
        traces: stats.traces.load(Ordering::Relaxed),
        waiting_bytes: stats.waiting_bytes.load(Ordering::Relaxed),
        overloads: stats.overloads.load(Ordering::Relaxed),
    }
}

fn cluster_report(snapshot: &ClusterSnapshot, clock: StatusClock) -> ClusterReport {
    ClusterReport {
        state: snapshot.state.name().to_owned(),
        since: clock.event_time(Some(snapshot.since)),
        pods: snapshot.pods,
        last_error: snapshot.last_error.name().to_owned(),
        last_error_code: snapshot.last_status.map(|status| status.to_string()),
        last_failure: clock.event_time(snapshot.last_failure),
    }
}

fn revision_report(revision: &LoadedRevision) -> RevisionReport {
    RevisionReport { hash: revision.hash.clone(), number: revision.number, time: format_rfc3339(revision.loaded_at) }
}

fn refusal_report(refused: &RefusedRevision) -> RefusalReport {
    let reasons = refused.reasons.clone();
    RefusalReport { hash: refused.hash.clone(), time: format_rfc3339(refused.refused_at), reasons }
}

fn rounded_seconds(duration: Duration) -> f64 {
    // Milliseconds are precise enough, and keep the document short.
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
