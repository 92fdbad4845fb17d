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

    /// Decided by the randomness that everybody sees.
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

    /// The randomness to write beside the threshold, so that whoever samples next sees what this decision went by: a kept
    /// trace is at or above its threshold by it.
    pub(in super::super) fn randomness(self, id: u128) -> Option<Randomness> {
        let bits = chance::randomness(self.salted?, id).max(self.threshold.rejected());
        Some(Randomness::from_bits(bits))
    }
}
