//! Trace ids, and the hash that selects their shard and their place in its table.

use std::hash::{BuildHasher, Hasher, RandomState};

/// The bytes of a trace id as a number; zero where a span has none.
pub(super) type TraceId = u128;

/// Hashes trace ids. Each process has its own seed, so that a sender cannot choose shards.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceIdHashBuilder {
    seeds: [u64; 2],
}

impl TraceIdHashBuilder {
    pub(super) fn new() -> Self {
        let random = RandomState::new();
        Self { seeds: [random.hash_one(1_u8), random.hash_one(2_u8)] }
    }

    /// Two halves multiplied and folded: a few instructions, which is all that random ids need.
    pub(super) fn hash_id(&self, id: TraceId) -> u64 {
        let [low, high] = self.seeds;
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            product as u64 ^ (product >> 64) as u64
        };
        let once = fold(id as u64 ^ low, (id >> 64) as u64 ^ high);
        fold(once ^ high, 0x9e37_79b9_7f4a_7c15 ^ low)
    }

    /// The shard of a hash, of so many shards.
    pub(super) fn shard_of_hash(hash: u64, shards: usize) -> usize {
        // Other bits than those of the shard's table, so that the ids of one shard are spread over its table.
        ((u64::from((hash >> 20) as u32) * shards as u64) >> 32) as usize
    }
}

impl BuildHasher for TraceIdHashBuilder {
    type Hasher = TraceIdHasher;

    fn build_hasher(&self) -> TraceIdHasher {
        TraceIdHasher { by: *self, hash: 0 }
    }
}

pub(super) struct TraceIdHasher {
    by: TraceIdHashBuilder,
    hash: u64,
}

impl Hasher for TraceIdHasher {
    fn write_u128(&mut self, id: u128) {
        self.hash = self.by.hash_id(id);
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only ids are hashed; this completes the trait.
        for byte in bytes {
            self.hash = self.by.hash_id(u128::from(self.hash) << 8 | u128::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.hash
    }
}
