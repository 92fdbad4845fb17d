//! Bytes of dropped traces, held for an error that comes late.
//!
//! *Guaranteed*: this is a cache, whose memory can be reclaimed at any time, from the traces with the least
//! time left first. A trace lingers either with all its held bytes, or with none.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The lingering traces of a shard.
pub(super) struct LingeringTraces {
    /// The held segments, once for each trace, by the tick at which they expire.
    until: BTreeMap<u64, Vec<u32>>,
    /// Traces that were to linger until that tick or an earlier one are released.
    ended: u64,
    /// Whether a trace lingers in any shard.
    any: Arc<AtomicBool>,
}

impl LingeringTraces {
    pub(super) fn new(any: Arc<AtomicBool>) -> Self {
        Self { until: BTreeMap::new(), ended: 0, any }
    }

    /// Whether a trace that is to linger until that tick still does, or can.
    pub(super) fn is_held(&self, until: u64) -> bool {
        until > self.ended
    }

    /// Takes over segments until that tick. The caller has counted them as held already.
    pub(super) fn hold(&mut self, until: u64, segments: impl IntoIterator<Item = u32>) {
        self.until.entry(until).or_default().extend(segments);
        // Written rarely, as all shards read it.
        if !self.any.load(Ordering::Relaxed) {
            self.any.store(true, Ordering::Relaxed);
        }
    }

    /// The tick at which the next trace expires.
    pub(super) fn first_expiry(&self) -> Option<u64> {
        self.until.keys().next().copied()
    }

    /// Removes segments that expire by that tick, some at a time; `None` when none are left.
    pub(super) fn expire(&mut self, until: u64) -> Option<Vec<u32>> {
        let slot = self.until.first_entry().filter(|slot| *slot.key() <= until)?;
        self.ended = self.ended.max(*slot.key());
        Some(slot.remove())
    }
}
