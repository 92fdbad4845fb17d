//! The status of pipelines and their exporters.

use std::{collections::BTreeMap, sync::atomic::Ordering};

use kubewake_config::{ComponentId, PipelineId, model::PipelineCheck};
use kubewake_status::{
    DropReport, EndedPipelineReport, ExporterReport, MemoryReport, PipelineDiagnosis, PipelineReport, SendState,
};
use tokio::time::Instant;

use super::{PipelineInfo, StatusClock, diagnosis, rounded_seconds};
use crate::core::{
    DeliverySnapshot, DestinationLabels, DropReason, EndedPipeline, ExporterStats, PipelineStats, StatsRegistry,
};

pub(super) fn ended_pipeline_report(ended: &EndedPipeline, clock: StatusClock) -> Option<EndedPipelineReport> {
    // A pipeline that lost nothing is not reported.
    let last_drop = drop_report(ended.stats.last_dropped()?, clock)?;
    let dropped = DropReason::ALL.iter().map(|reason| (reason.name().to_owned(), ended.stats.dropped_for(*reason)));
    Some(EndedPipelineReport {
        id: ended.id.to_string(),
        uid: ended.uid.clone(),
        carries: ended.carries.clone(),
        dropped: dropped.filter(|(_, items)| *items > 0).collect(),
        last_drop: Some(last_drop),
    })
}

fn drop_report((at, reason): (Instant, DropReason), clock: StatusClock) -> Option<DropReport> {
    Some(DropReport { reason: reason.name().to_owned(), at: clock.event_time(Some(at))? })
}

pub(super) fn pipeline_report(
    registry: &StatsRegistry,
    pipeline: &PipelineInfo,
    check: &PipelineCheck,
    clock: StatusClock,
) -> PipelineReport {
    let stats = registry.pipeline(&pipeline.id);
    let exporters = pipeline.exporters.iter().map(|(id, to)| {
        let stats = registry.exporter(id, &pipeline.id, to.clone());
        let status = exporter_report(&stats, check, clock);
        // An exporter without a destination of its own may have peers.
        if *to == DestinationLabels::default() {
            (id.to_string(), with_peers(status, registry, (id, &pipeline.id), check, clock))
        } else {
            (id.to_string(), status)
        }
    });
    let mut status = report_from_stats(&stats, exporters.collect(), clock);
    status.diagnosis = diagnosis::diagnose(&status, check);
    status.uid.clone_from(&pipeline.uid);
    status.carries.clone_from(&pipeline.carries);
    status
}

fn report_from_stats(
    stats: &PipelineStats,
    exporters: BTreeMap<String, ExporterReport>,
    clock: StatusClock,
) -> PipelineReport {
    let course = stats.progress().snapshot();
    let memory = stats.memory().map(|(used_bytes, limit_bytes)| MemoryReport { used_bytes, limit_bytes });
    PipelineReport {
        uid: None,
        carries: Vec::new(),
        diagnosis: PipelineDiagnosis::NoData,
        state: exporters.values().map(|e| e.state).max().unwrap_or(SendState::Idle),
        received: stats.received(),
        last_received: clock.event_time(stats.last_received()),
        last_refused: clock.event_time(stats.last_refused()),
        delivered: stats.delivered.load(Ordering::Relaxed),
        dropped: DropReason::ALL.iter().map(|reason| (reason.name().to_owned(), stats.dropped_for(*reason))).collect(),
        last_drop: stats.last_dropped().and_then(|drop| drop_report(drop, clock)),
        last_error: course.last_error.name().to_owned(),
        last_error_code: course.last_status.map(|said| said.to_string()),
        last_failure: clock.event_time(course.last_failure),
        last_success: clock.event_time(course.last_success),
        failures: exporters.values().map(|e| e.failures).max().unwrap_or(0),
        memory,
        exporters,
    }
}

fn exporter_report(stats: &ExporterStats, check: &PipelineCheck, clock: StatusClock) -> ExporterReport {
    let course = stats.progress.snapshot();
    let queue_size = stats.queue.size();
    let in_flight = u64::try_from(stats.in_flight.load(Ordering::Relaxed)).unwrap_or(0);
    ExporterReport {
        state: send_state(&course, queue_size > 0 || in_flight > 0, check, clock.instant),
        queue_size,
        queue_capacity: stats.queue_capacity.load(Ordering::Relaxed),
        oldest: clock.event_time(stats.queue.oldest()),
        in_flight,
        latency_seconds: stats.calls.recent_mean().map(rounded_seconds),
        last_error: course.last_error.name().to_owned(),
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
    report: ExporterReport,
    registry: &StatsRegistry,
    (id, pipeline): (&ComponentId, &PipelineId),
    check: &PipelineCheck,
    clock: StatusClock,
) -> ExporterReport {
    let all = registry.destinations(id, pipeline).into_iter().filter(|(to, _)| *to != DestinationLabels::default());
    let peers: BTreeMap<String, ExporterReport> =
        all.map(|(to, stats)| (format!("{}:{}", to.address, to.port), exporter_report(&stats, check, clock))).collect();
    let best = peers.values().min_by_key(|peer| (peer.state == SendState::Idle, peer.state));
    // Failures that belong to no peer occur only while no peer is known, and the peers still listed have
    // left.
    let Some(best) = best.map(|best| if report.failures > 0 { &report } else { best }).cloned() else {
        return report;
    };
    let sum = |of: fn(&ExporterReport) -> u64| of(&report) + peers.values().map(of).sum::<u64>();
    let oldest = peers.values().chain([&report]).filter_map(|peer| peer.oldest.as_ref());
    ExporterReport {
        queue_size: sum(|peer| peer.queue_size),
        queue_capacity: sum(|peer| peer.queue_capacity),
        in_flight: sum(|peer| peer.in_flight),
        oldest: oldest.max_by(|a, b| a.age_seconds.total_cmp(&b.age_seconds)).cloned(),
        peers,
        ..best
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
