//! Ids that tell which run generated them.
//!
//! The first half of a trace id identifies the run; a span id consists of a marker and a counter without gaps.
//! So a receiver can identify each span of a run without a table, and a bitmap tells which are missing.

/// Prefix of generated trace ids ("kw"), above the 48 bits of a run.
const TRACE_ID_MARKER: u64 = 0x6b77;
/// Number of bits of a run's number.
const SEED_BITS: u32 = 48;
/// Prefix of generated span ids ("kwa"), above the 40 bits of the counter: room for 10^12 spans in a run.
const SPAN_ID_MARKER: u64 = 0x006b_7761;
const SPAN_COUNTER_BITS: u32 = 40;

/// The number of a run of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RunSeed(u64);

impl RunSeed {
    /// The run with the lower 48 bits of this number.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number & ((1 << SEED_BITS) - 1))
    }

    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    /// Id of the run's trace with this number.
    pub(crate) fn trace_id(self, number: u64) -> [u8; 16] {
        let run = u128::from((TRACE_ID_MARKER << SEED_BITS) | self.0);
        ((run << 64) | u128::from(scramble_bits(number))).to_be_bytes()
    }
}

/// Id of a run's span with this number.
pub(crate) fn span_id(number: u64) -> [u8; 8] {
    ((SPAN_ID_MARKER << SPAN_COUNTER_BITS) | (number & ((1 << SPAN_COUNTER_BITS) - 1))).to_be_bytes()
}

/// The run and the number of a span, if the generator made it.
pub(crate) fn parse_generated_ids(trace_id: &[u8], span_id: &[u8]) -> Option<(RunSeed, u64)> {
    let run = u64::from_be_bytes(*trace_id.first_chunk()?);
    let span = u64::from_be_bytes(span_id.try_into().ok()?);
    let ours = run >> SEED_BITS == TRACE_ID_MARKER && span >> SPAN_COUNTER_BITS == SPAN_ID_MARKER;
    ours.then(|| (RunSeed::new(run), span & ((1 << SPAN_COUNTER_BITS) - 1)))
}

/// A bijection that spreads a counter over all 64 bits: samplers treat the end of a trace id as random.
fn scramble_bits(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ids_are_recognised() {
        let seed = RunSeed::new(u64::MAX);
        assert_eq!(parse_generated_ids(&seed.trace_id(7), &span_id(12_345_678)), Some((seed, 12_345_678)));
    }

    #[test]
    fn other_ids_are_not() {
        assert_eq!(parse_generated_ids(&[7; 16], &span_id(1)), None);
        assert_eq!(parse_generated_ids(&RunSeed::new(1).trace_id(1), &[9; 8]), None);
        assert_eq!(parse_generated_ids(&[], &[]), None);
    }
}
