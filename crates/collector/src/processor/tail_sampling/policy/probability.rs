//! Probabilities: the Collector's hash for traces without stated randomness, consistent sampling for others.

use kubewake_config::model::SamplingRule;
use kubewake_otlp::probability::{Randomness, Threshold};

use super::weight::SampleWeight;

/// Keeps a share of the traces.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TraceProbability {
    /// The state of the hash after the salt.
    salted: u64,
    /// The highest hash that is kept.
    highest: u64,
    threshold: Threshold,
}

impl TraceProbability {
    pub(super) fn new(salt: &str, percentage: f64) -> Self {
        let salt = if salt.is_empty() { SamplingRule::DEFAULT_SALT } else { salt };
        let ratio = percentage / 100.0;
        Self {
            salted: fnv1a(FNV_OFFSET_BASIS, salt.as_bytes()),
            highest: highest_kept_hash(ratio),
            threshold: threshold(percentage),
        }
    }

    /// Whether the trace is kept. `randomness` is present if its spans carry `rv` or `th`.
    pub(super) fn keeps(&self, id: u128, randomness: Option<Randomness>) -> bool {
        match randomness {
            Some(randomness) => self.threshold.keeps(randomness),
            None => fnv1a(self.salted, &id.to_be_bytes()) <= self.highest,
        }
    }

    /// The weight of a kept trace.
    pub(super) fn weight(&self, randomness: Option<Randomness>) -> SampleWeight {
        let [by_randomness, by_hash] = self.weights();
        if randomness.is_some() { by_randomness } else { by_hash }
    }

    /// All possible weights of a kept trace.
    pub(super) fn weights(&self) -> [SampleWeight; 2] {
        [SampleWeight::by_randomness(self.threshold), SampleWeight::by_hash(self.threshold, self.salted)]
    }
}

/// The hash of an id as 56 bits of randomness. Low hashes are kept, so that these become high randomness.
pub(super) fn randomness(salted: u64, id: u128) -> u64 {
    !fnv1a(salted, &id.to_be_bytes()) >> 8
}

/// The threshold of a percentage; beyond either end it keeps all or nothing.
pub(super) fn threshold(percentage: f64) -> Threshold {
    let ratio = percentage / 100.0;
    let beyond = if ratio >= 1.0 { Threshold::ALWAYS } else { Threshold::NEVER };
    Threshold::from_probability(ratio, 0).unwrap_or(beyond)
}

const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv1a(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The highest hash of a share of all hashes, with the Collector's rounding: the product has 64 significant
/// bits, rounded to nearest even, and the fraction is cut off.
fn highest_kept_hash(ratio: f64) -> u64 {
    if ratio <= 0.0 || ratio.is_nan() {
        return 0;
    }
    if ratio >= 1.0 {
        return u64::MAX;
    }
    let bits = ratio.to_bits();
    let exponent = (bits >> 52) as i32;
    let mantissa = if exponent == 0 { bits << 1 } else { bits & ((1 << 52) - 1) | 1 << 52 };
    // The ratio is the mantissa times two to this power, which is negative.
    let power = exponent - 1075;
    let product = u128::from(u64::MAX) * u128::from(mantissa);
    let surplus = (128 - product.leading_zeros()).saturating_sub(64);
    let kept = product >> surplus;
    let cut = product & ((1 << surplus) - 1);
    let half = (1_u128 << surplus) >> 1;
    let up = surplus > 0 && (cut > half || (cut == half && kept & 1 == 1));
    let rounded = kept + u128::from(up);
    match power + surplus as i32 {
        left @ 0.. => u64::try_from(rounded << left.min(63)).unwrap_or(u64::MAX),
        right => u64::try_from(rounded >> right.unsigned_abs().min(127)).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_all_hashes_are_the_collectors() {
        assert_eq!(highest_kept_hash(0.5), u64::MAX / 2);
        assert_eq!(highest_kept_hash(0.25), u64::MAX / 4);
        assert_eq!(highest_kept_hash(1.0), u64::MAX);
        assert_eq!(highest_kept_hash(1.5), u64::MAX);
        assert_eq!(highest_kept_hash(-0.05), 0);
        assert_eq!(highest_kept_hash(f64::MIN_POSITIVE), 0);
        // A tenth is 0x1999999999999a × 2⁻⁵⁶.
        assert_eq!(highest_kept_hash(0.1), 0x1999_9999_9999_9a00 - 1);
    }

    #[test]
    fn about_that_share_is_kept_and_the_salt_says_which() {
        let tenth = TraceProbability::new("", 10.0);
        let salted = TraceProbability::new("pepper", 10.0);
        let kept =
            |chance: &TraceProbability| (0..10_000_u128).filter(|id| chance.keeps(id * 7919, None)).collect::<Vec<_>>();
        assert!((900..1100).contains(&kept(&tenth).len()));
        assert_ne!(kept(&tenth), kept(&salted));
        assert!(kept(&TraceProbability::new("", 0.0)).is_empty());
        assert_eq!(kept(&TraceProbability::new("", 100.0)).len(), 10_000);
    }

    #[test]
    fn what_the_hash_keeps_says_so_to_whoever_samples_next() {
        for percentage in [0.1, 10.0, 33.3, 50.0, 99.9] {
            let chance = TraceProbability::new("pepper", percentage);
            let weight = chance.weight(None);
            let mut clamped = 0;
            for id in (1..=20_000_u128).map(|id| id.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)) {
                let written = weight.randomness(id, None).unwrap();
                let own = Randomness::from_bits(randomness(chance.salted, id));
                assert_eq!(chance.keeps(id, None), weight.threshold.keeps(own), "{percentage} % of {id}");
                assert!(weight.threshold.keeps(written) || !chance.keeps(id, None));
                clamped += u32::from(chance.keeps(id, None) && written != own);
            }
            assert_eq!(clamped, 0, "what is written is the randomness itself");
        }
        let stated = TraceProbability::new("", 10.0).weight(Some(Randomness::MAX));
        assert_eq!(stated.randomness(u128::MAX, None), None, "the id says it");
        assert_eq!(stated.randomness(7, Some(Randomness::MAX)), Some(Randomness::MAX), "other spans say it");
        let least = stated.randomness(7, None).unwrap();
        assert_eq!(least.bits(), stated.threshold.rejected(), "nobody says it, and it was kept");
    }

    #[test]
    fn a_trace_with_randomness_is_decided_by_it() {
        let half = TraceProbability::new("", 50.0);
        assert!(half.keeps(1, Some(Randomness::MAX)));
        assert!(!half.keeps(1, Some(Randomness::from_bits(0))));
    }
}
