//! Tracks which items have arrived.

use std::collections::{BTreeMap, HashMap, HashSet};

use kubewake_otlp::Signal;

use crate::load::ids::{RunSeed, parse_generated_ids};

/// Ids are kept in bitmaps of this number of words: 4 KiB, 32 768 ids.
const BITMAP_WORDS: usize = 512;
const IDS_PER_BITMAP: u64 = BITMAP_WORDS as u64 * 64;
/// At most 256 MiB of bitmaps, 2 billion ids.
const MAX_BITMAPS: usize = 65_536;
/// Ids that are not generated cost about 50 bytes each.
const MAX_FOREIGN_IDS: usize = 1_000_000;

/// The ids seen so far, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct SeenItems {
    runs: HashMap<RunSeed, SeenRun>,
    bitmaps: usize,
    foreign_ids: HashSet<([u8; 16], [u8; 8])>,
    pub distinct: u64,
    pub duplicates: u64,
    /// Items without ids, or beyond the memory limit.
    pub untracked: u64,
}

#[derive(Debug, Default)]
struct SeenRun {
    bitmaps: HashMap<u64, Box<[u64; BITMAP_WORDS]>>,
    distinct: u64,
    duplicates: u64,
}

impl SeenItems {
    /// Records an item. Returns whether the generator made it.
    pub(super) fn record(&mut self, signal: Signal, trace_id: &[u8], span_id: &[u8]) -> bool {
        let (ours, new) = match parse_generated_ids(trace_id, span_id) {
            Some((seed, number)) => (true, self.record_generated(seed, number)),
            // The ids of a log record or a point are those of its span: several may share them.
            None if signal != Signal::Traces => (false, None),
            None => (false, self.record_foreign(trace_id, span_id)),
        };
        match new {
            Some(true) => self.distinct += 1,
            Some(false) => self.duplicates += 1,
            None => self.untracked += 1,
        }
        ours
    }

    fn record_generated(&mut self, seed: RunSeed, number: u64) -> Option<bool> {
        let run = self.runs.entry(seed).or_default();
        let index = number / IDS_PER_BITMAP;
        if !run.bitmaps.contains_key(&index) {
            if self.bitmaps >= MAX_BITMAPS {
                return None;
            }
            self.bitmaps += 1;
        }
        let bitmap = run.bitmaps.entry(index).or_insert_with(|| Box::new([0; BITMAP_WORDS]));
        let word = bitmap.get_mut((number % IDS_PER_BITMAP / 64) as usize)?;
        let bit = 1 << (number % 64);
        let new = *word & bit == 0;
        *word |= bit;
        if new {
            run.distinct += 1;
        } else {
            run.duplicates += 1;
        }
        Some(new)
    }

    fn record_foreign(&mut self, trace_id: &[u8], span_id: &[u8]) -> Option<bool> {
        let id = (trace_id.try_into().ok()?, span_id.try_into().ok()?);
        if self.foreign_ids.contains(&id) {
            return Some(false);
        }
        if self.foreign_ids.len() >= MAX_FOREIGN_IDS {
            return None;
        }
        Some(self.foreign_ids.insert(id))
    }

    /// The numbers from `first` to `end` (exclusive) that have not arrived: how many, and the first few.
    pub(super) fn missing(&self, seed: RunSeed, first: u64, end: u64, some: &mut Vec<u64>) -> u64 {
        let run = self.runs.get(&seed);
        let missing = (first..end).filter(|number| !run.is_some_and(|run| run.contains(*number)));
        let mut count = 0;
        for number in missing {
            count += 1;
            if some.len() < 10 {
                some.push(number);
            }
        }
        count
    }

    /// Distinct items and duplicates of each run, by its number.
    pub(super) fn runs(&self) -> BTreeMap<u64, (u64, u64)> {
        self.runs.iter().map(|(seed, run)| (seed.number(), (run.distinct, run.duplicates))).collect()
    }
}

impl SeenRun {
    fn contains(&self, number: u64) -> bool {
        let word = self
            .bitmaps
            .get(&(number / IDS_PER_BITMAP))
            .and_then(|bitmap| bitmap.get((number % IDS_PER_BITMAP / 64) as usize));
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::ids::span_id;

    #[test]
    fn what_arrived_twice_and_what_never_did() {
        let seed = RunSeed::new(5);
        let mut seen = SeenItems::default();
        for number in [0, 1, 2, 2, 40_000] {
            assert!(seen.record(Signal::Traces, &seed.trace_id(1), &span_id(number)));
        }
        assert_eq!((seen.distinct, seen.duplicates), (4, 1));
        let mut some = Vec::new();
        assert_eq!(seen.missing(seed, 0, 5, &mut some), 2);
        assert_eq!(some, [3, 4]);
        assert_eq!(seen.missing(seed, 40_000, 40_001, &mut some), 0);
        assert_eq!(seen.missing(RunSeed::new(6), 0, 3, &mut some), 3);
    }

    #[test]
    fn ids_of_others_are_told_apart() {
        let mut seen = SeenItems::default();
        assert!(!seen.record(Signal::Traces, &[1; 16], &[1; 8]));
        assert!(!seen.record(Signal::Traces, &[1; 16], &[1; 8]));
        assert!(!seen.record(Signal::Traces, &[], &[]));
        assert_eq!((seen.distinct, seen.duplicates, seen.untracked), (1, 1, 1));
    }
}
