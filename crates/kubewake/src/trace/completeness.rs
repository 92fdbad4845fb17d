//! Decides whether more spans of a trace are expected.
//!
//! Each process exports its spans independently, a second or more after they ended. An early look at a trace
//! shows a part of it: spans whose parents are missing, or a request without its effects.
//!
//! *Guaranteed*: a trace that is older than [`MISSING_PARENT_TIMEOUT`] is never waited for, and no trace longer
//! than that. *Not done*: certainty that a trace is complete, which is impossible.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use super::nanoseconds;

/// Exporters wait for a second, and so does the collector.
const SETTLE_PERIOD: Duration = Duration::from_secs(2);
/// The webhook exports every five seconds, as all programs do by default. Parents that are missing after this
/// time will not arrive.
const MISSING_PARENT_TIMEOUT: Duration = Duration::from_secs(7);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TraceProgress {
    #[serde(deserialize_with = "nanoseconds")]
    start: u64,
    duration: u64,
    warnings: Vec<WarningKindDocument>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WarningKindDocument {
    kind: String,
}

/// Whether to fetch the trace again, after having waited for `waited`.
pub(super) fn is_incomplete(trace: &Value, now: SystemTime, waited: Duration) -> bool {
    let Ok(trace) = TraceProgress::deserialize(trace) else { return false };
    let patience = if trace.warnings.iter().any(|it| it.kind == "missing_parent") {
        MISSING_PARENT_TIMEOUT
    } else {
        SETTLE_PERIOD
    };
    let end = Duration::from_nanos(trace.start.saturating_add(trace.duration));
    // An end in the future, by a wrong clock, counts as now.
    let age = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(end);
    age < patience && waited < patience
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_has_just_happened_is_waited_for_and_nothing_else() {
        let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let ended = |seconds: u64, kind: &str| {
            let start = (1_700_000_000 - seconds) * 1_000_000_000 - 5;
            json!({"start": start.to_string(), "duration": 5, "warnings": [{"kind": kind, "message": ""}]})
        };
        let awaited =
            |ago: u64, kind: &str, waited: u64| is_incomplete(&ended(ago, kind), now, Duration::from_secs(waited));
        assert!(awaited(1, "clock_skew", 0) && !awaited(2, "clock_skew", 0));
        assert!(awaited(6, "missing_parent", 0) && !awaited(7, "missing_parent", 0));
        assert!(!awaited(0, "clock_skew", 2) && awaited(0, "missing_parent", 2) && !awaited(0, "missing_parent", 7));
        let future = json!({"start": u64::MAX.to_string(), "duration": u64::MAX});
        assert!(is_incomplete(&future, now, Duration::ZERO) && !is_incomplete(&future, now, MISSING_PARENT_TIMEOUT));
        assert!(!is_incomplete(&json!("no trace"), now, Duration::ZERO));
    }
}
