//! Resolves scalars by the rules of YAML 1.1 in go-yaml's dialect.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use saphyr_parser::Tag;
use serde_json::Value;

use super::YamlDecodeError;
use crate::api::go_format;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlScalar {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// A time, which stays a string.
    Timestamp(String),
    String(String),
}

impl YamlScalar {
    /// The short name of its tag.
    fn tag(&self) -> &'static str {
        match self {
            YamlScalar::Null => "null",
            YamlScalar::Bool(_) => "bool",
            YamlScalar::Int(_) => "int",
            YamlScalar::Float(_) => "float",
            YamlScalar::Timestamp(_) => "timestamp",
            YamlScalar::String(_) => "str",
        }
    }

    pub(super) fn into_value(self) -> Result<Value, YamlDecodeError> {
        Ok(match self {
            YamlScalar::Null => Value::Null,
            YamlScalar::Bool(on) => on.into(),
            YamlScalar::Int(number) => number.into(),
            YamlScalar::Float(number) if number.is_finite() => number.into(),
            YamlScalar::Float(number) => {
                return Err(YamlDecodeError::Float(special_float(number, ["NaN", "+Inf", "-Inf"])));
            }
            YamlScalar::Timestamp(text) | YamlScalar::String(text) => text.into(),
        })
    }

    /// As a key of JSON, and as messages show it. Null cannot be a key.
    pub(super) fn as_key(&self) -> Option<(String, String)> {
        let same = |text: String| Some((text.clone(), text));
        match self {
            YamlScalar::Null => None,
            YamlScalar::Bool(on) => same(on.to_string()),
            YamlScalar::Int(number) => same(number.to_string()),
            YamlScalar::Float(number) if number.is_finite() => same(go_format::float_g(*number)),
            YamlScalar::Float(number) => same(special_float(*number, [".nan", ".inf", "-.inf"]).to_owned()),
            YamlScalar::Timestamp(text) | YamlScalar::String(text) => Some((text.clone(), go_format::quote(text))),
        }
    }
}

fn special_float(number: f64, [nan, plus, minus]: [&'static str; 3]) -> &'static str {
    match number {
        _ if number.is_nan() => nan,
        _ if number > 0.0 => plus,
        _ => minus,
    }
}

/// Resolves a scalar of a document. A tag that is not YAML's own only marks it as text.
pub(super) fn resolve_tagged(text: &str, plain: bool, tag: Option<&Tag>) -> Result<YamlScalar, YamlDecodeError> {
    let string = || Ok(YamlScalar::String(text.to_owned()));
    let Some(tag) = tag else {
        return if plain { Ok(resolve(text)) } else { string() };
    };
    if !tag.is_yaml_core_schema() {
        return string();
    }
    let found = resolve(text);
    match (tag.suffix.as_str(), found) {
        ("binary", _) => binary(text),
        ("float", YamlScalar::Int(number)) => Ok(YamlScalar::Float(number as f64)),
        ("int" | "float" | "bool" | "null" | "timestamp", found) if found.tag() == tag.suffix => Ok(found),
        ("int" | "float" | "bool" | "null" | "timestamp", found) => {
            Err(YamlDecodeError::Tag { found: found.tag(), text: text.to_owned(), wanted: tag.suffix.clone() })
        }
        _ => string(),
    }
}

fn binary(text: &str) -> Result<YamlScalar, YamlDecodeError> {
    let compact: String = text.split_ascii_whitespace().collect();
    let bytes = STANDARD.decode(compact).map_err(|_| YamlDecodeError::Binary)?;
    Ok(YamlScalar::String(String::from_utf8_lossy(&bytes).into_owned()))
}

/// Resolves a plain scalar without a tag.
pub(super) fn resolve(text: &str) -> YamlScalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return YamlScalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return YamlScalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return YamlScalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return YamlScalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return YamlScalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return YamlScalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let string = || YamlScalar::String(text.to_owned());
    match text.as_bytes().first() {
        Some(b'.') => float(text).map_or_else(string, YamlScalar::Float),
        Some(b'0'..=b'9' | b'+' | b'-') => {
            if is_timestamp(text) {
                return YamlScalar::Timestamp(text.to_owned());
            }
            number(&text.replace('_', "")).unwrap_or_else(string)
        }
        _ => string(),
    }
}

fn number(text: &str) -> Option<YamlScalar> {
    match integer(text) {
        Some(number) => match i64::try_from(number) {
            Ok(number) => Some(YamlScalar::Int(number)),
            // Too large for an integer of JSON.
            Err(_) if number > 0 && number <= i128::from(u64::MAX) => Some(YamlScalar::Float(number as f64)),
            Err(_) => float(text).map(YamlScalar::Float),
        },
        None => float(text).map(YamlScalar::Float),
    }
}

/// Parses like `strconv.ParseInt` with base 0: a leading zero means octal.
fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // A second sign is invalid.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    Some(if negative { -magnitude } else { magnitude })
}

fn float(text: &str) -> Option<f64> {
    // Rust also parses "inf", "nan" and "infinity", which are text here.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let digits = text.trim_start_matches(['+', '-']);
    let begins = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    if !plain || !begins || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Whether go-yaml resolves a text as a time: a date, or a date with a time of day.
fn is_timestamp(text: &str) -> bool {
    let mut rest = text;
    let date = (|| {
        let year = digits(&mut rest, 4, 4)?;
        take(&mut rest, "-")?;
        let month = digits(&mut rest, 1, 2)?;
        take(&mut rest, "-")?;
        let day = digits(&mut rest, 1, 2)?;
        jiff::civil::Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
    })();
    if date.is_none() || rest.is_empty() {
        return date.is_some();
    }
    let zoned = !rest.starts_with(' ');
    let separated = rest.starts_with(['T', 't', ' ']);
    rest = rest.get(1..).unwrap_or_default();
    separated && time_of_day(&mut rest).is_some() && if zoned { is_zone(rest) } else { rest.is_empty() }
}

fn time_of_day(rest: &mut &str) -> Option<()> {
    let hour = digits(rest, 1, 2)?;
    take(rest, ":")?;
    let minute = digits(rest, 1, 2)?;
    take(rest, ":")?;
    let second = digits(rest, 1, 2)?;
    if take(rest, ".").is_some() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        *rest = rest.get(end..).filter(|_| end > 0)?;
    }
    (hour < 24 && minute < 60 && second < 60).then_some(())
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

fn digits(rest: &mut &str, least: usize, most: usize) -> Option<u32> {
    let count = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
    if count < least {
        return None;
    }
    let (number, after) = rest.split_at(count);
    *rest = after;
    number.parse().ok()
}

fn take(rest: &mut &str, prefix: &str) -> Option<()> {
    *rest = rest.strip_prefix(prefix)?;
    Some(())
}
