//! Remembers which traces were decided, in a few bytes each.
//!
//! A table of buckets. Each bucket has a few slots that hold 32 bits of a trace's hash and are filled in turn,
//! so that the oldest entry of a bucket is evicted first.
//!
//! *Guaranteed*: the cache takes at most [`TraceDecisionCache::BYTES_PER_TRACE`] bytes for each trace of its
//! capacity. Up to a capacity of [`SLOTS_PER_BUCKET`] it remembers exactly so many traces; beyond, nearly all
//! of so many and at most twice as many. *Not done*: whole ids are not stored; one trace in a few hundred
//! million is taken for another.

/// Slots of a bucket: their bits fill one line of a processor's cache.
const SLOTS_PER_BUCKET: usize = 16;

/// A set of decided traces, with an optional note of four bytes for each.
#[derive(Debug)]
pub(super) struct TraceDecisionCache {
    ways: usize,
    slots: Vec<u32>,
    /// The note of each slot; empty without notes.
    notes: Vec<u32>,
    /// The next slot to fill in each bucket.
    next: Vec<u8>,
}

impl TraceDecisionCache {
    /// Limit of the memory for a trace, without notes. Half of the slots are spare, so that a bucket that many
    /// traces share does not evict early.
    #[cfg(test)]
    pub(super) const BYTES_PER_TRACE: f64 = 8.125;

    /// Creates a cache for so many traces; `None` for zero.
    pub(super) fn new(traces: usize, notes: bool) -> Option<Self> {
        let (buckets, ways) = match traces {
            0 => return None,
            1..=SLOTS_PER_BUCKET => (1, traces),
            // At most one trace in a thousand finds its bucket full at half of the slots.
            _ => (traces.div_ceil(SLOTS_PER_BUCKET / 2), SLOTS_PER_BUCKET),
        };
        let slots = vec![0; buckets * ways];
        let notes = if notes { vec![0; buckets * ways] } else { Vec::new() };
        Some(Self { ways, slots, notes, next: vec![0; buckets] })
    }

    /// A cache of another capacity with most of the entries of this one that fit, the newest first. It takes as
    /// long as a pass over both.
    pub(super) fn resized(self, traces: usize) -> Option<Self> {
        let mut new = Self::new(traces, !self.notes.is_empty())?;
        for (bucket, next) in self.next.iter().enumerate() {
            // The next slot to fill is the oldest.
            for slot in (0..self.ways).map(|age| (usize::from(*next) + age) % self.ways) {
                let at = bucket * self.ways + slot;
                let print = self.slots.get(at).copied().filter(|print| *print != 0);
                let note = self.notes.get(at).copied().unwrap_or(0);
                // The rest of a hash does not tell the new bucket: the entry goes into all that overlap, and
                // does no harm in the wrong ones, as buckets evict in turn.
                let buckets = print.map_or(0..0, |_| new.overlapping(bucket, self.next.len()));
                buckets.for_each(|bucket| new.put(bucket, print.unwrap_or(0), note));
            }
        }
        Some(new)
    }

    /// The buckets that may hold the entries of this bucket of a table with so many.
    fn overlapping(&self, bucket: usize, of: usize) -> std::ops::Range<usize> {
        let bucket = bucket as u128;
        let of = of.max(1) as u128;
        let own = self.next.len() as u128;
        let first = bucket * own / of;
        let end = ((bucket + 1) * own).div_ceil(of);
        first as usize..end.min(own) as usize
    }

    /// Adds a trace by its hash.
    pub(super) fn insert(&mut self, hash: u64, note: u32) {
        let (bucket, print) = self.locate(hash);
        self.put(bucket, print, note);
    }

    fn put(&mut self, bucket: usize, print: u32, note: u32) {
        let start = bucket * self.ways;
        let known = self.bucket(bucket).iter().position(|slot| *slot == print);
        let slot = known.unwrap_or_else(|| {
            let slot = self.next.get(bucket).copied().unwrap_or(0);
            if let Some(next) = self.next.get_mut(bucket) {
                *next = ((usize::from(slot) + 1) % self.ways) as u8;
            }
            usize::from(slot)
        });
        if let Some(place) = self.slots.get_mut(start + slot) {
            *place = print;
        }
        if let Some(place) = self.notes.get_mut(start + slot) {
            *place = note;
        }
    }

    /// The note of a trace, if it is remembered.
    pub(super) fn get(&self, hash: u64) -> Option<u32> {
        let (bucket, print) = self.locate(hash);
        let slot = self.bucket(bucket).iter().position(|slot| *slot == print)?;
        Some(self.notes.get(bucket * self.ways + slot).copied().unwrap_or(0))
    }

    fn bucket(&self, bucket: usize) -> &[u32] {
        self.slots.get(bucket * self.ways..(bucket + 1) * self.ways).unwrap_or_default()
    }

    /// The bucket of a hash, and its entry there, which is never the zero of an empty slot.
    fn locate(&self, hash: u64) -> (usize, u32) {
        let mixed = hash.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(32);
        let bucket = (u64::from(mixed as u32) * self.next.len() as u64) >> 32;
        (bucket as usize, ((mixed >> 32) as u32).max(1))
    }

    #[cfg(test)]
    fn memory(&self) -> usize {
        (self.slots.capacity() + self.notes.capacity()) * 4 + self.next.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::trace_id::TraceIdHashBuilder, *};

    #[test]
    fn a_million_dropped_traces_take_at_most_eight_mebibytes() {
        let hash = TraceIdHashBuilder::new();
        let mut cache = TraceDecisionCache::new(1_000_000, false).unwrap();
        for id in 0..1_000_000_u128 {
            cache.insert(hash.hash_id(id), 0);
        }
        assert!(cache.memory() <= 8 << 20, "{} bytes", cache.memory());
        assert!(cache.memory() as f64 <= 1e6 * TraceDecisionCache::BYTES_PER_TRACE);
        let known = (0..1_000_000_u128).filter(|id| cache.get(hash.hash_id(*id)).is_some()).count();
        assert!(known >= 998_000, "{known} are remembered");
        let strangers = (2_000_000..3_000_000_u128).filter(|id| cache.get(hash.hash_id(*id)).is_some()).count();
        assert!(strangers <= 2, "{strangers} are taken for others");
    }

    #[test]
    fn a_small_cache_forgets_the_oldest_first() {
        let hash = TraceIdHashBuilder::new();
        let mut cache = TraceDecisionCache::new(2, true).unwrap();
        for id in 1..=3_u32 {
            cache.insert(hash.hash_id(id.into()), id * 10);
        }
        let known: Vec<_> = (1..=3).map(|id| cache.get(hash.hash_id(id))).collect();
        assert_eq!(known, [None, Some(20), Some(30)]);
        cache.insert(hash.hash_id(3), 31);
        assert_eq!(cache.get(hash.hash_id(2)), Some(20), "what is known already takes no second place");
        assert!(TraceDecisionCache::new(0, false).is_none());
    }

    #[test]
    fn another_size_keeps_what_fits() {
        let hash = TraceIdHashBuilder::new();
        for (before, after, least) in
            [(10_000, 30_000, 9900), (10_000, 10_001, 8800), (10_000, 5000, 4900), (10, 1000, 10), (1000, 10, 10)]
        {
            let mut cache = TraceDecisionCache::new(before, true).unwrap();
            (0..before as u32).for_each(|id| cache.insert(hash.hash_id(id.into()), id));
            let mut cache = cache.resized(after).unwrap();
            let known = (0..before as u32).filter(|id| cache.get(hash.hash_id((*id).into())) == Some(*id));
            let known = known.count();
            assert!(known >= least, "{known} of {before} are known to one for {after}");
            let strangers = (1_000_000..1_100_000_u128).filter(|id| cache.get(hash.hash_id(*id)).is_some()).count();
            assert!(strangers <= 1, "{strangers} are taken for others");
            // Entries that were carried over do not reduce the capacity.
            (0..after as u32).for_each(|id| cache.insert(hash.hash_id((2_000_000 + id).into()), id));
            let new =
                (0..after as u32).filter(|id| cache.get(hash.hash_id((2_000_000 + id).into())) == Some(*id)).count();
            assert!(new * 1000 >= after * 995, "{new} of {after} that came since");
        }
        assert!(TraceDecisionCache::new(10, false).unwrap().resized(0).is_none());
    }
}
