//! The status of pipelines and their exporters.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use kubewake_config::{ComponentId, PipelineId, model::PipelineCheck};
use serde::Serialize;
use tokio::time::Instant;

use super::{EventTime, PipelineDiagnosis, PipelineInfo, StatusClock, rounded_seconds};
use crate::core::{
    DeliverySnapshot, DestinationLabels, DropReason, EndedPipeline, ExporterStats, PipelineStats, StatsRegistry,
};

/// The state of delivery, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SendState {
    /// Nothing is held, and nothing was sent lately.
    Idle,
    /// Data is delivered, or delivery has just begun.
    Ok,
    /// The last attempt failed, and the data will be sent again.
    Retrying,
    /// The last attempt failed, and the data was lost or returned to its sender.
    Failing,
    /// Attempts have been failing for too long without a success.
    Stalled,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PipelineStatus {
    /// Tells pipelines with the same id apart, if the document sets it.
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
    pub dropped: BTreeMap<&'static str, u64>,
    pub last_drop: Option<DropStatus>,
    /// The class of the last error of any exporter; `none` before the first.
    pub last_error: &'static str,
    /// The status of the last error, as `grpc:16` or `http:401`, if the destination responded.
    pub last_error_code: Option<String>,
    /// When an attempt of any exporter last failed.
    pub last_failure: Option<EventTime>,
    /// When a destination last took data.
    pub last_success: Option<EventTime>,
    /// Failed attempts since the last success, of the worst exporter.
    pub failures: u64,
    /// The memory of the pipeline; `None` while it is not running.
    pub memory: Option<MemoryStatus>,
    pub exporters: BTreeMap<String, ExporterStatus>,
}

/// The losses of a pipeline that is no longer in the document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EndedPipelineStatus {
    pub id: String,
    /// Tells pipelines with the same id apart, if the document set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The uids of the pipelines in other collectors for which it carried data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub carries: Vec<String>,
    /// Items lost, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    pub last_drop: DropStatus,
}

impl EndedPipelineStatus {
    /// `None` if the pipeline lost nothing.
    pub(super) fn from_ended(ended: &EndedPipeline, clock: StatusClock) -> Option<Self> {
        let (at, why) = ended.stats.last_dropped()?;
        let dropped = DropReason::ALL.iter().map(|reason| (reason.name(), ended.stats.dropped_for(*reason)));
        Some(Self {
            id: ended.id.to_string(),
            uid: ended.uid.clone(),
            carries: ended.carries.clone(),
            dropped: dropped.filter(|(_, items)| *items > 0).collect(),
            last_drop: DropStatus { reason: why.name(), at: clock.event_time(Some(at))? },
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DropStatus {
    pub reason: &'static str,
    #[serde(flatten)]
    pub at: EventTime,
}

/// The memory that a pipeline may use for new requests, including the shared pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MemoryStatus {
    pub used_bytes: u64,
    pub limit_bytes: u64,
}

/// The status of an exporter in a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExporterStatus {
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
    pub last_error: &'static str,
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
    pub peers: BTreeMap<String, ExporterStatus>,
}

impl PipelineStatus {
    pub(super) fn for_pipeline(
        registry: &StatsRegistry,
        pipeline: &PipelineInfo,
        check: &PipelineCheck,
        clock: StatusClock,
    ) -> Self {
        let stats = registry.pipeline(&pipeline.id);
        let exporters = pipeline.exporters.iter().map(|(id, to)| {
            let stats = registry.exporter(id, &pipeline.id, to.clone());
            let status = ExporterStatus::from_stats(&stats, check, clock);
            // An exporter without a destination of its own may have peers.
            if *to == DestinationLabels::default() {
                (id.to_string(), status.with_peers(registry, (id, &pipeline.id), check, clock))
            } else {
                (id.to_string(), status)
            }
        });
        let mut status = Self::from_stats(&stats, exporters.collect(), clock);
        status.diagnosis = PipelineDiagnosis::diagnose(&status, check);
        status.uid.clone_from(&pipeline.uid);
        status.carries.clone_from(&pipeline.carries);
        status
    }

    fn from_stats(stats: &PipelineStats, exporters: BTreeMap<String, ExporterStatus>, clock: StatusClock) -> Self {
        let course = stats.progress().snapshot();
        let memory = stats.memory().map(|(used_bytes, limit_bytes)| MemoryStatus { used_bytes, limit_bytes });
        let drop = stats.last_dropped();
        Self {
            uid: None,
            carries: Vec::new(),
            diagnosis: PipelineDiagnosis::NoData,
            state: exporters.values().map(|e| e.state).max().unwrap_or(SendState::Idle),
            received: stats.received(),
            last_received: clock.event_time(stats.last_received()),
            last_refused: clock.event_time(stats.last_refused()),
            delivered: stats.delivered.load(Ordering::Relaxed),
            dropped: DropReason::ALL.iter().map(|reason| (reason.name(), stats.dropped_for(*reason))).collect(),
            last_drop: drop
                .and_then(|(at, why)| Some(DropStatus { reason: why.name(), at: clock.event_time(Some(at))? })),
            last_error: course.last_error.name(),
            last_error_code: course.last_status.map(|said| said.to_string()),
            last_failure: clock.event_time(course.last_failure),
            last_success: clock.event_time(course.last_success),
            failures: exporters.values().map(|e| e.failures).max().unwrap_or(0),
            memory,
            exporters,
        }
    }
}

impl ExporterStatus {
    fn from_stats(stats: &ExporterStats, check: &PipelineCheck, clock: StatusClock) -> Self {
        let course = stats.progress.snapshot();
        let queue_size = stats.queue.size();
        let in_flight = u64::try_from(stats.in_flight.load(Ordering::Relaxed)).unwrap_or(0);
        Self {
            state: send_state(&course, queue_size > 0 || in_flight > 0, check, clock.instant),
            queue_size,
            queue_capacity: stats.queue_capacity.load(Ordering::Relaxed),
            oldest: clock.event_time(stats.queue.oldest()),
            in_flight,
            latency_seconds: stats.calls.recent_mean().map(rounded_seconds),
            last_error: course.last_error.name(),
            last_error_code: course.last_status.map(|said| said.to_string()),
            last_failure: clock.event_time(course.last_failure),
            last_success: clock.event_time(course.last_success),
            failures: course.failures,
            failing_since: clock.event_time(course.failing_since),
            peers: BTreeMap::new(),
        }
    }

    /// Adds the peers. The state is that of the best peer, since they replace each other.
    fn with_peers(
        self,
        registry: &StatsRegistry,
        (id, pipeline): (&ComponentId, &PipelineId),
        check: &PipelineCheck,
        clock: StatusClock,
    ) -> Self {
        let all = registry.destinations(id, pipeline).into_iter().filter(|(to, _)| *to != DestinationLabels::default());
        let peers: BTreeMap<String, Self> = all
            .map(|(to, stats)| (format!("{}:{}", to.address, to.port), Self::from_stats(&stats, check, clock)))
            .collect();
        let best = peers.values().min_by_key(|peer| (peer.state == SendState::Idle, peer.state));
        // Failures that belong to no peer occur only while no peer is known, and the peers still listed have
        // left.
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

/// Computes the state of delivery.
///
/// Delivery is stalled when it has failed at least as often as the threshold since its last success, has been
/// failing for the whole interval, and still matters: data is held, or an attempt failed within the interval
/// (with retries off, or with a destination that refuses everything, nothing is ever held). Old failures of an
/// idle pipeline must not alarm anybody.
pub fn send_state(course: &DeliverySnapshot, holds_data: bool, check: &PipelineCheck, now: Instant) -> SendState {
    let lately = |at: Option<Instant>| at.is_some_and(|at| now.saturating_duration_since(at) < check.interval);
    let failing_for = course.failing_since.map(|since| now.saturating_duration_since(since));
    match failing_for.filter(|_| holds_data || lately(course.last_failure)) {
        Some(age) if age >= check.interval && course.failures >= u64::from(check.failure_threshold) => {
            SendState::Stalled
        }
        Some(_) if holds_data && !course.is_final => SendState::Retrying,
        Some(_) => SendState::Failing,
        None if holds_data || lately(course.last_success) => SendState::Ok,
        None => SendState::Idle,
    }
}
