//! A one-word diagnosis of a pipeline, for conditions and alerts.
//!
//! A pure function of the rest of the document, so that the reason can be seen there. It describes the current
//! moment and the interval of the health check; a consumer that wants it steadier waits until it persists.

use kubewake_config::model::PipelineCheck;
use serde::Serialize;

use super::{EventTime, ExporterStatus, PipelineStatus, SendState};
use crate::core::ErrorClass;

/// Entries older than this wait for their destination: requests are answered in milliseconds, and batching
/// delays are shorter.
const SLOW_QUEUE_AGE_SECS: f64 = 5.0;
const SLOW_RESPONSE_SECS: f64 = 1.0;
/// A buffer counts as filling from this level on, in tenths.
const FILLING_TENTHS: u64 = 8;

/// The diagnosis of a pipeline, best first. The worst that applies is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum PipelineDiagnosis {
    /// Nothing was received within the interval, and nothing is held.
    NoData,
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
}

impl PipelineDiagnosis {
    pub(super) fn diagnose(pipeline: &PipelineStatus, check: &PipelineCheck) -> Self {
        let lately = |at: &EventTime| at.age_seconds < check.interval.as_secs_f64();
        let exporters = pipeline.exporters.values().map(Self::diagnose_exporter);
        let worst = exporters.max().unwrap_or(Self::NoData);
        let full = pipeline.memory.is_some_and(|memory| is_filling(memory.used_bytes, memory.limit_bytes));
        let signs = [
            (pipeline.last_drop.as_ref().is_some_and(|drop| lately(&drop.at)), Self::DataDropped),
            (full || pipeline.last_refused.as_ref().is_some_and(lately), Self::BufferFilling),
            (pipeline.last_received.as_ref().is_some_and(lately), Self::Delivering),
        ];
        signs.into_iter().filter(|(holds, _)| *holds).map(|(_, sign)| sign).fold(worst, Self::max)
    }

    fn diagnose_exporter(exporter: &ExporterStatus) -> Self {
        match exporter.state {
            SendState::Retrying | SendState::Failing | SendState::Stalled => Self::diagnose_failure(exporter),
            SendState::Idle => Self::NoData,
            SendState::Ok if is_slow(exporter) => Self::BackendSlow,
            SendState::Ok if is_filling(exporter.queue_size, exporter.queue_capacity) => Self::BufferFilling,
            SendState::Ok => Self::Delivering,
        }
    }

    fn diagnose_failure(exporter: &ExporterStatus) -> Self {
        let class = ErrorClass::ALL.iter().find(|class| class.name() == exporter.last_error);
        match (class, exporter.last_error_code.as_deref()) {
            (Some(ErrorClass::Authentication | ErrorClass::Refused | ErrorClass::Protocol), _) => Self::BackendRefuses,
            // An overloaded destination that asks to retry later. Other codes of this class mean that it is
            // unavailable.
            (Some(ErrorClass::Throttled), Some("http:429" | "grpc:8")) => Self::BackendSlow,
            _ => Self::BackendUnreachable,
        }
    }
}

fn is_slow(exporter: &ExporterStatus) -> bool {
    let waits = |past: &EventTime| past.age_seconds >= SLOW_QUEUE_AGE_SECS;
    // A destination without responses has no latency.
    let silent = exporter.last_success.as_ref().is_none_or(waits);
    let slow = silent || exporter.latency_seconds.is_some_and(|seconds| seconds >= SLOW_RESPONSE_SECS);
    exporter.in_flight > 0 && slow && exporter.oldest.as_ref().is_some_and(waits)
}

fn is_filling(used: u64, limit: u64) -> bool {
    limit > 0 && used.saturating_mul(10) >= limit.saturating_mul(FILLING_TENTHS)
}
