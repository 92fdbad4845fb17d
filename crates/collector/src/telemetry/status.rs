//! The `/status` document: what is loaded, what was refused, and how each pipeline is doing.
//!
//! Plain data, made by a pure function from counters, from what the engine says is running, and from a clock.

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

use super::{Process, rfc3339};
use crate::core::{Course, Destination, DropReason, ExporterStats, Registry, TailStats};

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
    /// By processor id, where there is a tail sampler.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub samplers: BTreeMap<String, SamplerStatus>,
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

/// How something that delivers is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It holds nothing and has had nothing to do lately.
    Idle,
    /// It delivers, or has just begun to.
    Ok,
    /// The last attempt failed, and there is more to try.
    Retrying,
    /// It keeps failing and has delivered nothing for too long.
    Stalled,
}

/// How a pipeline is doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelineStatus {
    /// The worst of its exporters'.
    pub state: State,
    /// Items that came in.
    pub received: u64,
    /// Items that destinations took, each destination counted by itself.
    pub delivered: u64,
    /// Items that were lost, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// The class of the last error, of any exporter; `none` so far.
    pub last_error: &'static str,
    /// When a destination last took something.
    pub last_success: Option<Success>,
    /// Failed attempts since the last success, of the exporter that is worst off.
    pub failures: u64,
    /// By exporter id.
    pub exporters: BTreeMap<String, ExporterStatus>,
}

/// How an exporter in a pipeline is doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExporterStatus {
    /// How it gets on.
    pub state: State,
    /// What its queue holds, by its sizer.
    pub queue_size: u64,
    /// What its queue may hold; zero without a queue.
    pub queue_capacity: u64,
    /// Requests under way.
    pub in_flight: u64,
    /// The class of its last error; `none` so far.
    pub last_error: &'static str,
    /// When its destination last took something.
    pub last_success: Option<Success>,
    /// Failed attempts since then.
    pub failures: u64,
    /// Of an exporter that sends to many: how it gets on with each, by endpoint.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, ExporterStatus>,
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Success {
    /// When, in RFC 3339.
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

    fn success(&self, at: Option<Instant>) -> Option<Success> {
        let age = self.instant.saturating_duration_since(at?);
        let time = self.wall.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        Some(Success { time: rfc3339(time), age_seconds: seconds(age) })
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
        samplers: registry.samplers().iter().map(|(id, stats)| (id.to_string(), SamplerStatus::of(stats))).collect(),
    }
}

impl SamplerStatus {
    fn of(stats: &TailStats) -> Self {
        let overloaded = stats.overloaded.load(Ordering::Relaxed);
        Self {
            state: if overloaded { SamplerState::Overloaded } else { SamplerState::Ok },
            traces: stats.traces.load(Ordering::Relaxed),
            waiting_bytes: stats.waiting_bytes.load(Ordering::Relaxed),
            overloads: stats.overloads.load(Ordering::Relaxed),
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

impl PipelineStatus {
    fn of(registry: &Registry, pipeline: &RunningPipeline, check: &PipelineCheck, clock: Clock) -> Self {
        let stats = registry.pipeline(&pipeline.id);
        let exporters: BTreeMap<_, _> = pipeline
            .exporters
            .iter()
            .map(|(id, to)| {
                let stats = registry.exporter(id, &pipeline.id, to.clone());
                let status = ExporterStatus::of(&stats, check, clock);
                // One that has no destination of its own may send to many.
                match *to == Destination::default() {
                    true => (id.to_string(), status.with_peers(registry, (id, &pipeline.id), check, clock)),
                    false => (id.to_string(), status),
                }
            })
            .collect();
        let course = stats.progress().course();
        Self {
            state: exporters.values().map(|e| e.state).max().unwrap_or(State::Idle),
            received: stats.received.load(Ordering::Relaxed),
            delivered: stats.delivered.load(Ordering::Relaxed),
            dropped: DropReason::ALL.iter().map(|reason| (reason.name(), stats.dropped_for(*reason))).collect(),
            last_error: course.last_error.name(),
            last_success: clock.success(course.last_success),
            failures: exporters.values().map(|e| e.failures).max().unwrap_or(0),
            exporters,
        }
    }
}

impl ExporterStatus {
    fn of(stats: &ExporterStats, check: &PipelineCheck, clock: Clock) -> Self {
        let course = stats.progress.course();
        let queue_size = stats.queue_size.load(Ordering::Relaxed);
        let in_flight = u64::try_from(stats.in_flight.load(Ordering::Relaxed)).unwrap_or(0);
        Self {
            state: state(&course, queue_size > 0 || in_flight > 0, check, clock.instant),
            queue_size,
            queue_capacity: stats.queue_capacity.load(Ordering::Relaxed),
            in_flight,
            last_error: course.last_error.name(),
            last_success: clock.success(course.last_success),
            failures: course.failures,
            peers: BTreeMap::new(),
        }
    }

    /// The same with its peers: it is as well off as the best of them, since they stand in for each other.
    fn with_peers(
        mut self,
        registry: &Registry,
        (id, pipeline): (&ComponentId, &PipelineId),
        check: &PipelineCheck,
        clock: Clock,
    ) -> Self {
        for (to, stats) in registry.destinations(id, pipeline) {
            if to == Destination::default() {
                continue;
            }
            let peer = Self::of(&stats, check, clock);
            self.queue_size += peer.queue_size;
            self.queue_capacity += peer.queue_capacity;
            self.in_flight += peer.in_flight;
            self.peers.insert(format!("{}:{}", to.address, to.port), peer);
        }
        if let Some(best) = self.peers.values().min_by_key(|peer| (peer.state == State::Idle, peer.state)) {
            (self.state, self.failures, self.last_error) = (best.state, best.failures, best.last_error);
            self.last_success = best.last_success.clone();
        }
        self
    }
}

/// Judges how something that delivers gets on.
///
/// It is stalled when it has failed at least as often as the threshold says since its last success, has been failing
/// for the whole interval, and still has to do with it: it holds data, or it lost data within the interval (with retries off,
/// or with a destination that refuses everything, nothing is ever held). Old failures of something that has nothing to do
/// are no reason to alarm anybody.
pub fn state(course: &Course, holds_data: bool, check: &PipelineCheck, now: Instant) -> State {
    let lately = |at: Option<Instant>| at.is_some_and(|at| now.saturating_duration_since(at) < check.interval);
    let failing_for = course.failing_since.map(|since| now.saturating_duration_since(since));
    match failing_for.filter(|_| holds_data || lately(course.last_failure)) {
        Some(age) if age >= check.interval && course.failures >= u64::from(check.failure_threshold) => State::Stalled,
        Some(_) => State::Retrying,
        None if holds_data || lately(course.last_success) => State::Ok,
        None => State::Idle,
    }
}

fn seconds(duration: Duration) -> f64 {
    // Milliseconds are enough for people, and keep the document short.
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}
