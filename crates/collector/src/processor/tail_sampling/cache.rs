//! Which traces were decided on, remembered in a few bytes each.
//!
//! A table of buckets, each with a few slots that hold 32 bits of a trace's hash and are filled in turn, so that in each the
//! oldest is forgotten first.
//!
//! *Guarantees.* It takes at most [`DecisionCache::BYTES`] bytes for each trace that it was made for, and never more. Up to [`WAYS`]
//! traces it remembers exactly so many; beyond, nearly all of so many and at most twice as many.
//! *Does not* hold whole ids: one trace in a few hundred million is taken for another.

/// Slots of a bucket: their bits fill one line of a processor's cache.
const WAYS: usize = 16;

/// A set of decided traces, with four bytes for each if they are wanted.
#[derive(Debug)]
pub(super) struct DecisionCache {
    ways: usize,
    slots: Vec<u32>,
    /// What is known of the trace in each slot; empty if nothing is to be known.
    notes: Vec<u32>,
    /// The slot of each bucket that is filled next.
    next: Vec<u8>,
}

impl DecisionCache {
    /// What a trace takes at most, without notes. Half of the slots are spare, so that a bucket that many share does not forget early.
    #[cfg(test)]
    pub(super) const BYTES: f64 = 8.125;

    /// A cache for so many traces; none for zero.
    pub(super) fn new(traces: usize, notes: bool) -> Option<Self> {
        let (buckets, ways) = match traces {
            0 => return None,
            1..=WAYS => (1, traces),
            // At most one trace in a thousand finds its bucket full at half of the slots.
            _ => (traces.div_ceil(WAYS / 2), WAYS),
        };
        let slots = vec![0; buckets * ways];
        let notes = if notes { vec![0; buckets * ways] } else { Vec::new() };
        Some(Self { ways, slots, notes, next: vec![0; buckets] })
    }

    /// A cache for so many traces that knows most of what this one does and fits, the newest first. It takes as long as to look through both.
    pub(super) fn resized(self, traces: usize) -> Option<Self> {
        let mut new = Self::new(traces, !self.notes.is_empty())?;
        for (bucket, next) in self.next.iter().enumerate() {
            // The slot that would be filled next is the oldest.
            for slot in (0..self.ways).map(|age| (usize::from(*next) + age) % self.ways) {
                let at = bucket * self.ways + slot;
                let print = self.slots.get(at).copied().filter(|print| *print != 0);
                let note = self.notes.get(at).copied().unwrap_or(0);
                // What is left of a hash does not say which of them: where it does not belong it is in nobody's way, as buckets forget in turn.
                let buckets = print.map_or(0..0, |_| new.overlapping(bucket, self.next.len()));
                buckets.for_each(|bucket| new.put(bucket, print.unwrap_or(0), note));
            }
        }
        Some(new)
    }

    /// The buckets in which there may be what is in this one of so many.
    fn overlapping(&self, bucket: usize, of: usize) -> std::ops::Range<usize> {
        let (bucket, of, own) = (bucket as u128, of.max(1) as u128, self.next.len() as u128);
        let (first, end) = (bucket * own / of, ((bucket + 1) * own).div_ceil(of));
        first as usize..end.min(own) as usize
    }

    /// Remembers a trace by its hash.
    pub(super) fn insert(&mut self, hash: u64, note: u32) {
        let (bucket, print) = self.place(hash);
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

    /// What is known of a trace, if it is remembered.
    pub(super) fn get(&self, hash: u64) -> Option<u32> {
        let (bucket, print) = self.place(hash);
        let slot = self.bucket(bucket).iter().position(|slot| *slot == print)?;
        Some(self.notes.get(bucket * self.ways + slot).copied().unwrap_or(0))
    }

    fn bucket(&self, bucket: usize) -> &[u32] {
        self.slots.get(bucket * self.ways..(bucket + 1) * self.ways).unwrap_or_default()
    }

    /// Its bucket, and its print there, which is never the zero of an empty slot.
    fn place(&self, hash: u64) -> (usize, u32) {
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
    use super::{super::id::IdHash, *};

    #[test]
    fn a_million_dropped_traces_take_at_most_eight_mebibytes() {
        let hash = IdHash::new();
        let mut cache = DecisionCache::new(1_000_000, false).unwrap();
        for id in 0..1_000_000_u128 {
            cache.insert(hash.of(id), 0);
        }
        assert!(cache.memory() <= 8 << 20, "{} bytes", cache.memory());
        assert!(cache.memory() as f64 <= 1e6 * DecisionCache::BYTES);
        let known = (0..1_000_000_u128).filter(|id| cache.get(hash.of(*id)).is_some()).count();
        assert!(known >= 998_000, "{known} are remembered");
        let strangers = (2_000_000..3_000_000_u128).filter(|id| cache.get(hash.of(*id)).is_some()).count();
        assert!(strangers <= 2, "{strangers} are taken for others");
    }

    #[test]
    fn a_small_cache_forgets_the_oldest_first() {
        let hash = IdHash::new();
        let mut cache = DecisionCache::new(2, true).unwrap();
        for id in 1..=3_u32 {
            cache.insert(hash.of(id.into()), id * 10);
        }
        let known: Vec<_> = (1..=3).map(|id| cache.get(hash.of(id))).collect();
        assert_eq!(known, [None, Some(20), Some(30)]);
        cache.insert(hash.of(3), 31);
        assert_eq!(cache.get(hash.of(2)), Some(20), "what is known already takes no second place");
        assert!(DecisionCache::new(0, false).is_none());
    }

    #[test]
    fn another_size_keeps_what_fits() {
        let hash = IdHash::new();
        for (before, after, least) in
            [(10_000, 30_000, 9900), (10_000, 10_001, 8800), (10_000, 5000, 4900), (10, 1000, 10), (1000, 10, 10)]
        {
            let mut cache = DecisionCache::new(before, true).unwrap();
            (0..before as u32).for_each(|id| cache.insert(hash.of(id.into()), id));
            let mut cache = cache.resized(after).unwrap();
            let known = (0..before as u32).filter(|id| cache.get(hash.of((*id).into())) == Some(*id));
            let known = known.count();
            assert!(known >= least, "{known} of {before} are known to one for {after}");
            let strangers = (1_000_000..1_100_000_u128).filter(|id| cache.get(hash.of(*id)).is_some()).count();
            assert!(strangers <= 1, "{strangers} are taken for others");
            // What was carried over takes nobody's place.
            (0..after as u32).for_each(|id| cache.insert(hash.of((2_000_000 + id).into()), id));
            let new = (0..after as u32).filter(|id| cache.get(hash.of((2_000_000 + id).into())) == Some(*id)).count();
            assert!(new * 1000 >= after * 995, "{new} of {after} that came since");
        }
        assert!(DecisionCache::new(10, false).unwrap().resized(0).is_none());
    }
}
