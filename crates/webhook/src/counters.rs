//! The counters of certificates and registrations, for any webhook.

use std::{
    fmt::{self, Write as _},
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

/// The label values of one counter.
pub(crate) trait CounterLabel: Copy + 'static {
    const ALL: &'static [Self];
    fn name(self) -> &'static str;
}

macro_rules! labels {
    ($(#[$outer:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident => $name:literal),* $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum { $($(#[$doc])* $variant),* }

        impl CounterLabel for $enum {
            const ALL: &'static [Self] = &[$(Self::$variant),*];
            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }

        impl $enum {
            /// The name in metrics and spans.
            pub fn name(self) -> &'static str {
                CounterLabel::name(self)
            }
        }
    };
}

pub(crate) use labels;

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

    pub(crate) fn render<L: CounterLabel>(&self, out: &mut String, name: &str, help: &str, label: &str) -> fmt::Result {
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter")?;
        let mut all = L::ALL.iter().enumerate();
        all.try_for_each(|(place, one)| writeln!(out, "{name}{{{label}=\"{}\"}} {}", one.name(), self.value_at(place)))
    }
}

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
        let name = format!("{prefix}_upkeep_total");
        let help = "Events in the maintenance of certificates and webhook registrations.";
        // Writing to a string cannot fail.
        let _ = self.events.render::<MaintenanceEvent>(&mut out, &name, help, "event");
        let name = format!("{prefix}_registered");
        let help = "Whether all webhook registrations are in force (1) or not (0).";
        let now = u8::from(self.is_registered());
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {now}");
        out
    }
}
