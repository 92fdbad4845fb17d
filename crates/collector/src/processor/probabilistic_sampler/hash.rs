//! The hash of `hash_seed`, as 56 bits of randomness.

use kubewake_otlp::probability::Randomness;

/// Bits of the hash that decide.
pub(super) const BITS: u32 = 14;
/// Their values.
pub(super) const BUCKETS: u32 = 1 << BITS;

/// FNV-1a with 32 bits, of the seed and then the bytes.
pub(super) fn fnv1a(seed: u32, bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let seeded = seed.to_le_bytes().iter().fold(0x811c_9dc5, step);
    bytes.iter().fold(seeded, step)
}

/// The hash as the randomness that the Collector makes of it. Its lowest 14 bits, which the Collector always compared
/// from below, stand in front and turned over: what had the lowest hash is kept at the lowest probability. The rest is
/// filled with what else there is of the hash.
pub(super) fn randomness(seed: u32, bytes: &[u8]) -> Randomness {
    let hash = fnv1a(seed, bytes);
    let bucket = u64::from(hash % BUCKETS);
    let unused = u64::from(hash >> (32 - BITS));
    let mixed = unused ^ (unused << 10);
    Randomness::from_bits((u64::from(BUCKETS) - 1 - bucket) << 42 | mixed << 14 | bucket)
}
