//! Consistent probability sampling: thresholds, randomness, and the weight of sampled items.
//!
//! OpenTelemetry decides with 56 bits. An item carries [`Randomness`], the last seven bytes of its trace id or
//! an explicit `rv`. A sampler has a [`Threshold`], the share of all items that it rejects, and keeps what is
//! at or above it. So whatever a sampler keeps is also kept by every sampler with a higher probability, on any
//! machine. The threshold travels with the item as `th`, and its inverse probability is the number of items
//! that the sampled one stands for.
//!
//! The arithmetic, rounding included, is that of the Collector, so that both write the same digits for the same
//! percentage.

mod hex_digits;

#[cfg(test)]
mod tests;

pub use hex_digits::HexDigits;

/// Number of randomness values.
const RANDOMNESS_VALUES: u64 = 1 << 56;
/// Hexadecimal digits of a 56-bit number.
const MAX_HEX_DIGITS: u8 = 14;

/// The smallest nonzero probability: one in 2⁵⁶.
pub const MIN_PROBABILITY: f64 = 1.0 / RANDOMNESS_VALUES as f64;

/// The share of all items that is rejected, out of 2⁵⁶.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(u64);

impl Threshold {
    pub const ALWAYS: Self = Self(0);
    /// Keeps nothing. It has no notation, as there is no item that could carry it.
    pub const NEVER: Self = Self(RANDOMNESS_VALUES);

    /// The threshold of a probability, with at least `precision` significant hexadecimal digits (0 means all
    /// 14). Digits are added where the probability is close to 0 or 1, where they would be zeroes or `f`s.
    /// `None` if it is not in [[`MIN_PROBABILITY`], 1].
    pub fn from_probability(probability: f64, precision: u8) -> Option<Self> {
        if !(MIN_PROBABILITY..=1.0).contains(&probability) {
            return None;
        }
        if probability == 1.0 {
            return Some(Self::ALWAYS);
        }
        let wanted = if precision == 0 { MAX_HEX_DIGITS } else { precision.min(MAX_HEX_DIGITS) };
        let leading = leading_digits(probability).max(leading_digits(1.0 - probability));
        let digits = wanted.saturating_add(leading).min(MAX_HEX_DIGITS);
        let rejected = RANDOMNESS_VALUES - (probability * RANDOMNESS_VALUES as f64).round() as u64;
        let shift = 4 * u32::from(MAX_HEX_DIGITS - digits);
        let half = (1_u64 << shift) >> 1;
        Some(Self((rejected + half) >> shift << shift))
    }

    /// The threshold that rejects so many of 2⁵⁶. Above that it is [`Threshold::NEVER`].
    pub fn from_rejected(rejected: u64) -> Self {
        Self(rejected.min(RANDOMNESS_VALUES))
    }

    /// The number of rejected values, out of 2⁵⁶.
    pub fn rejected(self) -> u64 {
        self.0
    }

    /// Parses a `th`: one to 14 hexadecimal digits; missing digits at the end are zeroes.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let missing = usize::from(MAX_HEX_DIGITS).checked_sub(text.len())?;
        hex_digits::parse_hex(text).map(|value| Self(value << (4 * missing)))
    }

    /// The digits without trailing zeroes, as in `th`. Empty for [`Threshold::NEVER`].
    pub fn hex(self) -> HexDigits {
        match self {
            Self::NEVER => HexDigits::EMPTY,
            Self(value) => HexDigits::trimmed(value),
        }
    }

    /// Whether an item with that randomness is kept.
    #[inline]
    pub fn keeps(self, randomness: Randomness) -> bool {
        self.0 <= randomness.0
    }

    /// The share of all items that is kept.
    pub fn probability(self) -> f64 {
        (RANDOMNESS_VALUES - self.0) as f64 / RANDOMNESS_VALUES as f64
    }

    /// The number of items that a kept one stands for; 0 for [`Threshold::NEVER`].
    pub fn adjusted_count(self) -> f64 {
        match self {
            Self::NEVER => 0.0,
            threshold => threshold.probability().recip(),
        }
    }
}

/// Number of leading hexadecimal digits of a small fraction: `0.0625` is the largest with one.
fn leading_digits(fraction: f64) -> u8 {
    // The exponent of the fraction as 0.5 ≤ mantissa < 1; subnormal numbers are far below the smallest
    // probability.
    let exponent = ((fraction.to_bits() >> 52) & 0x7ff) as i32 - 1022;
    u8::try_from(-exponent / 4).unwrap_or(0)
}

/// 56 bits, which should be random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Randomness(u64);

impl Randomness {
    /// Is kept at every probability.
    pub const MAX: Self = Self(RANDOMNESS_VALUES - 1);

    /// The lowest 56 bits of a number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & (RANDOMNESS_VALUES - 1))
    }

    pub fn bits(self) -> u64 {
        self.0
    }

    /// The randomness of a trace id: its last seven bytes, by W3C Trace Context 2. `None` for an invalid trace
    /// id: of another length, or all zeroes.
    #[inline]
    pub fn from_trace_id(trace_id: &[u8]) -> Option<Self> {
        let id = u128::from_be_bytes(trace_id.try_into().ok()?);
        (id != 0).then(|| Self::from_bits(id as u64))
    }

    /// Parses an `rv`: exactly 14 hexadecimal digits.
    pub fn parse(text: &[u8]) -> Option<Self> {
        (text.len() == usize::from(MAX_HEX_DIGITS)).then(|| hex_digits::parse_hex(text)).flatten().map(Self)
    }

    /// The 14 digits, as in `rv`.
    pub fn hex(self) -> HexDigits {
        HexDigits::full(self.0)
    }
}
