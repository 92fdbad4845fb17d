//! `resource.Quantity`: fixed-point numbers with a suffix, read and written as Kubernetes does.
//!
//! Values are exact to a billionth and are rounded away from zero beyond it. More than 36 digits are refused, where
//! Kubernetes would go on.

mod parse;

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde_json::Value;

/// An amount: `1500m`, `2Gi`, `1e3`. Amounts compare by their value, however they are written.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// In units of ten to the power of `scale`.
    value: i128,
    scale: i32,
    format: Format,
}

/// Which suffixes an amount is written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `m`, `k`, `M`, …
    Decimal,
    /// `Ki`, `Mi`, …
    Binary,
    /// `e3`
    Exponent,
}

/// Why a text is no quantity, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The smallest unit: a billionth.
const NANO: i32 = -9;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { value: 0, scale: 0, format: Format::Decimal };

    /// Reads an amount.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::Parts::split(text)?.quantity()
    }

    /// Reads an amount of an object, which may stand there as a number; none if it is something else.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    /// A whole number.
    pub fn from_int(value: i64) -> Self {
        Self { value: value.into(), scale: 0, format: Format::Decimal }
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.value == 0
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.value < 0
    }

    /// Whether it is a whole number.
    pub fn is_integer(self) -> bool {
        self.scale >= 0 || pow10(self.scale.unsigned_abs()).is_some_and(|unit| self.value % unit == 0)
    }

    /// The value as a whole number, rounded away from zero; none if it is too large.
    pub fn to_int(&self) -> Option<i64> {
        self.scaled(0)
    }

    /// The value in units of ten to the power of `scale` (-3: thousandths), rounded away from zero; none if it is too large.
    pub fn scaled(&self, scale: i32) -> Option<i64> {
        // Nothing is nothing at every scale: `0E200`.
        if self.is_zero() {
            return Some(0);
        }
        let scale = self.scale.checked_sub(scale)?;
        let power = pow10(scale.unsigned_abs())?;
        let whole = if scale < 0 { divide_up(self.value, power) } else { self.value.checked_mul(power)? };
        i64::try_from(whole).ok()
    }

    /// The value in units of ten to the power of `scale`, which is not above its own.
    fn at(self, scale: i32) -> Option<i128> {
        self.value.checked_mul(pow10(self.scale.checked_sub(scale)?.unsigned_abs())?)
    }

    /// How many digits stand before the decimal point; negative for small fractions.
    fn magnitude(&self) -> i64 {
        let digits = self.value.unsigned_abs().checked_ilog10().map_or(0, |log| i64::from(log) + 1);
        digits + i64::from(self.scale)
    }
}

/// A text in the form that Kubernetes would give it back: the shortest, or as it was where it looks canonical.
pub fn canonical(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    let parts = parse::Parts::split(text)?;
    if parts.looks_canonical() {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(parts.quantity()?.to_string()))
}

/// Canonical: the suffix is as large as it can be without a fraction.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        match self.binary() {
            Some(whole) => write_binary(whole, f),
            None => self.write_decimal(f),
        }
    }
}

impl Quantity {
    /// The whole number to write with a binary suffix, if it can be written so.
    fn binary(&self) -> Option<i128> {
        let whole = match self.scale {
            _ if self.format != Format::Binary || !self.is_integer() => None,
            0.. => self.at(0),
            _ => pow10(self.scale.unsigned_abs()).map(|unit| self.value / unit),
        };
        whole.filter(|whole| whole.unsigned_abs() >= 1024)
    }

    fn write_decimal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut exponent) = (self.value, self.scale);
        while value % 10 == 0 {
            (value, exponent) = (value / 10, exponent.saturating_add(1));
        }
        while exponent % 3 != 0 {
            (value, exponent) = (value.saturating_mul(10), exponent.saturating_sub(1));
        }
        match DECIMAL.iter().find(|(_, known)| *known == exponent) {
            Some((suffix, _)) if self.format != Format::Exponent || exponent == 0 => write!(f, "{value}{suffix}"),
            // Kubernetes writes no suffix above `E`, which loses the value; this does not.
            _ => write!(f, "{value}e{exponent}"),
        }
    }
}

fn write_binary(mut value: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut suffix = "";
    for (next, _) in BINARY {
        if value % 1024 != 0 {
            break;
        }
        (value, suffix) = (value / 1024, next);
    }
    write!(f, "{value}{suffix}")
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.value.signum().cmp(&other.value.signum());
        if signs != Ordering::Equal || self.is_zero() {
            return signs;
        }
        let larger = self.magnitude().cmp(&other.magnitude()).then_with(|| {
            // As many digits before the point: both fit at the smaller scale, or the one that does not is the larger.
            let scale = self.scale.min(other.scale);
            match (self.at(scale), other.at(scale)) {
                (Some(this), Some(that)) => this.unsigned_abs().cmp(&that.unsigned_abs()),
                (this, that) => that.is_some().cmp(&this.is_some()),
            }
        });
        if self.is_negative() { larger.reverse() } else { larger }
    }
}

/// To calculate with.
impl Quantity {
    /// So many units of ten to the power of `scale`, such as -3 for thousandths.
    pub fn in_units(value: i64, scale: i32) -> Self {
        Self { value: value.into(), scale, format: Format::Decimal }
    }

    /// A whole number that is written with `Ki`, `Mi`, … where it can be.
    pub fn bytes(value: i64) -> Self {
        Self { value: value.into(), scale: 0, format: Format::Binary }
    }

    /// How many units of ten to the power of `scale` it is, rounded away from zero. What is beyond the range is at its end.
    pub fn units(&self, scale: i32) -> i64 {
        let power = pow10(self.scale.saturating_sub(scale).unsigned_abs());
        let whole = match power {
            Some(power) if self.scale < scale => divide_up(self.value, power),
            Some(power) => self.value.saturating_mul(power),
            None if self.scale < scale => self.value.signum(),
            None => self.value.signum().saturating_mul(i128::MAX),
        };
        i64::try_from(whole).unwrap_or(if self.is_negative() { i64::MIN } else { i64::MAX })
    }
}

fn pow10(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// Rounded away from zero.
fn divide_up(value: i128, by: i128) -> i128 {
    let rest = if value % by == 0 { 0 } else { value.signum() };
    value / by + rest
}

#[cfg(test)]
mod tests;
