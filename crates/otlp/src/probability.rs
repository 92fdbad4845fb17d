//! Consistent probability sampling: thresholds, randomness, and what a sampled item stands for.
//!
//! OpenTelemetry decides with 56 bits. An item carries [`Randomness`], the last seven bytes of its trace id or an explicit
//! `rv`. A sampler has a [`Threshold`], the share of all items that it rejects, and keeps what is at or above it. So
//! whatever a sampler keeps is also kept by every sampler with a higher probability, on any machine. The threshold
//! travels with the item as `th`, and its inverse probability is the number of items that the sampled one stands for.
//!
//! The arithmetic, rounding included, is that of the Collector, so that both write the same digits for the same percentage.

mod text;

#[cfg(test)]
mod tests;

pub use text::Hex;

/// How many values of randomness there are.
const VALUES: u64 = 1 << 56;
/// Digits of a number of 56 bits in hexadecimal.
const DIGITS: u8 = 14;

/// The smallest probability that is not none: one in 2⁵⁶.
pub const MIN_PROBABILITY: f64 = 1.0 / VALUES as f64;

/// How many of all possible items are rejected, out of 2⁵⁶.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(u64);

impl Threshold {
    /// Keeps everything.
    pub const ALWAYS: Self = Self(0);
    /// Keeps nothing. It cannot be written down, as nothing is there that it could be written on.
    pub const NEVER: Self = Self(VALUES);

    /// The threshold of a probability, with at least `precision` significant hexadecimal digits (0 means all 14). Digits
    /// are added where the probability is close to none or to all, where they would be zeroes or `f`s. `None` if it is
    /// not in [[`MIN_PROBABILITY`], 1].
    pub fn from_probability(probability: f64, precision: u8) -> Option<Self> {
        if !(MIN_PROBABILITY..=1.0).contains(&probability) {
            return None;
        }
        if probability == 1.0 {
            return Some(Self::ALWAYS);
        }
        let wanted = if precision == 0 { DIGITS } else { precision.min(DIGITS) };
        let leading = leading_digits(probability).max(leading_digits(1.0 - probability));
        let digits = wanted.saturating_add(leading).min(DIGITS);
        let rejected = VALUES - (probability * VALUES as f64).round() as u64;
        let shift = 4 * u32::from(DIGITS - digits);
        let half = (1_u64 << shift) >> 1;
        Some(Self((rejected + half) >> shift << shift))
    }

    /// The threshold that rejects so many of 2⁵⁶. Above that it is [`Threshold::NEVER`].
    pub fn from_rejected(rejected: u64) -> Self {
        Self(rejected.min(VALUES))
    }

    /// How many of 2⁵⁶ are rejected.
    pub fn rejected(self) -> u64 {
        self.0
    }

    /// Reads a `th`: one to 14 hexadecimal digits, those that are missing at the end being zeroes.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let missing = usize::from(DIGITS).checked_sub(text.len())?;
        text::parse_hex(text).map(|value| Self(value << (4 * missing)))
    }

    /// Its digits without zeroes at the end, as `th` has them. Empty for [`Threshold::NEVER`].
    pub fn hex(self) -> Hex {
        match self {
            Self::NEVER => Hex::EMPTY,
            Self(value) => Hex::trimmed(value),
        }
    }

    /// Whether an item with that randomness is kept.
    #[inline]
    pub fn keeps(self, randomness: Randomness) -> bool {
        self.0 <= randomness.0
    }

    /// Which share of all items it keeps.
    pub fn probability(self) -> f64 {
        (VALUES - self.0) as f64 / VALUES as f64
    }

    /// How many items a kept one stands for; 0 for [`Threshold::NEVER`].
    pub fn adjusted_count(self) -> f64 {
        match self {
            Self::NEVER => 0.0,
            threshold => threshold.probability().recip(),
        }
    }
}

/// How many hexadecimal digits in front a fraction spends on being small: `0.0625` is the largest with one.
fn leading_digits(fraction: f64) -> u8 {
    // The exponent of the fraction as 0.5 ≤ mantissa < 1; subnormal numbers are far below the smallest probability.
    let exponent = ((fraction.to_bits() >> 52) & 0x7ff) as i32 - 1022;
    u8::try_from(-exponent / 4).unwrap_or(0)
}

/// 56 bits, which should be random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Randomness(u64);

impl Randomness {
    /// What is kept at every probability.
    pub const MAX: Self = Self(VALUES - 1);

    /// The lowest 56 bits of a number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & (VALUES - 1))
    }

    /// The number.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The randomness of a trace id: its last seven bytes, as W3C Trace Context 2 says. `None` if it is no trace id: of
    /// another length, or of zeroes.
    #[inline]
    pub fn of_trace_id(trace_id: &[u8]) -> Option<Self> {
        let id = u128::from_be_bytes(trace_id.try_into().ok()?);
        (id != 0).then(|| Self::from_bits(id as u64))
    }

    /// Reads an `rv`: exactly 14 hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        (text.len() == usize::from(DIGITS)).then(|| text::parse_hex(text)).flatten().map(Self)
    }

    /// Its 14 digits, as `rv` has them.
    pub fn hex(self) -> Hex {
        Hex::full(self.0)
    }
}
