//! Whether more of a trace is on its way.
//!
//! Each process sends its spans on its own, a second or more after they ended. Whoever looks at once sees a part: spans whose parents are missing, or a
//! request without what came of it.
//!
//! *Guaranteed*: a trace that is older than [`LATE`] is never waited for, and no trace longer than that. *Not done*: nobody can know that a trace is whole.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::Value;

use super::nanoseconds;

/// Senders wait for a second, and so does the collector.
const SETTLED: Duration = Duration::from_secs(2);
/// The webhook sends every five seconds, as all programs do that are not told otherwise. Parents that have not come then do not come.
const LATE: Duration = Duration::from_secs(7);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Trace {
    #[serde(deserialize_with = "nanoseconds")]
    start: u64,
    duration: u64,
    warnings: Vec<Warning>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Warning {
    kind: String,
}

/// Whether to look again, after having waited for so long.
pub(super) fn is_awaited(trace: &Value, now: SystemTime, waited: Duration) -> bool {
    let Ok(trace) = Trace::deserialize(trace) else { return false };
    let patience = if trace.warnings.iter().any(|it| it.kind == "missing_parent") { LATE } else { SETTLED };
    let end = Duration::from_nanos(trace.start.saturating_add(trace.duration));
    // What ends in the future by a wrong clock is as young as it gets.
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
            |ago: u64, kind: &str, waited: u64| is_awaited(&ended(ago, kind), now, Duration::from_secs(waited));
        assert!(awaited(1, "clock_skew", 0) && !awaited(2, "clock_skew", 0));
        assert!(awaited(6, "missing_parent", 0) && !awaited(7, "missing_parent", 0));
        assert!(!awaited(0, "clock_skew", 2) && awaited(0, "missing_parent", 2) && !awaited(0, "missing_parent", 7));
        let future = json!({"start": u64::MAX.to_string(), "duration": u64::MAX});
        assert!(is_awaited(&future, now, Duration::ZERO) && !is_awaited(&future, now, LATE));
        assert!(!is_awaited(&json!("no trace"), now, Duration::ZERO));
    }
}
