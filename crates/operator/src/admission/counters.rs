//! Counters of admission reviews by outcome.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

/// The outcome of an admission review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewOutcome {
    Allowed,
    Invalid,
    Forbidden,
    Failed,
}

/// The label values, in the order of [`ReviewOutcome`].
const OUTCOME_NAMES: [&str; 4] = ["allowed", "invalid", "forbidden", "failed"];

#[derive(Debug, Default)]
pub(super) struct ReviewCounters([AtomicU64; OUTCOME_NAMES.len()]);

impl ReviewCounters {
    pub(super) fn count(&self, outcome: ReviewOutcome) {
        if let Some(count) = self.0.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn render_metrics(&self) -> String {
        let name = "kubewake_operator_admissions_total";
        let mut out = format!("# HELP {name} Admission requests, by outcome.\n# TYPE {name} counter\n");
        for (outcome, count) in OUTCOME_NAMES.iter().zip(&self.0) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{name}{{outcome=\"{outcome}\"}} {}", count.load(Ordering::Relaxed));
        }
        out
    }
}
