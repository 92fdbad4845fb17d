//! Counters of admission reviews by outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use kubewake_runtime::{
    label_enum,
    prometheus::{LabelSet, MetricKind, MetricsText},
};

label_enum! {
    /// The outcome of an admission review.
    pub(super) enum ReviewOutcome {
        Allowed => "allowed",
        Invalid => "invalid",
        Forbidden => "forbidden",
        Failed => "failed",
    }
}

#[derive(Debug, Default)]
pub(super) struct ReviewCounters([AtomicU64; ReviewOutcome::ALL.len()]);

impl ReviewCounters {
    pub(super) fn count(&self, outcome: ReviewOutcome) {
        if let Some(count) = self.0.get(outcome as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn render_metrics(&self) -> String {
        let mut page = MetricsText::default();
        let help = "Admission requests, by outcome.";
        let mut family = page.family("kubewake_operator_admissions_total", MetricKind::Counter, help);
        for (outcome, count) in ReviewOutcome::ALL.iter().zip(&self.0) {
            family.sample(&LabelSet::new(&[("outcome", outcome.name())]), count.load(Ordering::Relaxed));
        }
        page.into_text()
    }
}
