//! How many traces a kept one stands for, and by which randomness it was kept.

use kubewake_otlp::probability::{Randomness, Threshold};

use super::chance;

/// The threshold of a decision, and what its randomness came from. The smaller one keeps more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct Weight {
    pub(in super::super) threshold: Threshold,
    /// The state of the hash after its salt, if the hash of the trace id decided, which nobody else could know.
    salted: Option<u64>,
}

impl Weight {
    /// Stands for itself.
    pub(super) const ONE: Self = Self::by_randomness(Threshold::ALWAYS);

    /// Decided by the randomness that spans of the trace carry, or that of its id.
    pub(super) const fn by_randomness(threshold: Threshold) -> Self {
        Self { threshold, salted: None }
    }

    /// Decided by a hash with a salt.
    pub(super) const fn by_hash(threshold: Threshold, salted: u64) -> Self {
        Self { threshold, salted: Some(salted) }
    }

    /// Whether something of this weight stands for more than itself, and was kept at all.
    pub(super) fn says_something(self) -> bool {
        self.threshold != Threshold::ALWAYS && self.threshold != Threshold::NEVER
    }

    /// The randomness to write beside the threshold on a span that carries none, so that whoever samples next sees what this decision
    /// went by: by it, the span is at or above its threshold. `stated` is what other spans of the trace carry; where that is not known any more,
    /// the least that the decision allows. `None` if the id says it.
    pub(in super::super) fn randomness(self, id: u128, stated: Option<Randomness>) -> Option<Randomness> {
        let of_id = Randomness::from_bits(id as u64);
        let by = match self.salted {
            Some(salted) => chance::randomness(salted, id),
            None => stated.unwrap_or(of_id).bits(),
        };
        let written = Randomness::from_bits(by.max(self.threshold.rejected()));
        (written != of_id).then_some(written)
    }
}
