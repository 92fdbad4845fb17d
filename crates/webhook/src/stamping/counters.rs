//! The counters of the stamping webhook.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kubewake_runtime::{
    label_enum,
    lock::Mutex,
    prometheus::{MetricKind, MetricsText},
};

use crate::counters::{CounterRow, MaintenanceCounters};

label_enum! {
    /// The outcome of a call.
    pub enum CallOutcome {
        /// The object got a new context.
        Stamped => "stamped",
        /// The writer's own context was kept.
        Kept => "kept",
        /// A context that the update lost was restored.
        Restored => "restored",
        /// The annotations were already right.
        Unchanged => "unchanged",
        /// The target is never stamped: a subresource, a deletion, a review.
        Skipped => "skipped",
        /// The call failed, and the object passed unchanged.
        Failed => "failed",
    }
}

label_enum! {
    /// The failure of a call whose object passed unchanged.
    pub enum CallTrouble {
        /// The body is too long.
        TooLarge => "too_large",
        /// The body did not arrive in time.
        TooSlow => "too_slow",
        /// Too many calls are in flight.
        Busy => "busy",
        /// The body is not JSON, or not an `AdmissionReview` of version 1.
        NoReview => "no_review",
        /// The object is invalid.
        BadObject => "bad_object",
        /// The object's annotations have no room for a context.
        NoRoom => "no_room",
    }
}

/// The counters of a stamping webhook.
#[derive(Debug, Default)]
pub struct StampCounters {
    calls: CounterRow,
    troubles: CounterRow,
    unreadable: AtomicU64,
    maintenance: Arc<MaintenanceCounters>,
    /// Warnings about selected resources that are not served.
    unserved: Mutex<Vec<String>>,
}

impl StampCounters {
    /// Counts the outcome of a call.
    pub fn count_call(&self, outcome: CallOutcome) {
        self.calls.increment(outcome as usize);
    }

    /// Counts a failed call and returns the number of such failures.
    pub fn count_trouble(&self, trouble: CallTrouble) -> u64 {
        self.count_call(CallOutcome::Failed);
        self.troubles.increment(trouble as usize)
    }

    /// The counters of certificates and registrations.
    pub fn maintenance(&self) -> &Arc<MaintenanceCounters> {
        &self.maintenance
    }

    /// Sets the warnings about selected resources that no API server has, one sentence each.
    pub fn note_unserved(&self, sentences: Vec<String>) {
        *self.unserved.lock() = sentences;
    }

    /// The warnings about selected resources that no API server has.
    pub fn unserved(&self) -> Vec<String> {
        self.unserved.lock().clone()
    }

    /// Counts annotations under known keys whose value could not be read.
    pub fn count_unreadable(&self, annotations: u32) {
        self.unreadable.fetch_add(annotations.into(), Ordering::Relaxed);
    }

    /// The number of unreadable annotations.
    pub fn unreadable_annotations(&self) -> u64 {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// The number of calls with this outcome.
    pub fn calls(&self, outcome: CallOutcome) -> u64 {
        self.calls.value_at(outcome as usize)
    }

    /// The number of failures of this type.
    pub fn troubles(&self, trouble: CallTrouble) -> u64 {
        self.troubles.value_at(trouble as usize)
    }

    /// Renders the counters for Prometheus.
    pub fn render_metrics(&self) -> String {
        let mut page = MetricsText::default();
        let outcomes = CallOutcome::ALL.iter().map(|outcome| outcome.name());
        let help = "Admission requests, by outcome.";
        self.calls.write(&mut page, "kubewake_webhook_calls_total", help, "outcome", outcomes);
        let reasons = CallTrouble::ALL.iter().map(|trouble| trouble.name());
        let help = "Failed admission requests, by reason. Their objects were admitted unchanged.";
        self.troubles.write(&mut page, "kubewake_webhook_troubles_total", help, "reason", reasons);
        let help = "Trace context annotations whose value could not be parsed.";
        let unreadable = self.unreadable_annotations();
        page.single("kubewake_webhook_garbage_total", MetricKind::Counter, help, unreadable);
        let help = "Selected resources that the API server does not serve.";
        let unserved = self.unserved().len();
        page.single("kubewake_webhook_unserved_selections", MetricKind::Gauge, help, unserved);
        self.maintenance.write_metrics(&mut page, "kubewake_webhook");
        page.into_text()
    }
}
