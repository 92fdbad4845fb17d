//! What was decided, by what.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kubewake_config::ComponentId;
use kubewake_otlp::Signal;

use super::decide::{Trouble, Verdict};
use crate::core::{Decisions, SamplerStats};

/// What decided on an item, as the Collector names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    TraceIdHash,
    TraceIdW3c,
    Randomness,
    Priority,
    Missing,
    /// The attribute that the settings name.
    Attribute,
}

const NAMES: [&str; 5] =
    ["trace_id_hash", "trace_id_w3c", "sampling_randomness", "sampling_priority", "missing_randomness"];

/// The counters of each policy.
pub(super) struct Counts([Arc<Decisions>; 6]);

impl Counts {
    pub(super) fn new(stats: &SamplerStats, attribute: Option<&str>) -> Self {
        let [hash, w3c, randomness, priority, missing] = NAMES.map(|name| stats.of(name));
        // Without an attribute nothing is decided by one.
        let attribute = attribute.map_or_else(Arc::default, |name| stats.of(name));
        Self([hash, w3c, randomness, priority, missing, attribute])
    }

    pub(super) fn add(&self, tally: &Tally) {
        for (decisions, [dropped, kept]) in self.0.iter().zip(tally.decided) {
            decisions.add(kept, dropped);
        }
    }
}

/// What was decided in one request.
#[derive(Default)]
pub(super) struct Tally {
    /// By policy: dropped and kept.
    decided: [[u64; 2]; 6],
    troubles: [bool; Trouble::ALL.len()],
}

impl Tally {
    /// Notes a decision on so many items, and says whether it was to keep them.
    pub(super) fn note(&mut self, verdict: Verdict, items: u64) -> bool {
        let cells = self.decided.get_mut(verdict.policy as usize);
        if let Some(count) = cells.and_then(|cells| cells.get_mut(usize::from(verdict.kept))) {
            *count += items;
        }
        if let Some(seen) = verdict.trouble.and_then(|trouble| self.troubles.get_mut(trouble as usize)) {
            *seen = true;
        }
        verdict.kept
    }
}

/// Troubles that were told already: each is told once, as a sender that makes it makes it again and again.
pub(super) struct Warnings {
    processor: ComponentId,
    told: [AtomicBool; Trouble::ALL.len()],
}

impl Warnings {
    /// Those of a processor, of which none was told yet.
    pub(super) fn of(processor: &ComponentId) -> Self {
        Self { processor: processor.clone(), told: Default::default() }
    }

    pub(super) fn tell(&self, tally: &Tally, signal: Signal, fail_closed: bool) {
        for ((trouble, seen), told) in Trouble::ALL.iter().zip(tally.troubles).zip(&self.told) {
            if seen && !told.swap(true, Ordering::Relaxed) {
                let done = if fail_closed { "dropped" } else { "kept" };
                tracing::warn!(processor = %self.processor, %signal, reason = trouble.words(), done,
                    "cannot sample some items by probability");
            }
        }
    }
}
