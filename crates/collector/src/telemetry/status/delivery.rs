//! How pipelines and their exporters get on.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use kubewake_config::{ComponentId, PipelineId, model::PipelineCheck};
use serde::Serialize;
use tokio::time::Instant;

use super::{Clock, Diagnosis, Past, RunningPipeline, seconds};
use crate::core::{Course, Destination, DropReason, EndedPipeline, ExporterStats, PipelineStats, Registry};

/// How something that delivers is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It holds nothing and has had nothing to do lately.
    Idle,
    /// It delivers, or has just begun to.
    Ok,
    /// The last attempt failed, and what was sent is tried again.
    Retrying,
    /// The last attempt failed, and what was sent is lost or was left to its sender.
    Failing,
    /// It keeps failing and has delivered nothing for too long.
    Stalled,
}

/// How a pipeline is doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelineStatus {
    /// Which one it is of all that have had its id, if the document says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carries data: what it loses is lost to them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
    /// All of this in a word.
    pub diagnosis: Diagnosis,
    /// The worst of its exporters'.
    pub state: State,
    /// Items that came in.
    pub received: u64,
    /// When something came in last.
    pub last_received: Option<Past>,
    /// When a request was last refused for want of memory.
    pub last_refused: Option<Past>,
    /// Items that destinations took, each destination counted by itself.
    pub delivered: u64,
    /// Items that were lost, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// The last loss.
    pub last_drop: Option<DropStatus>,
    /// The class of the last error, of any exporter; `none` so far.
    pub last_error: &'static str,
    /// What the destination said in it, as `grpc:16` or `http:401`, if it answered.
    pub last_error_code: Option<String>,
    /// When an attempt failed last, of any exporter.
    pub last_failure: Option<Past>,
    /// When a destination last took something.
    pub last_success: Option<Past>,
    /// Failed attempts since the last success, of the exporter that is worst off.
    pub failures: u64,
    /// The memory that it may use; none while it is not running.
    pub memory: Option<MemoryStatus>,
    /// By exporter id.
    pub exporters: BTreeMap<String, ExporterStatus>,
}

/// What a pipeline lost that is not in the document any more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedStatus {
    /// Its id.
    pub id: String,
    /// Which one it was of all that have had its id, if the document said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carried data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
    /// Items that were lost, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// The last loss.
    pub last_drop: DropStatus,
}

impl EndedStatus {
    /// Nothing, if it lost nothing.
    pub(super) fn of(ended: &EndedPipeline, clock: Clock) -> Option<Self> {
        let (at, why) = ended.stats.last_dropped()?;
        let dropped = DropReason::ALL.iter().map(|reason| (reason.name(), ended.stats.dropped_for(*reason)));
        Some(Self {
            id: ended.id.to_string(),
            uid: ended.uid.clone(),
            carries: ended.carries.clone(),
            dropped: dropped.filter(|(_, items)| *items > 0).collect(),
            last_drop: DropStatus { reason: why.name(), at: clock.past(Some(at))? },
        })
    }
}

/// A loss.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DropStatus {
    /// Why.
    pub reason: &'static str,
    /// When.
    #[serde(flatten)]
    pub at: Past,
}

/// Memory that a pipeline may use for new requests, with what it shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryStatus {
    /// What is in use.
    pub used_bytes: u64,
    /// What there is.
    pub limit_bytes: u64,
}

/// How an exporter in a pipeline is doing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExporterStatus {
    /// How it gets on.
    pub state: State,
    /// What its queue holds, by its sizer, with what is under way.
    pub queue_size: u64,
    /// What its queue may hold; zero without a queue.
    pub queue_capacity: u64,
    /// Since when the oldest of what its queue holds is there.
    pub oldest: Option<Past>,
    /// Requests under way, also while they wait for another attempt.
    pub in_flight: u64,
    /// How long the destination took to accept what was sent last: a mean of a few, the newer counting more.
    pub latency_seconds: Option<f64>,
    /// The class of its last error; `none` so far.
    pub last_error: &'static str,
    /// What its destination said in it, as `grpc:16` or `http:401`, if it answered.
    pub last_error_code: Option<String>,
    /// When an attempt failed last.
    pub last_failure: Option<Past>,
    /// When its destination last took something.
    pub last_success: Option<Past>,
    /// Failed attempts since then.
    pub failures: u64,
    /// When the first of these was.
    pub failing_since: Option<Past>,
    /// Of an exporter that sends to many: how it gets on with each, by endpoint.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub peers: BTreeMap<String, ExporterStatus>,
}

impl PipelineStatus {
    pub(super) fn of(registry: &Registry, pipeline: &RunningPipeline, check: &PipelineCheck, clock: Clock) -> Self {
        let stats = registry.pipeline(&pipeline.id);
        let exporters = pipeline.exporters.iter().map(|(id, to)| {
            let stats = registry.exporter(id, &pipeline.id, to.clone());
            let status = ExporterStatus::of(&stats, check, clock);
            // One that has no destination of its own may send to many.
            match *to == Destination::default() {
                true => (id.to_string(), status.with_peers(registry, (id, &pipeline.id), check, clock)),
                false => (id.to_string(), status),
            }
        });
        let mut status = Self::with_exporters(&stats, exporters.collect(), clock);
        status.diagnosis = Diagnosis::of(&status, check);
        status.uid.clone_from(&pipeline.uid);
        status.carries.clone_from(&pipeline.carries);
        status
    }

    fn with_exporters(stats: &PipelineStats, exporters: BTreeMap<String, ExporterStatus>, clock: Clock) -> Self {
        let course = stats.progress().course();
        let memory = stats.memory().map(|(used_bytes, limit_bytes)| MemoryStatus { used_bytes, limit_bytes });
        let drop = stats.last_dropped();
        Self {
            uid: None,
            carries: Vec::new(),
            diagnosis: Diagnosis::NoData,
            state: exporters.values().map(|e| e.state).max().unwrap_or(State::Idle),
            received: stats.received(),
            last_received: clock.past(stats.last_received()),
            last_refused: clock.past(stats.last_refused()),
            delivered: stats.delivered.load(Ordering::Relaxed),
            dropped: DropReason::ALL.iter().map(|reason| (reason.name(), stats.dropped_for(*reason))).collect(),
            last_drop: drop.and_then(|(at, why)| Some(DropStatus { reason: why.name(), at: clock.past(Some(at))? })),
            last_error: course.last_error.name(),
            last_error_code: course.last_said.map(|said| said.to_string()),
            last_failure: clock.past(course.last_failure),
            last_success: clock.past(course.last_success),
            failures: exporters.values().map(|e| e.failures).max().unwrap_or(0),
            memory,
            exporters,
        }
    }
}

impl ExporterStatus {
    fn of(stats: &ExporterStats, check: &PipelineCheck, clock: Clock) -> Self {
        let course = stats.progress.course();
        let queue_size = stats.queue.size();
        let in_flight = u64::try_from(stats.in_flight.load(Ordering::Relaxed)).unwrap_or(0);
        Self {
            state: state(&course, queue_size > 0 || in_flight > 0, check, clock.instant),
            queue_size,
            queue_capacity: stats.queue_capacity.load(Ordering::Relaxed),
            oldest: clock.past(stats.queue.oldest()),
            in_flight,
            latency_seconds: stats.calls.lately().map(seconds),
            last_error: course.last_error.name(),
            last_error_code: course.last_said.map(|said| said.to_string()),
            last_failure: clock.past(course.last_failure),
            last_success: clock.past(course.last_success),
            failures: course.failures,
            failing_since: clock.past(course.failing_since),
            peers: BTreeMap::new(),
        }
    }

    /// The same with its peers: it is as well off as the best of them, since they stand in for each other.
    fn with_peers(
        self,
        registry: &Registry,
        (id, pipeline): (&ComponentId, &PipelineId),
        check: &PipelineCheck,
        clock: Clock,
    ) -> Self {
        let all = registry.destinations(id, pipeline).into_iter().filter(|(to, _)| *to != Destination::default());
        let peers: BTreeMap<String, Self> =
            all.map(|(to, stats)| (format!("{}:{}", to.address, to.port), Self::of(&stats, check, clock))).collect();
        let best = peers.values().min_by_key(|peer| (peer.state == State::Idle, peer.state));
        // What belongs to no peer fails only while none is known: those that are still here have left.
        let Some(best) = best.map(|best| if self.failures > 0 { &self } else { best }).cloned() else {
            return self;
        };
        let sum = |of: fn(&Self) -> u64| of(&self) + peers.values().map(of).sum::<u64>();
        let oldest = peers.values().chain([&self]).filter_map(|peer| peer.oldest.as_ref());
        Self {
            queue_size: sum(|peer| peer.queue_size),
            queue_capacity: sum(|peer| peer.queue_capacity),
            in_flight: sum(|peer| peer.in_flight),
            oldest: oldest.max_by(|a, b| a.age_seconds.total_cmp(&b.age_seconds)).cloned(),
            peers,
            ..best
        }
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
        Some(_) if holds_data && !course.is_final => State::Retrying,
        Some(_) => State::Failing,
        None if holds_data || lately(course.last_success) => State::Ok,
        None => State::Idle,
    }
}
