//! Parses quantities.

use super::{BINARY, DECIMAL, NANO_SCALE, Quantity, QuantityError, QuantityFormat, divide_up, pow10};

/// The limit of digits, so that a value can still be multiplied by a hundred to fit a suffix.
const MAX_DIGITS: u32 = 36;
/// The limit of digits when a binary suffix multiplies them by up to 2^60.
const MAX_BINARY_DIGITS: u32 = 20;

pub(super) struct QuantityParts<'a> {
    negative: bool,
    /// Before the point, without leading zeros; at least `0`.
    whole: &'a str,
    fraction: &'a str,
    base: u32,
    exponent: i32,
    format: QuantityFormat,
}

impl<'a> QuantityParts<'a> {
    /// Splits every text that Kubernetes accepts: also `.5`, `5.`, and a sign alone, which is zero.
    pub(super) fn split(text: &'a str) -> Result<Self, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let negative = text.starts_with('-');
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, rest) = digits(unsigned.trim_start_matches('0'));
        let whole = if whole.is_empty() { "0" } else { whole };
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
        let letters = suffix.trim_start_matches(|letter| "eEinumkKMGTP".contains(letter));
        let (_, left) = digits(letters.strip_prefix(['-', '+']).unwrap_or(letters));
        if !left.is_empty() {
            return Err(QuantityError::Format);
        }
        let (base, exponent, format) = interpret(suffix).ok_or(QuantityError::Suffix)?;
        Ok(Self { negative, whole, fraction, base, exponent, format })
    }

    /// Kubernetes keeps a text that passes this quick check, although `1.500` and `+1` are not canonical.
    pub(super) fn looks_canonical(&self) -> bool {
        let digits = self.whole.len() + self.fraction.len();
        if self.base == 2 {
            let room = 14_usize.checked_sub(self.whole.len() + self.exponent.unsigned_abs() as usize * 3 / 10);
            let odd = self.whole.parse::<i64>().is_ok_and(|value| value & 7 != 0);
            return self.fraction.is_empty() && room.is_some() && odd;
        }
        let scale = i64::from(self.exponent) - self.fraction.len() as i64;
        let zeros = if self.fraction.len() < 3 { joined_ends_in_zeros(self) } else { self.fraction.ends_with("000") };
        digits <= 18 && scale >= i64::from(NANO_SCALE) && scale % 3 == 0 && !zeros && !self.whole.starts_with('0')
    }

    pub(super) fn quantity(&self) -> Result<Quantity, QuantityError> {
        let amount = if self.base == 2 { self.binary()? } else { self.decimal()? };
        Ok(if self.negative { Quantity { value: -amount.value, ..amount } } else { amount })
    }

    fn decimal(&self) -> Result<Quantity, QuantityError> {
        let (value, place) = self.mantissa(MAX_DIGITS)?;
        let scale = self.exponent.checked_add(place).ok_or(QuantityError::Numeric)?;
        Ok(rounded(value, scale, self.format))
    }

    fn binary(&self) -> Result<Quantity, QuantityError> {
        // As in Kubernetes: binary quantities end at the range of int64, and below one they are formatted as
        // decimals.
        let most = Quantity { value: i64::MAX.into(), scale: 0, format: self.format };
        let Ok((value, place)) = self.mantissa(MAX_BINARY_DIGITS) else { return Ok(most) };
        let amount = rounded(value.saturating_mul(1 << self.exponent), place, self.format);
        let small = amount < Quantity::from_int(1) && !amount.is_zero();
        Ok(if small { Quantity { format: QuantityFormat::Decimal, ..amount } } else { amount.min(most) })
    }

    /// The digits as a number without trailing zeros, and the power of ten of its last digit. Digits beyond
    /// `most` round a fraction up; a whole number may not have more.
    fn mantissa(&self, most: u32) -> Result<(i128, i32), QuantityError> {
        let whole = i32::try_from(self.whole.len()).map_err(|_| QuantityError::Numeric)?;
        let mut value = 0_i128;
        let mut place = 0;
        let mut used = 0;
        for (index, digit) in (1..).zip(self.whole.bytes().chain(self.fraction.bytes())) {
            if digit == b'0' {
                continue;
            }
            let power = whole - index;
            let gap = if value == 0 { 1 } else { (place - power).unsigned_abs() };
            if used + gap > most {
                let left = most - used;
                let up = pow10(left).and_then(|unit| value.checked_mul(unit)).map(|value| value + 1);
                return up
                    .filter(|_| power < 0)
                    .map(|up| (up, place - left.cast_signed()))
                    .ok_or(QuantityError::Numeric);
            }
            let unit = pow10(gap).ok_or(QuantityError::Numeric)?;
            (value, place, used) = (value * unit + i128::from(digit - b'0'), power, used + gap);
        }
        Ok((value, place))
    }
}

fn rounded(value: i128, scale: i32, format: QuantityFormat) -> Quantity {
    if scale >= NANO_SCALE {
        return Quantity { value, scale, format };
    }
    let value = match pow10(NANO_SCALE.saturating_sub(scale).unsigned_abs()) {
        Some(unit) => divide_up(value, unit),
        None => value.signum(),
    };
    Quantity { value, scale: NANO_SCALE, format }
}

/// The leading digits of a text, and the rest.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Whether whole and fraction together end in three zeros.
fn joined_ends_in_zeros(parts: &QuantityParts<'_>) -> bool {
    let mut last = parts.whole.bytes().chain(parts.fraction.bytes()).rev().take(3);
    parts.whole.len() + parts.fraction.len() >= 3 && last.all(|digit| digit == b'0')
}

fn interpret(suffix: &str) -> Option<(u32, i32, QuantityFormat)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(known, _)| *known == suffix) {
        return Some((10, *exponent, QuantityFormat::Decimal));
    }
    if let Some((_, exponent)) = BINARY.iter().find(|(known, _)| *known == suffix) {
        return Some((2, *exponent, QuantityFormat::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((10, exponent, QuantityFormat::Exponent))
}
