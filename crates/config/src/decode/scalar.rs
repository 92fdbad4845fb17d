//! Decodes scalars. Types are as strict as the Collector's: a quoted number is text, and `yes` is not a
//! boolean.

use std::time::Duration;

use super::{cursor::Cursor, duration, report::DecodeReport};
use crate::{SecretString, yaml::NodeValue};

/// Text. For a value from outside the document the original text is used: `0123` stays `0123`.
pub(crate) fn text(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    report.mark_public(at);
    any_text(at, report)
}

fn any_text(at: &Cursor<'_>, report: &DecodeReport) -> Option<String> {
    let original = at.node.origin.as_ref().and_then(|origin| origin.text.as_deref());
    match (&at.node.value, original) {
        (NodeValue::Bad, _) => None,
        (_, Some(text)) => Some(text.to_owned()),
        (NodeValue::String(text), None) => Some(text.clone()),
        (NodeValue::Null, None) => Some(String::new()),
        (value, None) => {
            let help = match value {
                NodeValue::Map(_) | NodeValue::Seq(_) => None,
                _ => Some("put it in quotes".to_owned()),
            };
            wrong_type(at, report, "text", help)
        }
    }
}

/// Text that must never be shown.
pub(crate) fn secret(at: &Cursor<'_>, report: &DecodeReport) -> Option<SecretString> {
    any_text(at, report).map(SecretString::new)
}

pub(crate) fn boolean(at: &Cursor<'_>, report: &DecodeReport) -> Option<bool> {
    report.mark_public(at);
    match at.node.value {
        NodeValue::Bad => None,
        NodeValue::Bool(value) => Some(value),
        NodeValue::Null => Some(false),
        _ => wrong_type(at, report, "a boolean", Some("write `true` or `false`, without quotes".into())),
    }
}

/// A whole number. As in the Collector a fraction is cut off, here with a warning.
pub(crate) fn integer(at: &Cursor<'_>, report: &DecodeReport) -> Option<i64> {
    report.mark_public(at);
    match at.node.value {
        NodeValue::Bad => None,
        NodeValue::Int(value) => Some(value),
        NodeValue::Null => Some(0),
        NodeValue::Float(value) if value.is_finite() && value.abs() < i64::MAX as f64 => {
            if value.fract() != 0.0 {
                let message = format!("`{}` takes whole numbers; the fraction is cut off", at.name());
                report.warning(at, message, None);
            }
            Some(value as i64)
        }
        NodeValue::String(_) => wrong_type(at, report, "a number", Some("write it as digits, without quotes".into())),
        _ => wrong_type(at, report, "a number", None),
    }
}

/// A whole number in a range.
pub(crate) fn integer_in_range(at: &Cursor<'_>, report: &DecodeReport, least: i64, most: i64) -> Option<i64> {
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

/// A whole number that fits into an unsigned 32-bit integer.
pub(crate) fn u32(at: &Cursor<'_>, report: &DecodeReport) -> Option<u32> {
    integer_in_range(at, report, 0, u32::MAX.into()).and_then(|value| value.try_into().ok())
}

pub(crate) fn float(at: &Cursor<'_>, report: &DecodeReport) -> Option<f64> {
    report.mark_public(at);
    match at.node.value {
        NodeValue::Bad => None,
        NodeValue::Float(value) => Some(value),
        NodeValue::Int(value) => Some(value as f64),
        NodeValue::Null => Some(0.0),
        _ => wrong_type(at, report, "a number", None),
    }
}

/// A duration in nanoseconds, which may be negative: in Go's notation, or a plain number of nanoseconds.
pub(crate) fn nanoseconds(at: &Cursor<'_>, report: &DecodeReport) -> Option<i64> {
    report.mark_public(at);
    let NodeValue::String(text) = &at.node.value else {
        return match at.node.value {
            NodeValue::Int(_) | NodeValue::Float(_) | NodeValue::Null | NodeValue::Bad => integer(at, report),
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

/// A duration that is not negative.
pub(crate) fn duration(at: &Cursor<'_>, report: &DecodeReport) -> Option<Duration> {
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

/// A duration; negative ones mean "none", as in the Collector.
pub(crate) fn loose_duration(at: &Cursor<'_>, report: &DecodeReport) -> Option<Duration> {
    let value = nanoseconds(at, report)?;
    hint_nanoseconds(at, report);
    Some(Duration::from_nanos(u64::try_from(value).unwrap_or(0)))
}

/// Warns that `timeout: 10` is ten nanoseconds, which nobody means.
fn hint_nanoseconds(at: &Cursor<'_>, report: &DecodeReport) {
    if let NodeValue::Int(value @ 1..1_000_000) = at.node.value {
        let help = at.node.origin.is_none().then(|| format!("write {value}s for seconds"));
        report.warning(at, format!("`{}` is a number without a unit and is read as nanoseconds", at.name()), help);
    }
}

/// One of a few words.
pub(crate) fn keyword<T: Copy>(at: &Cursor<'_>, report: &DecodeReport, known: &[(&str, T)]) -> Option<T> {
    let word = text(at, report)?;
    if let Some((_, value)) = known.iter().find(|(name, _)| *name == word) {
        return Some(*value);
    }
    unknown_word(at, report, &word, &known.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    None
}

/// One of a few words, in upper or lower case.
pub(crate) fn keyword_any_case<T: Copy>(at: &Cursor<'_>, report: &DecodeReport, known: &[(&str, T)]) -> Option<T> {
    let word = text(at, report)?;
    if let Some((_, value)) = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(&word)) {
        return Some(*value);
    }
    unknown_word(at, report, &word, &known.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    None
}

fn unknown_word(at: &Cursor<'_>, report: &DecodeReport, word: &str, known: &[&str]) {
    let help = match at.node.origin {
        None => report.suggest(word, known, "known values"),
        Some(_) => report.suggest("", known, "known values"),
    };
    report.error(at, format!("unknown `{}` {}", at.name(), at.quote(word)), help);
}

/// A list of texts. As in the Collector a single text is split at commas.
pub(crate) fn texts(at: &Cursor<'_>, report: &DecodeReport) -> Option<Vec<String>> {
    match &at.node.value {
        NodeValue::Bad => None,
        NodeValue::Null => Some(Vec::new()),
        NodeValue::Seq(_) => Some(at.items()?.filter_map(|item| text(&item, report)).collect()),
        NodeValue::String(text) if text.is_empty() => Some(Vec::new()),
        NodeValue::String(text) => Some(text.split(',').map(str::to_owned).collect()),
        _ => wrong_type(at, report, "a list", None),
    }
}

/// Reports a value of the wrong type.
pub(crate) fn wrong_type<T>(at: &Cursor<'_>, report: &DecodeReport, wanted: &str, help: Option<String>) -> Option<T> {
    let found = match (&at.node.value, &at.node.origin) {
        (NodeValue::Bad, _) => return None,
        (_, Some(origin)) => {
            format!("the value of {}, which is {}", crate::problem::crop(&origin.reference), at.node.kind())
        }
        (_, None) => at.node.kind().to_owned(),
    };
    let syntax = at.node.origin.as_ref().and_then(|origin| origin.syntax.as_ref());
    let help = match syntax {
        Some(syntax) => Some(format!("the value was read as text because it is not valid YAML: {syntax}")),
        None => help,
    };
    report.error(at, format!("`{}` must be {wanted}, not {found}", at.name()), help);
    None
}
