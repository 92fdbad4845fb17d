//! Decodes scalars: checks them, and normalizes them as Go does.

use std::borrow::Cow;

use serde_json::{Number, Value, json};

use super::{
    super::{ScalarType, SchemaShape, quantity},
    base64,
    error::{DecodeError, go_scalar},
    time,
};
use crate::api::go_format;

/// Checks and normalizes a value.
pub(super) fn check_scalar(scalar: ScalarType, value: &mut Value) -> Result<(), DecodeError> {
    match (scalar, &mut *value) {
        (ScalarType::String | ScalarType::Duration | ScalarType::IntOrString, Value::String(_))
        | (ScalarType::Boolean, Value::Bool(_)) => Ok(()),
        (ScalarType::Int32 | ScalarType::IntOrString, Value::Number(number)) => {
            integer(number, scalar, i32::MIN.into(), i32::MAX.into())
        }
        (ScalarType::Int64 | ScalarType::Integer, Value::Number(number)) => integer(number, scalar, i64::MIN, i64::MAX),
        (ScalarType::Double, Value::Number(number)) => {
            shorten(number);
            Ok(())
        }
        (ScalarType::Bytes, Value::String(text)) => replace(text, base64::normalize_base64),
        (ScalarType::Time, _) => normalize_time_value(value, time::TimePrecision::Seconds),
        (ScalarType::MicroTime, _) => normalize_time_value(value, time::TimePrecision::Micros),
        (ScalarType::Quantity, _) => normalize_quantity(value),
        (_, other) => Err(DecodeError::unexpected_type(go_format::json_kind(other), go_scalar(scalar))),
    }
}

/// The value of null in a list or a map.
pub(super) fn zero_item(shape: &SchemaShape) -> Value {
    match shape {
        SchemaShape::Scalar(ScalarType::String | ScalarType::Bytes | ScalarType::Duration) => json!(""),
        SchemaShape::Scalar(ScalarType::Boolean) => json!(false),
        SchemaShape::Scalar(ScalarType::Quantity) => json!("0"),
        SchemaShape::Scalar(ScalarType::Time | ScalarType::MicroTime) => Value::Null,
        SchemaShape::Scalar(_) => json!(0),
        SchemaShape::Object { .. } => json!({}),
        SchemaShape::Any | SchemaShape::Map { .. } | SchemaShape::List { .. } => Value::Null,
    }
}

fn integer(number: &mut Number, scalar: ScalarType, min: i64, max: i64) -> Result<(), DecodeError> {
    if number.as_i64().is_some_and(|value| (min..=max).contains(&value)) {
        return Ok(());
    }
    // `-0` is parsed as a float.
    if number.as_f64() == Some(0.0) && number.as_f64().is_some_and(f64::is_sign_negative) {
        *number = 0.into();
        return Ok(());
    }
    Err(DecodeError::unexpected_type(format!("number {number}"), go_scalar(scalar)))
}

/// Go prints whole floats without a fraction.
fn shorten(number: &mut Number) {
    // Above this not every integer is a float, and Go changes to exponents soon after.
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

/// Normalizes a time. The zero time becomes null, as in Go.
fn normalize_time_value(value: &mut Value, precision: time::TimePrecision) -> Result<(), DecodeError> {
    let Value::String(text) = &*value else {
        return Err(DecodeError::unexpected_type(go_format::json_kind(value), go_scalar(ScalarType::Time)));
    };
    let normal = time::normalize_time(text, precision).map_err(DecodeError::text)?;
    if normal.as_ref().unwrap_or(text).starts_with(time::ZERO) {
        *value = Value::Null;
    } else if let Some(normal) = normal {
        *value = Value::String(normal);
    }
    Ok(())
}

fn normalize_quantity(value: &mut Value) -> Result<(), DecodeError> {
    if let Value::String(text) = value {
        return replace(text, |text| quantity::canonical(text.trim()));
    }
    let text = value.to_string();
    let written = quantity::canonical(&text).map_err(|error| DecodeError::text(error.to_string()))?;
    *value = Value::String(written.into_owned());
    Ok(())
}
