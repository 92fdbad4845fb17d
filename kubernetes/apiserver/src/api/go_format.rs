//! Go's formatting of values, as kube-apiserver's messages show them.

use std::{fmt::Write as _, time::Duration};

use serde_json::Value;

/// A quoted text, as by `%q`.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        push_escaped(&mut quoted, c, '"');
    }
    quoted.push('"');
    quoted
}

/// A byte in single quotes, as by encoding/json.
pub fn quote_byte(byte: u8) -> String {
    let mut quoted = String::from("'");
    match byte {
        b'"' => quoted.push('"'),
        0x80.. => _ = write!(quoted, "\\x{byte:02x}"),
        _ => push_escaped(&mut quoted, char::from(byte), '\''),
    }
    quoted.push('\'');
    quoted
}

fn push_escaped(to: &mut String, c: char, quote: char) {
    match c {
        '\\' => to.push_str("\\\\"),
        '\u{7}' => to.push_str("\\a"),
        '\u{8}' => to.push_str("\\b"),
        '\u{c}' => to.push_str("\\f"),
        '\n' => to.push_str("\\n"),
        '\r' => to.push_str("\\r"),
        '\t' => to.push_str("\\t"),
        '\u{b}' => to.push_str("\\v"),
        c if c == quote => {
            to.push('\\');
            to.push(c);
        }
        c if is_print(c) => to.push(c),
        c if c < ' ' || c == '\u{7f}' => _ = write!(to, "\\x{:02x}", u32::from(c)),
        c if u32::from(c) < 0x1_0000 => _ = write!(to, "\\u{:04x}", u32::from(c)),
        c => _ = write!(to, "\\U{:08x}", u32::from(c)),
    }
}

/// Whether a character is printable, as by `unicode.IsPrint`: of white space only the ASCII blank is.
///
/// Characters that no version of Unicode has assigned yet count as printable.
pub fn is_print(c: char) -> bool {
    match u32::from(c) {
        0x20..=0x7e => true,
        0..=0xa0 | 0xad => false,
        // Separators, format characters, neighbours of surrogates, and private use.
        0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x890 | 0x891 | 0x8e2 | 0x1680 | 0x180e => false,
        0x2000..=0x200f | 0x2028..=0x202f | 0x205f..=0x206f | 0x3000 | 0xfeff | 0xfff9..=0xfffb => false,
        0xe000..=0xf8ff | 0xfffe | 0xffff | 0xe0000.. => false,
        _ => true,
    }
}

/// `strconv.ParseInt(text, 10, 64)`
///
/// # Errors
/// With Go's message.
pub fn parse_int(text: &str) -> Result<i64, String> {
    parse(text, "ParseInt", text.strip_prefix(['+', '-']).unwrap_or(text))
}

/// `strconv.ParseUint(text, 10, 64)`
///
/// # Errors
/// With Go's message.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    parse(text, "ParseUint", text)
}

fn parse<N: std::str::FromStr>(text: &str, function: &str, digits: &str) -> Result<N, String> {
    let why = if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        match text.parse() {
            Ok(number) => return Ok(number),
            Err(_) => "value out of range",
        }
    } else {
        "invalid syntax"
    };
    Err(format!("strconv.{function}: parsing {}: {why}", quote(text)))
}

/// A float as encoding/json writes it: without a fraction if it is whole, with an exponent if it is very small
/// or large.
pub fn float(number: f64) -> String {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
            _ => text,
        };
    }
    number.to_string()
}

/// A float as `strconv.FormatFloat(number, 'g', -1, 64)` writes it.
pub fn float_g(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&power) {
        return number.to_string();
    }
    format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
}

/// The type of a JSON value, as Go's JSON decoder names it.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type into which a JSON value is decoded.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

pub fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}:{}", printed(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(number) => float_v(number),
            None => number.to_string(),
        },
        Value::Bool(bool) => bool.to_string(),
    }
}

/// A float as `%v` prints it: with an exponent from 1e21 on, and below 0.0001.
fn float_v(number: f64) -> String {
    match number.abs() {
        size if size != 0.0 && !(1e-4..1e21).contains(&size) => float_g(number),
        _ => number.to_string(),
    }
}

pub fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(syntax).collect::<Vec<_>>().join(", "))
        }
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(key, value)| format!("{key:?}:{}", syntax(value))).collect();
            format!("map[string]interface {{}}{{{}}}", members.join(", "))
        }
        plain => plain.to_string(),
    }
}

/// A duration as `time.ParseDuration` parses it; none if it is zero or less.
///
/// # Errors
/// Go's message about an invalid text.
pub fn parse_duration(text: &str) -> Result<Option<Duration>, String> {
    let invalid = || format!("time: invalid duration {}", quote(text));
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Ok(None);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number = rest.get(..rest.len() - after.len()).unwrap_or_default();
        let is_number = number.chars().any(|c| c.is_ascii_digit()) && number.matches('.').count() < 2;
        if !is_number {
            return Err(invalid());
        }
        let next = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, tail) = after.split_at(next);
        let unit = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "" => return Err(format!("time: missing unit in duration {}", quote(text))),
            _ => return Err(format!("time: unknown unit {} in duration {}", quote(unit), quote(text))),
        };
        seconds += number.parse::<f64>().map_err(|_| invalid())? * unit;
        rest = tail;
    }
    let duration = Duration::try_from_secs_f64(seconds).map_err(|_| invalid())?;
    Ok(Some(duration).filter(|duration| !text.starts_with('-') && !duration.is_zero()))
}
