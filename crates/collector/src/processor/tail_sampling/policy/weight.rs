//! The number of traces that a kept one stands for, and the randomness by which it was kept.

use kubewake_otlp::probability::{Randomness, Threshold};

use super::probability;

/// The threshold of a decision, and the source of its randomness. The smaller threshold keeps more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct SampleWeight {
    pub(in super::super) threshold: Threshold,
    /// The state of the salted hash, if the hash of the trace id decided, which no other sampler could derive.
    salted: Option<u64>,
}

impl SampleWeight {
    pub(super) const ONE: Self = Self::by_randomness(Threshold::ALWAYS);

    /// Decided by the randomness that spans of the trace carry, or by that of its id.
    pub(super) const fn by_randomness(threshold: Threshold) -> Self {
        Self { threshold, salted: None }
    }

    /// Decided by a hash with a salt.
    pub(super) const fn by_hash(threshold: Threshold, salted: u64) -> Self {
        Self { threshold, salted: Some(salted) }
    }

    /// Whether a trace of this weight stands for more than itself, and was kept at all.
    pub(super) fn is_fractional(self) -> bool {
        self.threshold != Threshold::ALWAYS && self.threshold != Threshold::NEVER
    }

    /// The randomness to write beside the threshold on a span that carries none, so that a later sampler sees
    /// the randomness of this decision: by it, the span is at or above its threshold. `stated` is the
    /// randomness of the trace's other spans; where that is not known any more, the least randomness that the
    /// decision allows is used. `None` if the id implies it.
    pub(in super::super) fn randomness(self, id: u128, stated: Option<Randomness>) -> Option<Randomness> {
        let of_id = Randomness::from_bits(id as u64);
        let by = match self.salted {
            Some(salted) => probability::randomness(salted, id),
            None => stated.unwrap_or(of_id).bits(),
        };
        let written = Randomness::from_bits(by.max(self.threshold.rejected()));
        (written != of_id).then_some(written)
    }
}
