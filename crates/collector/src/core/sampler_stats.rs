//! Counters of samplers: decisions by policy.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use kubewake_runtime::lock::Mutex;

#[derive(Debug, Default)]
pub struct PolicyDecisions {
    kept: AtomicU64,
    dropped: AtomicU64,
}

impl PolicyDecisions {
    pub fn add(&self, kept: u64, dropped: u64) {
        for (cell, count) in [(&self.kept, kept), (&self.dropped, dropped)] {
            // Avoids a write to a shared cache line when there is nothing to add.
            if count > 0 {
                cell.fetch_add(count, Ordering::Relaxed);
            }
        }
    }

    pub fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The decisions of a sampler by policy. Names come from the code and the document, never from a sender.
#[derive(Debug, Default)]
pub struct SamplerStats(Mutex<BTreeMap<String, Arc<PolicyDecisions>>>);

impl SamplerStats {
    pub fn policy(&self, policy: &str) -> Arc<PolicyDecisions> {
        let mut policies = self.0.lock();
        policies.entry(policy.to_owned()).or_default().clone()
    }

    /// All policies, current and former.
    pub fn policies(&self) -> Vec<(String, Arc<PolicyDecisions>)> {
        let policies = self.0.lock();
        policies.iter().map(|(name, decisions)| (name.clone(), decisions.clone())).collect()
    }
}
