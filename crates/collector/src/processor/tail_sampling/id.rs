//! Trace ids, and the hash that finds their shard and their place.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The bytes of a trace id as a number; zero where a span has none.
pub(super) type TraceId = u128;

/// Hashes trace ids. Seeded by each process, so that a stranger who chooses ids cannot choose where they go.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdHash {
    seeds: [u64; 2],
}

impl IdHash {
    pub(super) fn new() -> Self {
        let random = RandomState::new();
        Self { seeds: [random.hash_one(1_u8), random.hash_one(2_u8)] }
    }

    /// Two halves multiplied and folded: a few instructions, which is all that random ids need.
    pub(super) fn of(&self, id: TraceId) -> u64 {
        let [low, high] = self.seeds;
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let once = fold(id as u64 ^ low, (id >> 64) as u64 ^ high);
        fold(once ^ high, 0x9e37_79b9_7f4a_7c15 ^ low)
    }

    /// Which of so many shards is the id's.
    pub(super) fn shard(hash: u64, shards: usize) -> usize {
        // Not the bits that a table goes by, so that the ids of one shard are spread over its table.
        ((u64::from((hash >> 20) as u32) * shards as u64) >> 32) as usize
    }
}

impl BuildHasher for IdHash {
    type Hasher = OneId;

    fn build_hasher(&self) -> OneId {
        OneId { by: *self, hash: 0 }
    }
}

/// Hashes one id.
pub(super) struct OneId {
    by: IdHash,
    hash: u64,
}

impl Hasher for OneId {
    fn write_u128(&mut self, id: u128) {
        self.hash = self.by.of(id);
    }

    fn write(&mut self, bytes: &[u8]) {
        // Ids alone are hashed; this is only here to be complete.
        for byte in bytes {
            self.hash = self.by.of(u128::from(self.hash) << 8 | u128::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}
