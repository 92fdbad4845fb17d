//! Amounts of resources (`500m`, `1Gi`), as far as they must be compared. Their spelling is decoding's business.

use serde_json::Value;

/// An amount in units of 10⁻⁹. Beyond its range it saturates: such amounts only ever compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Quantity(i128);

const NANO: i128 = 1_000_000_000;

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Reads an amount, as text or number.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text),
            Value::Number(number) => Self::parse(&number.to_string()),
            _ => None,
        }
    }

    /// Reads `1.5Gi`, `100m`, `1e9`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits_end = text.find(|one: char| !(one.is_ascii_digit() || "+-.".contains(one))).unwrap_or(text.len());
        let (number, suffix) = text.split_at_checked(digits_end)?;
        let negative = number.starts_with('-');
        let number = number.strip_prefix(['+', '-']).unwrap_or(number);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let nanos = scaled(digits(whole)?, fraction, multiplier(suffix)?)?;
        Some(Self(if negative { -nanos } else { nanos }))
    }

    /// Below zero.
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// A whole number.
    pub fn is_integer(self) -> bool {
        self.0 % NANO == 0
    }

    /// The sum, or the most there is.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// How a suffix scales: nano-units to multiply by, and whether to divide instead.
fn multiplier(suffix: &str) -> Option<(i128, i128)> {
    let binary = |power: u32| Some((NANO.saturating_mul(1 << (10 * power)), 1));
    let decimal = |power: u32| Some((NANO.saturating_mul(10i128.pow(power)), 1));
    match suffix {
        "n" => Some((1, 1)),
        "u" => Some((1_000, 1)),
        "m" => Some((1_000_000, 1)),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => exponent(suffix),
    }
}

fn exponent(suffix: &str) -> Option<(i128, i128)> {
    let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // beyond this everything is too large or too small to tell apart
    let power = power.clamp(-18, 24);
    match u32::try_from(power) {
        Ok(power) => Some((NANO.saturating_mul(10i128.pow(power)), 1)),
        Err(_) => Some((NANO, 10i128.pow(power.unsigned_abs()))),
    }
}

fn digits(text: &str) -> Option<i128> {
    text.bytes().try_fold(0i128, |sum, byte| {
        byte.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(i128::from(byte - b'0')))
    })
}

fn scaled(whole: i128, fraction: &str, (multiply, divide): (i128, i128)) -> Option<i128> {
    let kept = fraction.get(..fraction.len().min(12))?;
    let parts = digits(kept)?.saturating_mul(multiply) / 10i128.pow(u32::try_from(kept.len()).ok()?);
    Some(whole.saturating_mul(multiply).saturating_add(parts) / divide)
}
