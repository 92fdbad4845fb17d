//! Limits of numbers.

use serde_json::{Number, Value};

use crate::schema::ValueValidation;

/// Reports `(value, detail)` for every violated limit.
pub(super) fn check(rules: Option<&ValueValidation>, number: &Number, mut report: impl FnMut(&str, &str)) {
    let Some(rules) = rules else { return };
    if let Some(factor) = rules.multiple_of.filter(|factor| !is_multiple(number, *factor)) {
        report(&shown(number), &format!("should be a multiple of {}", bound(number, factor)));
    }
    if let Some(min) = rules.minimum.filter(|min| breaks_min(number, *min, rules.exclusive_minimum)) {
        let or_equal = if rules.exclusive_minimum { "" } else { " or equal to" };
        report(&shown(number), &format!("should be greater than{or_equal} {}", bound(number, min)));
    }
    if let Some(max) = rules.maximum.filter(|max| breaks_max(number, *max, rules.exclusive_maximum)) {
        let or_equal = if rules.exclusive_maximum { "" } else { " or equal to" };
        report(&shown(number), &format!("should be less than{or_equal} {}", bound(number, max)));
    }
}

/// Compares numbers of different notation.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    matches!((one, other), (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64())
}

fn breaks_min(number: &Number, min: f64, exclusive: bool) -> bool {
    match whole(number) {
        Some(value) if exclusive => value <= truncated(min),
        Some(value) => value < truncated(min),
        None => number.as_f64().is_some_and(|value| if exclusive { value <= min } else { value < min }),
    }
}

fn breaks_max(number: &Number, max: f64, exclusive: bool) -> bool {
    match whole(number) {
        Some(value) if exclusive => value >= truncated(max),
        Some(value) => value > truncated(max),
        None => number.as_f64().is_some_and(|value| if exclusive { value >= max } else { value > max }),
    }
}

fn is_multiple(number: &Number, factor: f64) -> bool {
    match whole(number) {
        Some(value) => truncated(factor) > 0 && value % truncated(factor) == 0,
        None => {
            let value = number.as_f64().unwrap_or_default();
            let times = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
            factor > 0.0 && (times - times.round()).abs() < 1e-9
        }
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// A limit without its fraction, as go-openapi compares integers.
#[expect(clippy::cast_possible_truncation, reason = "saturates, which is right for a limit")]
fn truncated(limit: f64) -> i128 {
    limit as i128
}

/// A limit in a message: an integer if the value is one.
fn bound(number: &Number, limit: f64) -> String {
    if whole(number).is_some() { truncated(limit).to_string() } else { go_float(limit) }
}

fn shown(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => go_float(value),
        _ => number.to_string(),
    }
}

/// A float64 as Go prints it: the shortest digits, with an exponent from 1e+06 on and below 1e-04.
pub(crate) fn go_float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
