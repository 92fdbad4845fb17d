//! Single values. Types are as strict as the Collector's: a quoted number is text, and `yes` is no boolean.

use std::time::Duration;

use super::{cursor::Cursor, duration, report::Report};
use crate::{Secret, yaml::Value};

/// Text. Of a value that came from outside the document, the text as it was read counts: `0123` stays `0123`.
pub(crate) fn text(at: &Cursor<'_>, report: &Report) -> Option<String> {
    report.is_public(at);
    any_text(at, report)
}

fn any_text(at: &Cursor<'_>, report: &Report) -> Option<String> {
    let original = at.node.origin.as_ref().and_then(|origin| origin.text.as_deref());
    match (&at.node.value, original) {
        (Value::Bad, _) => None,
        (_, Some(text)) => Some(text.to_owned()),
        (Value::String(text), None) => Some(text.clone()),
        (Value::Null, None) => Some(String::new()),
        (value, None) => {
            let help = match value {
                Value::Map(_) | Value::Seq(_) => None,
                _ => Some("put it in quotes".to_owned()),
            };
            wrong_type(at, report, "text", help)
        }
    }
}

/// Text that must never be shown.
pub(crate) fn secret(at: &Cursor<'_>, report: &Report) -> Option<Secret> {
    any_text(at, report).map(Secret::new)
}

/// `true` or `false`.
pub(crate) fn boolean(at: &Cursor<'_>, report: &Report) -> Option<bool> {
    report.is_public(at);
    match at.node.value {
        Value::Bad => None,
        Value::Bool(value) => Some(value),
        Value::Null => Some(false),
        _ => wrong_type(at, report, "a boolean", Some("write `true` or `false`, without quotes".into())),
    }
}

/// A whole number. As in the Collector a fraction is cut off; here that is also said.
pub(crate) fn integer(at: &Cursor<'_>, report: &Report) -> Option<i64> {
    report.is_public(at);
    match at.node.value {
        Value::Bad => None,
        Value::Int(value) => Some(value),
        Value::Null => Some(0),
        Value::Float(value) if value.is_finite() && value.abs() < i64::MAX as f64 => {
            if value.fract() != 0.0 {
                let message = format!("`{}` takes whole numbers; the fraction is cut off", at.name());
                report.warning(at, message, None);
            }
            Some(value as i64)
        }
        Value::String(_) => wrong_type(at, report, "a number", Some("write it as digits, without quotes".into())),
        _ => wrong_type(at, report, "a number", None),
    }
}

/// A whole number in a range.
pub(crate) fn within(at: &Cursor<'_>, report: &Report, least: i64, most: i64) -> Option<i64> {
    let value = integer(at, report)?;
    if (least..=most).contains(&value) {
        return Some(value);
    }
    let wanted = match least {
        _ if value > most => format!("must be at most {most}"),
        0 => "must not be negative".to_owned(),
        1 => "must be positive".to_owned(),
        least => format!("must be at least {least}"),
    };
    report.error(at, format!("`{}` {wanted}", at.name()), None);
    None
}

/// A whole number from 0 on that 32 bits hold.
pub(crate) fn u32(at: &Cursor<'_>, report: &Report) -> Option<u32> {
    within(at, report, 0, u32::MAX.into()).and_then(|value| value.try_into().ok())
}

/// A number.
pub(crate) fn float(at: &Cursor<'_>, report: &Report) -> Option<f64> {
    report.is_public(at);
    match at.node.value {
        Value::Bad => None,
        Value::Float(value) => Some(value),
        Value::Int(value) => Some(value as f64),
        Value::Null => Some(0.0),
        _ => wrong_type(at, report, "a number", None),
    }
}

/// A duration in nanoseconds, which may be negative: Go's notation, or a plain number of nanoseconds.
pub(crate) fn nanoseconds(at: &Cursor<'_>, report: &Report) -> Option<i64> {
    report.is_public(at);
    let Value::String(text) = &at.node.value else {
        return match at.node.value {
            Value::Int(_) | Value::Float(_) | Value::Null | Value::Bad => integer(at, report),
            _ => wrong_type(at, report, "a duration", Some(DURATION_HELP.into())),
        };
    };
    match duration::parse(text) {
        Ok(value) => Some(value),
        Err(error) => {
            let shown = at.subject(text);
            let help = match error {
                duration::DurationError::MissingUnit if at.node.origin.is_none() => {
                    format!("write \"{text}s\" for seconds; the units are ns, us, ms, s, m and h")
                }
                _ => DURATION_HELP.into(),
            };
            report.error(at, format!("`{}`: {shown} {error}", at.name()), Some(help));
            None
        }
    }
}

const DURATION_HELP: &str = "write a number with a unit, such as 500ms, 1m30s or 1.5h";

/// A duration from zero on.
pub(crate) fn duration(at: &Cursor<'_>, report: &Report) -> Option<Duration> {
    let value = nanoseconds(at, report)?;
    match u64::try_from(value) {
        Ok(value) => {
            hint_nanoseconds(at, report);
            Some(Duration::from_nanos(value))
        }
        Err(_) => {
            report.error(at, format!("`{}` must not be negative", at.name()), None);
            None
        }
    }
}

/// A duration, of which the Collector takes anything below zero for "none".
pub(crate) fn loose_duration(at: &Cursor<'_>, report: &Report) -> Option<Duration> {
    let value = nanoseconds(at, report)?;
    hint_nanoseconds(at, report);
    Some(Duration::from_nanos(u64::try_from(value).unwrap_or(0)))
}

/// `timeout: 10` is ten nanoseconds, which nobody means.
fn hint_nanoseconds(at: &Cursor<'_>, report: &Report) {
    if let Value::Int(value @ 1..1_000_000) = at.node.value {
        let help = at.node.origin.is_none().then(|| format!("write {value}s if seconds were meant"));
        report.warning(at, format!("`{}` is a number without a unit, which counts nanoseconds", at.name()), help);
    }
}

/// One of a few words.
pub(crate) fn keyword<T: Copy>(at: &Cursor<'_>, report: &Report, known: &[(&str, T)]) -> Option<T> {
    let word = text(at, report)?;
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == word) {
        return Some(*value);
    }
    unknown_word(at, report, &word, &known.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    None
}

/// One of a few words, in upper or lower case.
pub(crate) fn keyword_any_case<T: Copy>(at: &Cursor<'_>, report: &Report, known: &[(&str, T)]) -> Option<T> {
    let word = text(at, report)?;
    if let Some((_, value)) = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word)) {
        return Some(*value);
    }
    unknown_word(at, report, &word, &known.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    None
}

fn unknown_word(at: &Cursor<'_>, report: &Report, word: &str, known: &[&str]) {
    let help = match at.node.origin {
        None => report.suggest(word, known, "known values"),
        Some(_) => report.suggest("", known, "known values"),
    };
    report.error(at, format!("unknown `{}` {}", at.name(), at.quote(word)), help);
}

/// A list of texts. As in the Collector one text is cut at its commas.
pub(crate) fn texts(at: &Cursor<'_>, report: &Report) -> Option<Vec<String>> {
    match &at.node.value {
        Value::Bad => None,
        Value::Null => Some(Vec::new()),
        Value::Seq(_) => Some(at.items()?.filter_map(|item| text(&item, report)).collect()),
        Value::String(text) if text.is_empty() => Some(Vec::new()),
        Value::String(text) => Some(text.split(',').map(str::to_owned).collect()),
        _ => wrong_type(at, report, "a list", None),
    }
}

/// Says that a value is of the wrong type.
pub(crate) fn wrong_type<T>(at: &Cursor<'_>, report: &Report, wanted: &str, help: Option<String>) -> Option<T> {
    let found = match (&at.node.value, &at.node.origin) {
        (Value::Bad, _) => return None,
        (_, Some(origin)) => {
            format!("the value of {}, which is {}", crate::problem::crop(&origin.reference), at.node.kind())
        }
        (_, None) => at.node.kind().to_owned(),
    };
    let syntax = at.node.origin.as_ref().and_then(|origin| origin.syntax.as_ref());
    let help = match syntax {
        Some(syntax) => Some(format!("it was taken as text because it cannot be read as YAML: {syntax}")),
        None => help,
    };
    report.error(at, format!("`{}` must be {wanted}, not {found}", at.name()), help);
    None
}
