//! `resource.Quantity`: fixed-point numbers with a suffix, parsed and formatted as in Kubernetes.
//!
//! Values are exact to a billionth and are rounded away from zero beyond it. More than 36 digits are refused,
//! which Kubernetes accepts.

mod parse;

use std::{borrow::Cow, cmp::Ordering, fmt};

use serde_json::Value;

/// A quantity: `1500m`, `2Gi`, `1e3`. Quantities compare by value, whatever their format.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// In units of ten to the power of `scale`.
    value: i128,
    scale: i32,
    format: QuantityFormat,
}

/// The kind of suffix in which a quantity is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityFormat {
    Decimal,
    Binary,
    /// `e3`
    Exponent,
}

/// Why a text is not a quantity, with Kubernetes' messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The smallest unit: a billionth.
const NANO_SCALE: i32 = -9;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

impl Quantity {
    pub const ZERO: Self = Self { value: 0, scale: 0, format: QuantityFormat::Decimal };

    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        parse::QuantityParts::split(text)?.quantity()
    }

    /// Parses a quantity in an object, which may also be a number; none for other types.
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::parse(text).ok(),
            Value::Number(number) => Self::parse(&number.to_string()).ok(),
            _ => None,
        }
    }

    pub fn from_int(value: i64) -> Self {
        Self { value: value.into(), scale: 0, format: QuantityFormat::Decimal }
    }

    pub fn is_zero(self) -> bool {
        self.value == 0
    }

    pub fn is_negative(self) -> bool {
        self.value < 0
    }

    pub fn is_integer(self) -> bool {
        self.scale >= 0 || pow10(self.scale.unsigned_abs()).is_some_and(|unit| self.value % unit == 0)
    }

    /// The value as a whole number, rounded away from zero; none if it is too large.
    pub fn to_int(&self) -> Option<i64> {
        self.scaled(0)
    }

    /// The value in units of ten to the power of `scale` (-3: thousandths), rounded away from zero; none if it
    /// is too large.
    pub fn scaled(&self, scale: i32) -> Option<i64> {
        // Zero is zero at every scale: `0E200`.
        if self.is_zero() {
            return Some(0);
        }
        let scale = self.scale.checked_sub(scale)?;
        let power = pow10(scale.unsigned_abs())?;
        let whole = if scale < 0 { divide_up(self.value, power) } else { self.value.checked_mul(power)? };
        i64::try_from(whole).ok()
    }

    /// The sum, in the format of the first that is not zero. A sum that is too large for exact numbers is the
    /// larger of the two.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let scale = self.scale.min(other.scale);
        let sum = self.rescale(scale).zip(other.rescale(scale)).and_then(|(one, two)| one.checked_add(two));
        let format = if self.is_zero() { other.format } else { self.format };
        sum.map_or_else(|| self.max(other), |value| Self { value, scale, format })
    }

    /// The value as a floating-point number, for ratios.
    pub fn to_f64(self) -> f64 {
        self.value as f64 * 10f64.powi(self.scale)
    }

    /// The value in units of ten to the power of `scale`, which must not exceed its own.
    fn rescale(self, scale: i32) -> Option<i128> {
        self.value.checked_mul(pow10(self.scale.checked_sub(scale)?.unsigned_abs())?)
    }

    /// The number of digits before the decimal point; negative for small fractions.
    fn magnitude(&self) -> i64 {
        let digits = self.value.unsigned_abs().checked_ilog10().map_or(0, |log| i64::from(log) + 1);
        digits + i64::from(self.scale)
    }
}

/// The text as Kubernetes would return it: the shortest form, or unchanged if it looks canonical.
pub fn canonical(text: &str) -> Result<Cow<'_, str>, QuantityError> {
    let parts = parse::QuantityParts::split(text)?;
    if parts.looks_canonical() {
        return Ok(Cow::Borrowed(text));
    }
    Ok(Cow::Owned(parts.quantity()?.to_string()))
}

/// The canonical form: the largest suffix without a fraction.
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
    /// The integer to format with a binary suffix, if possible.
    fn binary(&self) -> Option<i128> {
        let whole = match self.scale {
            _ if self.format != QuantityFormat::Binary || !self.is_integer() => None,
            0.. => self.rescale(0),
            _ => pow10(self.scale.unsigned_abs()).map(|unit| self.value / unit),
        };
        whole.filter(|whole| whole.unsigned_abs() >= 1024)
    }

    fn write_decimal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut value = self.value;
        let mut exponent = self.scale;
        while value % 10 == 0 {
            (value, exponent) = (value / 10, exponent.saturating_add(1));
        }
        while exponent % 3 != 0 {
            (value, exponent) = (value.saturating_mul(10), exponent.saturating_sub(1));
        }
        match DECIMAL.iter().find(|(_, known)| *known == exponent) {
            Some((suffix, _)) if self.format != QuantityFormat::Exponent || exponent == 0 => {
                write!(f, "{value}{suffix}")
            }
            // Kubernetes writes no suffix above `E`, which loses the value; this code does not.
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
            // The same number of digits before the point: both fit at the smaller scale, or the one that does
            // not is the larger.
            let scale = self.scale.min(other.scale);
            match (self.rescale(scale), other.rescale(scale)) {
                (Some(this), Some(that)) => this.unsigned_abs().cmp(&that.unsigned_abs()),
                (this, that) => that.is_some().cmp(&this.is_some()),
            }
        });
        if self.is_negative() { larger.reverse() } else { larger }
    }
}

impl Quantity {
    /// `value` units of ten to the power of `scale`, such as -3 for thousandths.
    pub fn in_units(value: i64, scale: i32) -> Self {
        Self { value: value.into(), scale, format: QuantityFormat::Decimal }
    }

    /// An integer that is formatted with `Ki`, `Mi`, … where possible.
    pub fn bytes(value: i64) -> Self {
        Self { value: value.into(), scale: 0, format: QuantityFormat::Binary }
    }

    /// The value in units of ten to the power of `scale`, rounded away from zero and saturating.
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

fn divide_up(value: i128, by: i128) -> i128 {
    let rest = if value % by == 0 { 0 } else { value.signum() };
    value / by + rest
}

#[cfg(test)]
mod tests;
