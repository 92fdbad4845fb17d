//! What a webhook did, counted.

use std::{
    fmt::{self, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Names that the counters of one sort have on the page.
trait Label: Copy + 'static {
    const ALL: &'static [Self];
    fn name(self) -> &'static str;
}

macro_rules! labels {
    ($(#[$outer:meta])* $enum:ident { $($(#[$doc:meta])* $variant:ident => $name:literal),* $(,)? }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum { $($(#[$doc])* $variant),* }

        impl Label for $enum {
            const ALL: &'static [Self] = &[$(Self::$variant),*];
            fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }

        impl $enum {
            /// As it is called in metrics and spans.
            pub fn name(self) -> &'static str {
                Label::name(self)
            }
        }
    };
}

mod upkeep;

pub use upkeep::{UpkeepCounters, Upkept};

labels! {
    /// What became of a call.
    Outcome {
        /// The object got a context.
        Stamped => "stamped",
        /// The writer's own context stays.
        Kept => "kept",
        /// A context that the update lost is there again.
        Restored => "restored",
        /// There was nothing to do.
        Unchanged => "unchanged",
        /// It is nothing that is ever stamped: a subresource, a deletion, a review.
        Skipped => "skipped",
        /// Something was wrong, and the object was let through as it is.
        Failed => "failed",
    }
}

labels! {
    /// What was wrong with a call that was let through unchanged.
    Trouble {
        /// The request is too long.
        TooLarge => "too_large",
        /// It took too long to arrive.
        TooSlow => "too_slow",
        /// Too much is under way.
        Busy => "busy",
        /// It is not JSON, or no `AdmissionReview` of version 1.
        NoReview => "no_review",
        /// The object in it makes no sense.
        BadObject => "bad_object",
        /// The object's annotations have no room for a context.
        NoRoom => "no_room",
    }
}

/// More than any of the enums has.
const MOST: usize = 8;

#[derive(Debug, Default)]
struct Row([AtomicU64; MOST]);

impl Row {
    fn at(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Gives how many there are now.
    fn add(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, |count| count.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn page<L: Label>(&self, out: &mut String, name: &str, help: &str, label: &str) -> fmt::Result {
        writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter")?;
        let mut all = L::ALL.iter().enumerate();
        all.try_for_each(|(place, one)| writeln!(out, "{name}{{{label}=\"{}\"}} {}", one.name(), self.at(place)))
    }
}

/// All counters of a webhook.
#[derive(Debug, Default)]
pub struct Counters {
    calls: Row,
    troubles: Row,
    garbage: AtomicU64,
    upkeep: Arc<UpkeepCounters>,
    /// What is selected and not served, in words.
    unserved: Mutex<Vec<String>>,
}

impl Counters {
    /// Counts a call.
    pub fn called(&self, outcome: Outcome) {
        self.calls.add(outcome as usize);
    }

    /// Counts a call that was let through because something was wrong, and says how many there are now.
    pub fn troubled(&self, trouble: Trouble) -> u64 {
        self.called(Outcome::Failed);
        self.troubles.add(trouble as usize)
    }

    /// What the upkeep did.
    pub fn upkeep(&self) -> &Arc<UpkeepCounters> {
        &self.upkeep
    }

    /// Notes what is selected although no API server has it, a sentence for each.
    pub fn note_unserved(&self, sentences: Vec<String>) {
        *self.unserved.lock().unwrap_or_else(PoisonError::into_inner) = sentences;
    }

    /// What is selected although no API server has it.
    pub fn unserved(&self) -> Vec<String> {
        self.unserved.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts annotations that should hold a context and hold nothing that can be read.
    pub fn ignored(&self, annotations: u32) {
        self.garbage.fetch_add(annotations.into(), Ordering::Relaxed);
    }

    /// How many annotations were ignored.
    pub fn garbage(&self) -> u64 {
        self.garbage.load(Ordering::Relaxed)
    }

    /// How many calls ended so.
    pub fn calls(&self, outcome: Outcome) -> u64 {
        self.calls.at(outcome as usize)
    }

    /// How often this was wrong.
    pub fn troubles(&self, trouble: Trouble) -> u64 {
        self.troubles.at(trouble as usize)
    }

    /// The page for Prometheus.
    pub fn page(&self) -> String {
        let mut out = String::new();
        let calls = ("kubewake_webhook_calls_total", "Calls of API servers, by what became of them.", "outcome");
        let troubles = ("kubewake_webhook_troubles_total", "Calls let through unchanged, by what was wrong.", "reason");
        // Writing to a string cannot fail.
        let _ = self.calls.page::<Outcome>(&mut out, calls.0, calls.1, calls.2);
        let _ = self.troubles.page::<Trouble>(&mut out, troubles.0, troubles.1, troubles.2);
        let garbage = (
            "kubewake_webhook_garbage_total",
            "Annotations that should hold a context and hold nothing that can be read.",
        );
        let _ = writeln!(out, "# HELP {0} {1}\n# TYPE {0} counter\n{0} {2}", garbage.0, garbage.1, self.garbage());
        let unserved =
            ("kubewake_webhook_unserved_selections", "Selected resources that the API server does not have.");
        let count = self.unserved().len();
        let _ = writeln!(out, "# HELP {0} {1}\n# TYPE {0} gauge\n{0} {count}", unserved.0, unserved.1);
        out.push_str(&self.upkeep.page("kubewake_webhook"));
        out
    }
}
