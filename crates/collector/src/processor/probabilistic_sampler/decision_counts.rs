//! Counts of decisions by policy.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kubewake_config::ComponentId;
use kubewake_otlp::Signal;

use super::sampler::{ItemDecision, SamplingProblem};
use crate::core::{PolicyDecisions, SamplerStats};

/// The policy that decided an item, with the Collector's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SamplerPolicy {
    TraceIdHash,
    TraceIdW3c,
    Randomness,
    Priority,
    Missing,
    /// The attribute named in the settings.
    Attribute,
}

const POLICY_NAMES: [&str; 5] =
    ["trace_id_hash", "trace_id_w3c", "sampling_randomness", "sampling_priority", "missing_randomness"];

/// The counters of each policy.
pub(super) struct PolicyCounters([Arc<PolicyDecisions>; 6]);

impl PolicyCounters {
    pub(super) fn new(stats: &SamplerStats, attribute: Option<&str>) -> Self {
        let [hash, w3c, randomness, priority, missing] = POLICY_NAMES.map(|name| stats.policy(name));
        // Without a configured attribute no item is decided by one.
        let attribute = attribute.map_or_else(Arc::default, |name| stats.policy(name));
        Self([hash, w3c, randomness, priority, missing, attribute])
    }

    pub(super) fn add(&self, tally: &DecisionTally) {
        for (decisions, [dropped, kept]) in self.0.iter().zip(tally.decided) {
            decisions.add(kept, dropped);
        }
    }
}

/// Decisions of one request.
#[derive(Default)]
pub(super) struct DecisionTally {
    /// By policy: dropped and kept.
    decided: [[u64; 2]; 6],
    troubles: [bool; SamplingProblem::ALL.len()],
}

impl DecisionTally {
    /// Counts a decision on so many items; returns whether it keeps them.
    pub(super) fn note(&mut self, verdict: ItemDecision, items: u64) -> bool {
        let cells = self.decided.get_mut(verdict.policy as usize);
        if let Some(count) = cells.and_then(|cells| cells.get_mut(usize::from(verdict.kept))) {
            *count += items;
        }
        if let Some(seen) = verdict.problem.and_then(|trouble| self.troubles.get_mut(trouble as usize)) {
            *seen = true;
        }
        verdict.kept
    }
}

/// Problems that were logged already: each is logged once, as its sender repeats it.
pub(super) struct SamplerWarnings {
    processor: ComponentId,
    logged: [AtomicBool; SamplingProblem::ALL.len()],
}

impl SamplerWarnings {
    /// The warnings of a processor, none logged yet.
    pub(super) fn for_processor(processor: &ComponentId) -> Self {
        Self { processor: processor.clone(), logged: Default::default() }
    }

    pub(super) fn log_once(&self, tally: &DecisionTally, signal: Signal, fail_closed: bool) {
        for ((trouble, seen), told) in SamplingProblem::ALL.iter().zip(tally.troubles).zip(&self.logged) {
            if seen && !told.swap(true, Ordering::Relaxed) {
                let done = if fail_closed { "dropped" } else { "kept" };
                tracing::warn!(processor = %self.processor, %signal, reason = trouble.message(), done,
                    "failed to sample some items by probability");
            }
        }
    }
}
