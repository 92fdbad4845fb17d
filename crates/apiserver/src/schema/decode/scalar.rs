//! Values without parts: checked, and written as Go would.

use std::borrow::Cow;

use serde_json::{Number, Value, json};

use super::{
    super::{Scalar, Shape, quantity},
    base64,
    error::{DecodeError, go_scalar},
    time,
};
use crate::api::go;

/// Checks a value, and puts it into the form that Go prints.
pub(super) fn check(scalar: Scalar, value: &mut Value) -> Result<(), DecodeError> {
    match (scalar, &mut *value) {
        (Scalar::String | Scalar::Duration | Scalar::IntOrString, Value::String(_))
        | (Scalar::Boolean, Value::Bool(_)) => Ok(()),
        (Scalar::Int32 | Scalar::IntOrString, Value::Number(number)) => {
            integer(number, scalar, i32::MIN.into(), i32::MAX.into())
        }
        (Scalar::Int64 | Scalar::Integer, Value::Number(number)) => integer(number, scalar, i64::MIN, i64::MAX),
        (Scalar::Double, Value::Number(number)) => {
            shorten(number);
            Ok(())
        }
        (Scalar::Bytes, Value::String(text)) => replace(text, base64::normal),
        (Scalar::Time, _) => moment(value, time::Precision::Seconds),
        (Scalar::MicroTime, _) => moment(value, time::Precision::Micros),
        (Scalar::Quantity, _) => amount(value),
        (_, other) => Err(DecodeError::wrong(go::json_kind(other), go_scalar(scalar))),
    }
}

/// What null is among the items of a list or the values of a map.
pub(super) fn zero_item(shape: &Shape) -> Value {
    match shape {
        Shape::Scalar(Scalar::String | Scalar::Bytes | Scalar::Duration) => json!(""),
        Shape::Scalar(Scalar::Boolean) => json!(false),
        Shape::Scalar(Scalar::Quantity) => json!("0"),
        Shape::Scalar(Scalar::Time | Scalar::MicroTime) => Value::Null,
        Shape::Scalar(_) => json!(0),
        Shape::Object { .. } => json!({}),
        Shape::Any | Shape::Map { .. } | Shape::List { .. } => Value::Null,
    }
}

fn integer(number: &mut Number, scalar: Scalar, min: i64, max: i64) -> Result<(), DecodeError> {
    if number.as_i64().is_some_and(|value| (min..=max).contains(&value)) {
        return Ok(());
    }
    // `-0` is read as a fraction.
    if number.as_f64() == Some(0.0) && number.as_f64().is_some_and(f64::is_sign_negative) {
        *number = 0.into();
        return Ok(());
    }
    Err(DecodeError::wrong(format!("number {number}"), go_scalar(scalar)))
}

/// Go prints whole floats without a fraction.
fn shorten(number: &mut Number) {
    // Above this not every whole number is a float, and Go goes over to exponents soon after.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let whole = number.as_f64().filter(|value| number.is_f64() && value.fract() == 0.0 && value.abs() <= EXACT);
    if let Some(value) = whole {
        #[expect(clippy::cast_possible_truncation, reason = "whole and small, as checked above")]
        let value = value as i64;
        *number = value.into();
    }
}

fn replace<E: ToString>(
    text: &mut String,
    normal: impl FnOnce(&str) -> Result<Cow<'_, str>, E>,
) -> Result<(), DecodeError> {
    let changed = match normal(text).map_err(|error| DecodeError::text(error.to_string()))? {
        Cow::Borrowed(same) if same.len() == text.len() => None,
        other => Some(other.into_owned()),
    };
    if let Some(changed) = changed {
        *text = changed;
    }
    Ok(())
}

/// A time. The zero time is null, as Go has no other word for it.
fn moment(value: &mut Value, precision: time::Precision) -> Result<(), DecodeError> {
    let Value::String(text) = &*value else {
        return Err(DecodeError::wrong(go::json_kind(value), go_scalar(Scalar::Time)));
    };
    let normal = time::normal(text, precision).map_err(DecodeError::text)?;
    if normal.as_ref().unwrap_or(text).starts_with(time::ZERO) {
        *value = Value::Null;
    } else if let Some(normal) = normal {
        *value = Value::String(normal);
    }
    Ok(())
}

fn amount(value: &mut Value) -> Result<(), DecodeError> {
    if let Value::String(text) = value {
        return replace(text, |text| quantity::canonical(text.trim()));
    }
    let text = value.to_string();
    let written = quantity::canonical(&text).map_err(|error| DecodeError::text(error.to_string()))?;
    *value = Value::String(written.into_owned());
    Ok(())
}
