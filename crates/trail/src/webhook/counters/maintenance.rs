//! The counters of certificates and registrations, for any webhook.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU8, Ordering},
};

use super::{CounterLabel, CounterRow};

labels! {
    /// An event in the maintenance of certificates and registrations.
    MaintenanceEvent {
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
        let mut out = String::new();
        let (events, help) =
            (format!("{prefix}_upkeep_total"), "Events in the maintenance of certificates and webhook registrations.");
        // Writing to a string cannot fail.
        let _ = self.events.render::<MaintenanceEvent>(&mut out, &events, help, "event");
        let (name, help) =
            (format!("{prefix}_registered"), "Whether all webhook registrations are in force (1) or not (0).");
        let now = u8::from(self.is_registered());
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {now}");
        out
    }
}
