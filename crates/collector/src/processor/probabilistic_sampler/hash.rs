//! The hash of `hash_seed`, as 56 bits of randomness.

use kubewake_otlp::probability::Randomness;

/// Bits of the hash that decide.
pub(super) const HASH_BITS: u32 = 14;
pub(super) const HASH_BUCKETS: u32 = 1 << HASH_BITS;

/// FNV-1a with 32 bits, of the seed and then the bytes.
pub(super) fn fnv1a(seed: u32, bytes: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let seeded = seed.to_le_bytes().iter().fold(0x811c_9dc5, step);
    bytes.iter().fold(seeded, step)
}

/// The hash as randomness, compatible with the Collector. The lowest 14 bits, which the Collector always
/// compared from below, come first and inverted: items with the lowest hash are kept at the lowest probability.
/// The other bits are filled with the rest of the hash.
pub(super) fn randomness(seed: u32, bytes: &[u8]) -> Randomness {
    let hash = fnv1a(seed, bytes);
    let bucket = u64::from(hash % HASH_BUCKETS);
    let unused = u64::from(hash >> (32 - HASH_BITS));
    let mixed = unused ^ (unused << 10);
    Randomness::from_bits((u64::from(HASH_BUCKETS) - 1 - bucket) << 42 | mixed << 14 | bucket)
}
