//! The counters of certificates and registrations, for any webhook.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use kubewake_runtime::{
    label_enum,
    prometheus::{LabelSet, MetricKind, MetricsText},
};

/// At least the number of variants of each label enum.
const MAX_LABELS: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct CounterRow([AtomicU64; MAX_LABELS]);

impl CounterRow {
    pub(crate) fn value_at(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Increments a counter and returns its new value.
    pub(crate) fn increment(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Writes the counters as a family, in the order of these values of their label.
    pub(crate) fn write(
        &self,
        page: &mut MetricsText,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = &'static str>,
    ) {
        let mut family = page.family(name, MetricKind::Counter, help);
        for (place, value) in values.into_iter().enumerate() {
            family.sample(&LabelSet::new(&[(label, value)]), self.value_at(place));
        }
    }
}

label_enum! {
    /// An event in the maintenance of certificates and registrations.
    pub enum MaintenanceEvent {
        /// The certificates were renewed.
        CertificatesRenewed => "certificates_renewed",
        /// The renewal of certificates failed.
        CertificatesFailed => "certificates_failed",
        /// A registration was written.
        Registered => "registered",
        /// A registration could not be written.
        RegistrationFailed => "registration_failed",
        /// Another webhook had overwritten a registration.
        Contended => "contended",
    }
}

/// The counters of certificates and registrations.
#[derive(Debug, Default)]
pub struct MaintenanceCounters {
    events: CounterRow,
    registered: AtomicU8,
}

/// A registration state; 0 means that it is unknown.
const STATE_REGISTERED: u8 = 1;
const STATE_LOST: u8 = 2;

impl MaintenanceCounters {
    /// Counts an event and returns the number of such events.
    pub fn count(&self, what: MaintenanceEvent) -> u64 {
        self.events.increment(what as usize)
    }

    /// The number of such events.
    pub fn times(&self, what: MaintenanceEvent) -> u64 {
        self.events.value_at(what as usize)
    }

    /// Records whether all registrations are in force.
    pub fn note_registered(&self, registered: bool) {
        self.registered.store(if registered { STATE_REGISTERED } else { STATE_LOST }, Ordering::Relaxed);
    }

    /// Whether all registrations are in force.
    pub fn is_registered(&self) -> bool {
        self.registered.load(Ordering::Relaxed) == STATE_REGISTERED
    }

    /// Whether a registration is known not to be in force.
    pub fn is_lost(&self) -> bool {
        self.registered.load(Ordering::Relaxed) == STATE_LOST
    }

    /// Renders the counters for Prometheus, with this prefix in their names.
    pub fn render_metrics(&self, prefix: &str) -> String {
        let mut page = MetricsText::default();
        self.write_metrics(&mut page, prefix);
        page.into_text()
    }

    pub(crate) fn write_metrics(&self, page: &mut MetricsText, prefix: &str) {
        let help = "Events in the maintenance of certificates and webhook registrations.";
        let names = MaintenanceEvent::ALL.iter().map(|event| event.name());
        self.events.write(page, &format!("{prefix}_upkeep_total"), help, "event", names);
        let help = "Whether all webhook registrations are in force (1) or not (0).";
        page.single(&format!("{prefix}_registered"), MetricKind::Gauge, help, u8::from(self.is_registered()));
    }
}
