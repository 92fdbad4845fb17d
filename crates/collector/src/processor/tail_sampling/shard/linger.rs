//! Bytes of dropped traces, held for an error that comes late.
//!
//! *Guarantees.* It is a cache: whoever needs the memory takes it, the traces that have the least time left first. A trace either lingers with all
//! that is held for it, or with nothing.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// What lingers in a shard.
pub(super) struct Lingering {
    /// The segments that are held, once for each trace, by the tick until which they are.
    until: BTreeMap<u64, Vec<u32>>,
    /// What was to linger until that tick, or a sooner one, is held no longer.
    ended: u64,
    /// Something lingers in this shard or another one.
    any: Arc<AtomicBool>,
}

impl Lingering {
    pub(super) fn new(any: Arc<AtomicBool>) -> Self {
        Self { until: BTreeMap::new(), ended: 0, any }
    }

    /// Whether what is to linger until that tick still does, or can.
    pub(super) fn lasts(&self, until: u64) -> bool {
        until > self.ended
    }

    /// Holds segments until that tick, for which somebody has held them already.
    pub(super) fn hold(&mut self, until: u64, segments: impl IntoIterator<Item = u32>) {
        self.until.entry(until).or_default().extend(segments);
        // Seldom written, as all shards look at it.
        if !self.any.load(Ordering::Relaxed) {
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// The tick at which the next of it ends.
    pub(super) fn first(&self) -> Option<u64> {
        self.until.keys().next().copied()
    }

    /// The segments that were held until that tick or a sooner one, some of them at a time; `None` when none are left.
    pub(super) fn end(&mut self, until: u64) -> Option<Vec<u32>> {
        let slot = self.until.first_entry().filter(|slot| *slot.key() <= until)?;
        self.ended = self.ended.max(*slot.key());
        Some(slot.remove())
    }
}
