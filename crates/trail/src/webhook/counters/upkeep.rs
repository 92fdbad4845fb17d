//! What the upkeep of any webhook did, counted.

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU8, Ordering},
};

use super::{Label, Row};

labels! {
    /// What the upkeep did.
    Upkept {
        /// New certificates.
        CertificatesRenewed => "certificates_renewed",
        /// No new certificates.
        CertificatesFailed => "certificates_failed",
        /// A registration was written.
        Registered => "registered",
        /// A registration could not be written.
        RegistrationFailed => "registration_failed",
        /// Another webhook had written over a registration.
        Contended => "contended",
    }
}

/// The counters of certificates and registrations.
#[derive(Debug, Default)]
pub struct UpkeepCounters {
    events: Row,
    registered: AtomicU8,
}

/// Whether API servers know all that they should; 0 while nobody has looked.
const REGISTERED: u8 = 1;
const LOST: u8 = 2;

impl UpkeepCounters {
    /// Counts, and says how many there are now.
    pub fn count(&self, what: Upkept) -> u64 {
        self.events.add(what as usize)
    }

    /// How often this happened.
    pub fn times(&self, what: Upkept) -> u64 {
        self.events.at(what as usize)
    }

    /// Notes whether API servers know all that they should.
    pub fn note_registered(&self, registered: bool) {
        self.registered.store(if registered { REGISTERED } else { LOST }, Ordering::Relaxed);
    }

    /// Whether API servers know all that they should.
    pub fn is_registered(&self) -> bool {
        self.registered.load(Ordering::Relaxed) == REGISTERED
    }

    /// Whether somebody has looked, and API servers do not know all that they should.
    pub fn is_lost(&self) -> bool {
        self.registered.load(Ordering::Relaxed) == LOST
    }

    /// The page for Prometheus, with names that begin so.
    pub fn page(&self, prefix: &str) -> String {
        let mut out = String::new();
        let (events, help) = (format!("{prefix}_upkeep_total"), "Certificates and registrations, by what was done.");
        // Writing to a string cannot fail.
        let _ = self.events.page::<Upkept>(&mut out, &events, help, "event");
        let (name, help) = (format!("{prefix}_registered"), "Whether API servers know the webhook as it is.");
        let now = u8::from(self.is_registered());
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {now}");
        out
    }
}
