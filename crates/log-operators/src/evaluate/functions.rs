//! The functions of expressions.

use std::borrow::Cow;

use kubewake_config::file_log::expression::{ExpressionNode, Function};
use memchr::memmem;

use super::{Evaluated, MAX_TEXT_BYTES, Operand, evaluate, wrong_type};
use crate::{entry::LogEntry, operators::RecordError, value::LogValue};

/// The most items that `split` makes.
const MAX_ITEMS: usize = 100_000;

/// Calls a function. The settings have checked the number of arguments.
pub(super) fn call<'a>(function: Function, arguments: &'a [ExpressionNode], entry: &'a LogEntry) -> Evaluated<'a> {
    let mut values = arguments.iter().map(|argument| evaluate(argument, entry));
    let mut next = || values.next().transpose().map(|value| value.unwrap_or(Operand::Nil));
    let first = next()?;
    let second = next()?;
    let third = next()?;
    match function {
        Function::Len => length(&first).map(Operand::Int),
        Function::Int => to_int(&first).map(Operand::Int),
        Function::Float => to_float(&first).map(Operand::Float),
        Function::String => to_text(first),
        Function::Type => Ok(Operand::Text(Cow::Borrowed(type_name(&first).as_bytes()))),
        _ => {
            let text = text(first)?;
            match function {
                Function::Lower => Ok(owned(String::from_utf8_lossy(&text).to_lowercase())),
                Function::Upper => Ok(owned(String::from_utf8_lossy(&text).to_uppercase())),
                Function::Trim => trim(text, &second),
                _ => apply_part(function, text, &self::text(second)?, third),
            }
        }
    }
}

fn text(value: Operand<'_>) -> Result<Cow<'_, [u8]>, RecordError> {
    match value {
        Operand::Text(text) => Ok(text),
        other => Err(wrong_type("a function of texts", &other)),
    }
}

fn owned<'a>(text: String) -> Operand<'a> {
    Operand::Text(Cow::Owned(text.into()))
}

/// The functions of a text and a part of it.
fn apply_part<'a>(function: Function, text: Cow<'a, [u8]>, part: &[u8], third: Operand<'a>) -> Evaluated<'a> {
    Ok(match function {
        Function::HasPrefix => Operand::Bool(text.starts_with(part)),
        Function::HasSuffix => Operand::Bool(text.ends_with(part)),
        Function::TrimPrefix => cut(text, |text| text.strip_prefix(part)),
        Function::TrimSuffix => cut(text, |text| text.strip_suffix(part)),
        Function::IndexOf => {
            let found = memmem::find(&text, part).and_then(|place| i64::try_from(place).ok());
            Operand::Int(found.unwrap_or(-1))
        }
        Function::Split => split(&text, part)?,
        _ => replace(&text, part, &self::text(third)?)?,
    })
}

/// A part of a text, or the whole one if there is no such part.
fn cut<'a>(text: Cow<'a, [u8]>, part: impl Fn(&[u8]) -> Option<&[u8]>) -> Operand<'a> {
    Operand::Text(match text {
        Cow::Borrowed(text) => Cow::Borrowed(part(text).unwrap_or(text)),
        Cow::Owned(text) => Cow::Owned(part(&text).unwrap_or(&text).to_vec()),
    })
}

fn trim<'a>(text: Cow<'a, [u8]>, characters: &Operand<'_>) -> Evaluated<'a> {
    let characters = match characters {
        Operand::Nil => None,
        Operand::Text(characters) => Some(String::from_utf8_lossy(characters)),
        other => return Err(wrong_type("`trim`", other)),
    };
    let text = String::from_utf8_lossy(&text);
    let trimmed = match characters {
        None => text.trim(),
        Some(characters) => text.trim_matches(|c| characters.contains(c)),
    };
    Ok(owned(trimmed.to_owned()))
}

fn split<'a>(text: &[u8], separator: &[u8]) -> Evaluated<'a> {
    let mut items = Vec::new();
    let mut push = |item: &[u8]| {
        items.push(LogValue::Text(item.to_vec()));
        if items.len() > MAX_ITEMS {
            Err(RecordError::new(format!("`split` made more than {MAX_ITEMS} items")))
        } else {
            Ok(())
        }
    };
    if separator.is_empty() {
        // Without a separator there is an item for each character.
        for character in String::from_utf8_lossy(text).chars() {
            push(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        }
        return Ok(Operand::List(Cow::Owned(items)));
    }
    let mut start = 0;
    for place in memmem::find_iter(text, separator) {
        push(text.get(start..place).unwrap_or_default())?;
        start = place + separator.len();
    }
    push(text.get(start..).unwrap_or_default())?;
    Ok(Operand::List(Cow::Owned(items)))
}

fn replace<'a>(text: &[u8], old: &[u8], new: &[u8]) -> Evaluated<'a> {
    if old.is_empty() {
        return Err(RecordError::new("`replace` needs a text that is not empty"));
    }
    let count = memmem::find_iter(text, old).count();
    if count.saturating_mul(new.len()).saturating_add(text.len()) > MAX_TEXT_BYTES {
        return Err(RecordError::new(format!("a text would be longer than {MAX_TEXT_BYTES} bytes")));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut start = 0;
    for place in memmem::find_iter(text, old) {
        out.extend_from_slice(text.get(start..place).unwrap_or_default());
        out.extend_from_slice(new);
        start = place + old.len();
    }
    out.extend_from_slice(text.get(start..).unwrap_or_default());
    Ok(Operand::Text(Cow::Owned(out)))
}

fn length(value: &Operand<'_>) -> Result<i64, RecordError> {
    let length = match value {
        Operand::Text(text) => String::from_utf8_lossy(text).chars().count(),
        Operand::Bytes(bytes) => bytes.len(),
        Operand::List(items) => items.len(),
        Operand::Map(map) => map.len(),
        other => return Err(wrong_type("`len`", other)),
    };
    Ok(i64::try_from(length).unwrap_or(i64::MAX))
}

fn to_int(value: &Operand<'_>) -> Result<i64, RecordError> {
    match value {
        Operand::Int(value) => Ok(*value),
        Operand::Float(value) => Ok(*value as i64),
        Operand::Text(text) => parsed(text),
        other => Err(wrong_type("`int`", other)),
    }
}

fn to_float(value: &Operand<'_>) -> Result<f64, RecordError> {
    match value {
        Operand::Int(value) => Ok(*value as f64),
        Operand::Float(value) => Ok(*value),
        Operand::Text(text) => parsed(text),
        other => Err(wrong_type("`float`", other)),
    }
}

fn parsed<T: std::str::FromStr>(text: &[u8]) -> Result<T, RecordError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| RecordError::new("a text is not a number"))
}

fn to_text(value: Operand<'_>) -> Evaluated<'_> {
    Ok(match value {
        Operand::Text(text) => Operand::Text(text),
        Operand::Nil => owned("<nil>".to_owned()),
        Operand::Bool(value) => owned(value.to_string()),
        Operand::Int(value) => owned(value.to_string()),
        Operand::Float(value) => owned(float_text(value)),
        other => return Err(wrong_type("`string`", &other)),
    })
}

/// A float as Go writes it.
pub(crate) fn float_text(value: f64) -> String {
    if !value.is_finite() {
        return match value {
            value if value.is_nan() => "NaN".to_owned(),
            value if value > 0.0 => "+Inf".to_owned(),
            _ => "-Inf".to_owned(),
        };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..=20 => value.to_string(),
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs()),
    }
}

fn type_name(value: &Operand<'_>) -> &'static str {
    match value {
        Operand::Nil => "nil",
        Operand::Bool(_) => "bool",
        Operand::Int(_) => "int",
        Operand::Float(_) => "float",
        Operand::Text(_) => "string",
        Operand::Bytes(_) | Operand::List(_) => "array",
        Operand::Map(_) => "map",
        Operand::Time(_) => "time.Time",
    }
}
