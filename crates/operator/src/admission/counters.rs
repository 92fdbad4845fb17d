//! What became of calls.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Allowed,
    Invalid,
    Forbidden,
    Failed,
}

/// In the order of the enum.
const NAMES: [&str; 4] = ["allowed", "invalid", "forbidden", "failed"];

#[derive(Debug, Default)]
pub(super) struct Counters([AtomicU64; NAMES.len()]);

impl Counters {
    pub(super) fn called(&self, outcome: Outcome) {
        if let Some(count) = self.0.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// For Prometheus.
    pub(super) fn page(&self) -> String {
        let name = "kubewake_operator_admissions_total";
        let mut out = format!("# HELP {name} Calls of API servers, by what became of them.\n# TYPE {name} counter\n");
        for (outcome, count) in NAMES.iter().zip(&self.0) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name}{{outcome=\"{outcome}\"}} {}", count.load(Ordering::Relaxed));
        }
        out
    }
}
