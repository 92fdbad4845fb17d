//! What samplers count: decisions, by what made them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Decisions of one policy.
#[derive(Debug, Default)]
pub struct Decisions {
    kept: AtomicU64,
    dropped: AtomicU64,
}

impl Decisions {
    /// Counts items.
    pub fn add(&self, kept: u64, dropped: u64) {
        for (cell, count) in [(&self.kept, kept), (&self.dropped, dropped)] {
            // Whoever has nothing to add need not take the counter away from another core.
            if count > 0 {
                cell.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    /// Items that were kept.
    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Items that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The decisions of a sampler by policy. Names are those of the code and of the document, never a sender's.
#[derive(Debug, Default)]
pub struct SamplerStats(Mutex<BTreeMap<String, Arc<Decisions>>>);

impl SamplerStats {
    /// The counters of a policy.
    pub fn of(&self, policy: &str) -> Arc<Decisions> {
        let mut policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        policies.entry(policy.to_owned()).or_default().clone()
    }

    /// All policies that there are or were.
    pub fn all(&self) -> Vec<(String, Arc<Decisions>)> {
        let policies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        policies.iter().map(|(name, decisions)| (name.clone(), decisions.clone())).collect()
    }
}
