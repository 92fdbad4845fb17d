//! One word for how a pipeline is doing, for whoever has room for no more: a condition, an alert, a person in a hurry.
//!
//! A pure function of the rest of the document, so that everybody can see why. It speaks of this moment and forgets
//! nothing but what is older than the interval of the health check; whoever wants it calmer waits for it to stay.

use kubewake_config::model::PipelineCheck;
use serde::Serialize;

use super::{ExporterStatus, Past, PipelineStatus, State};
use crate::core::ErrorClass;

/// What waits longer than this waits for its destination: requests are answered in milliseconds, and the time that
/// batching takes is shorter.
const SLOW_WAIT: f64 = 5.0;
/// Requests that take longer than this are slow.
const SLOW_ANSWER: f64 = 1.0;
/// A buffer is filling from here on, in parts of ten.
const FILLING: u64 = 8;

/// How a pipeline is doing, best first. The worst that holds is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Diagnosis {
    /// Nothing came in within the interval, and nothing is held.
    NoData,
    /// Data comes in, and nothing stands in its way.
    Delivering,
    /// A queue or the memory is nearly full, or memory was too short for a request within the interval.
    BufferFilling,
    /// Nothing fails, and what is held has waited long; or the destination says that it cannot follow.
    BackendSlow,
    /// Data was lost within the interval, and attempts do not fail at the moment, or only because the destination cannot
    /// follow.
    DataDropped,
    /// A destination cannot be reached, does not answer in time, or is not there for now.
    BackendUnreachable,
    /// A destination answers, and does not want us or our data.
    BackendRefuses,
}

impl Diagnosis {
    pub(super) fn of(pipeline: &PipelineStatus, check: &PipelineCheck) -> Self {
        let lately = |at: &Past| at.age_seconds < check.interval.as_secs_f64();
        let exporters = pipeline.exporters.values().map(Self::of_exporter);
        let worst = exporters.max().unwrap_or(Self::NoData);
        let full = pipeline.memory.is_some_and(|memory| is_filling(memory.used_bytes, memory.limit_bytes));
        let signs = [
            (pipeline.last_drop.as_ref().is_some_and(|drop| lately(&drop.at)), Self::DataDropped),
            (full || pipeline.last_refused.as_ref().is_some_and(lately), Self::BufferFilling),
            (pipeline.last_received.as_ref().is_some_and(lately), Self::Delivering),
        ];
        signs.into_iter().filter(|(holds, _)| *holds).map(|(_, sign)| sign).fold(worst, Self::max)
    }

    fn of_exporter(exporter: &ExporterStatus) -> Self {
        match exporter.state {
            State::Retrying | State::Failing | State::Stalled => Self::of_failure(exporter),
            State::Idle => Self::NoData,
            State::Ok if is_slow(exporter) => Self::BackendSlow,
            State::Ok if is_filling(exporter.queue_size, exporter.queue_capacity) => Self::BufferFilling,
            State::Ok => Self::Delivering,
        }
    }

    fn of_failure(exporter: &ExporterStatus) -> Self {
        let class = ErrorClass::ALL.iter().find(|class| class.name() == exporter.last_error);
        match (class, exporter.last_error_code.as_deref()) {
            (Some(ErrorClass::Authentication | ErrorClass::Refused | ErrorClass::Protocol), _) => Self::BackendRefuses,
            // It asks to come back later, since it has enough to do; other codes of this class say that nobody is there.
            (Some(ErrorClass::Throttled), Some("http:429" | "grpc:8")) => Self::BackendSlow,
            _ => Self::BackendUnreachable,
        }
    }
}

fn is_slow(exporter: &ExporterStatus) -> bool {
    let waits = |past: &Past| past.age_seconds >= SLOW_WAIT;
    // A destination that says nothing has no latency.
    let silent = exporter.last_success.as_ref().is_none_or(waits);
    let slow = silent || exporter.latency_seconds.is_some_and(|seconds| seconds >= SLOW_ANSWER);
    exporter.in_flight > 0 && slow && exporter.oldest.as_ref().is_some_and(waits)
}

fn is_filling(used: u64, limit: u64) -> bool {
    limit > 0 && used.saturating_mul(10) >= limit.saturating_mul(FILLING)
}
