//! Ids that say where they come from.
//!
//! The first half of a trace id is the run, the whole of a span id is a mark and a counter without gaps. So whoever
//! receives a span can tell without a table which of a run's spans it is, and a bitmap tells which are missing.

/// Marks the first half of a trace id ("kw"), above the 48 bits of a run.
const TRACE_MARK: u64 = 0x6b77;
/// How many bits of a run's number are used.
const SEED_BITS: u32 = 48;
/// Marks a span id ("kwa"), above the 40 bits of its counter: room for 10^12 spans in a run.
const SPAN_MARK: u64 = 0x006b_7761;
const COUNTER_BITS: u32 = 40;

/// The number of one run of the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Seed(u64);

impl Seed {
    /// The run with this number, of which the lower 48 bits count.
    pub(crate) const fn new(number: u64) -> Self {
        Self(number & ((1 << SEED_BITS) - 1))
    }

    /// Its number.
    pub(crate) const fn number(self) -> u64 {
        self.0
    }

    /// The id of the run's trace with this number.
    pub(crate) fn trace_id(self, number: u64) -> [u8; 16] {
        let run = u128::from((TRACE_MARK << SEED_BITS) | self.0);
        ((run << 64) | u128::from(mix(number))).to_be_bytes()
    }
}

/// The id of a run's span with this number.
pub(crate) fn span_id(number: u64) -> [u8; 8] {
    ((SPAN_MARK << COUNTER_BITS) | (number & ((1 << COUNTER_BITS) - 1))).to_be_bytes()
}

/// Which span of which run this is, if the generator made it.
pub(crate) fn recognise(trace_id: &[u8], span_id: &[u8]) -> Option<(Seed, u64)> {
    let run = u64::from_be_bytes(*trace_id.first_chunk()?);
    let span = u64::from_be_bytes(span_id.try_into().ok()?);
    let ours = run >> SEED_BITS == TRACE_MARK && span >> COUNTER_BITS == SPAN_MARK;
    ours.then(|| (Seed::new(run), span & ((1 << COUNTER_BITS) - 1)))
}

/// Spreads a counter over all 64 bits, one to one: samplers take the end of a trace id for random.
fn mix(number: u64) -> u64 {
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
        let seed = Seed::new(u64::MAX);
        assert_eq!(recognise(&seed.trace_id(7), &span_id(12_345_678)), Some((seed, 12_345_678)));
    }

    #[test]
    fn other_ids_are_not() {
        assert_eq!(recognise(&[7; 16], &span_id(1)), None);
        assert_eq!(recognise(&Seed::new(1).trace_id(1), &[9; 8]), None);
        assert_eq!(recognise(&[], &[]), None);
    }
}
