//! Durations in Go's notation.

use std::time::Duration;

use thiserror::Error;

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// Less than zero: `-5s`.
    #[error("is negative")]
    Negative,
    /// Empty, or not a number where one must be.
    #[error("is not a duration")]
    Invalid,
    /// A number without a unit: `10`.
    #[error("has no unit")]
    MissingUnit,
    /// Such as `10 parsecs`.
    #[error("has an unknown unit")]
    UnknownUnit,
    /// More than about 292 years.
    #[error("is too long")]
    Overflow,
}

/// Parses a duration such as `1m30s`, `1.5h` or `500ms`.
///
/// # Errors
///
/// If the text is no duration, or negative.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    u64::try_from(parse(text)?).map(Duration::from_nanos).map_err(|_| DurationError::Negative)
}

/// Parses a text such as `1m30s`, `-1.5h`, `500ms` to nanoseconds. As in Go, only `0` needs no unit.
pub(crate) fn parse(text: &str) -> Result<i64, DurationError> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationError::Invalid);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (part, after) = component(rest)?;
        total += part;
        if total > i128::from(i64::MAX) + 1 {
            return Err(DurationError::Overflow);
        }
        rest = after;
    }
    i64::try_from(if negative { -total } else { total }).map_err(|_| DurationError::Overflow)
}

/// Parses one number with its unit to nanoseconds, and returns the rest of the text.
fn component(text: &str) -> Result<(i128, &str), DurationError> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationError::Invalid);
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let unit = nanoseconds(unit)?;
    let whole: i128 = match whole {
        "" => 0,
        // More digits than this overflow whatever the unit.
        whole if whole.trim_start_matches('0').len() > 19 => return Err(DurationError::Overflow),
        whole => whole.parse().map_err(|_| DurationError::Overflow)?,
    };
    Ok((whole * unit + part_of(fraction, unit), rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn nanoseconds(unit: &str) -> Result<i128, DurationError> {
    Ok(match unit {
        "" => return Err(DurationError::MissingUnit),
        "ns" => 1,
        // The Greek letter mu and the micro sign.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(DurationError::UnknownUnit),
    })
}

/// The value of the digits after the point, as a part of the unit.
fn part_of(fraction: &str, unit: i128) -> i128 {
    // Digits beyond the 18th are less than a nanosecond of any unit.
    let kept = fraction.get(..fraction.len().min(18)).unwrap_or_default();
    let scale = 10_i128.pow(u32::try_from(kept.len()).unwrap_or(0));
    kept.parse::<i128>().unwrap_or(0) * unit / scale
}
