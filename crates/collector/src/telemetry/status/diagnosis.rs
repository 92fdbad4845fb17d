//! A one-word diagnosis of a pipeline, for conditions and alerts.
//!
//! A pure function of the rest of the document, so that the reason can be seen there. It describes the current
//! moment and the interval of the health check; a consumer that wants it steadier waits until it persists.

use kubewake_config::model::PipelineCheck;
use kubewake_status::{EventTime, ExporterReport, PipelineDiagnosis, PipelineReport, SendState};

use crate::core::ErrorClass;

/// Entries older than this wait for their destination: requests are answered in milliseconds, and batching
/// delays are shorter.
const SLOW_QUEUE_AGE_SECS: f64 = 5.0;
const SLOW_RESPONSE_SECS: f64 = 1.0;
/// A buffer counts as filling from this level on, in tenths.
const FILLING_TENTHS: u64 = 8;

pub(super) fn diagnose(pipeline: &PipelineReport, check: &PipelineCheck) -> PipelineDiagnosis {
    let lately = |at: &EventTime| at.age_seconds < check.interval.as_secs_f64();
    let exporters = pipeline.exporters.values().map(diagnose_exporter);
    let worst = exporters.max().unwrap_or(PipelineDiagnosis::NoData);
    let full = pipeline.memory.is_some_and(|memory| is_filling(memory.used_bytes, memory.limit_bytes));
    let signs = [
        (pipeline.last_drop.as_ref().is_some_and(|drop| lately(&drop.at)), PipelineDiagnosis::DataDropped),
        (full || pipeline.last_refused.as_ref().is_some_and(lately), PipelineDiagnosis::BufferFilling),
        (pipeline.last_received.as_ref().is_some_and(lately), PipelineDiagnosis::Delivering),
    ];
    signs.into_iter().filter(|(holds, _)| *holds).map(|(_, sign)| sign).fold(worst, PipelineDiagnosis::max)
}

fn diagnose_exporter(exporter: &ExporterReport) -> PipelineDiagnosis {
    match exporter.state {
        SendState::Retrying | SendState::Failing | SendState::Stalled => diagnose_failure(exporter),
        SendState::Idle | SendState::Unknown => PipelineDiagnosis::NoData,
        SendState::Ok if is_slow(exporter) => PipelineDiagnosis::BackendSlow,
        SendState::Ok if is_filling(exporter.queue_size, exporter.queue_capacity) => PipelineDiagnosis::BufferFilling,
        SendState::Ok => PipelineDiagnosis::Delivering,
    }
}

fn diagnose_failure(exporter: &ExporterReport) -> PipelineDiagnosis {
    let class = ErrorClass::ALL.iter().find(|class| class.name() == exporter.last_error);
    match (class, exporter.last_error_code.as_deref()) {
        (Some(ErrorClass::Authentication | ErrorClass::Refused | ErrorClass::Protocol), _) => {
            PipelineDiagnosis::BackendRefuses
        }
        // An overloaded destination that asks to retry later. Other codes of this class mean that it is
        // unavailable.
        (Some(ErrorClass::Throttled), Some("http:429" | "grpc:8")) => PipelineDiagnosis::BackendSlow,
        _ => PipelineDiagnosis::BackendUnreachable,
    }
}

fn is_slow(exporter: &ExporterReport) -> bool {
    let waits = |past: &EventTime| past.age_seconds >= SLOW_QUEUE_AGE_SECS;
    // A destination without responses has no latency.
    let silent = exporter.last_success.as_ref().is_none_or(waits);
    let slow = silent || exporter.latency_seconds.is_some_and(|seconds| seconds >= SLOW_RESPONSE_SECS);
    exporter.in_flight > 0 && slow && exporter.oldest.as_ref().is_some_and(waits)
}

fn is_filling(used: u64, limit: u64) -> bool {
    limit > 0 && used.saturating_mul(10) >= limit.saturating_mul(FILLING_TENTHS)
}
