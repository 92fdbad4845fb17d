//! Resolves plain scalars.

use super::NodeValue;

/// Resolves a plain scalar by the core schema in go-yaml's dialect: `_` may group digits, and a leading zero is
/// octal.
pub(super) fn resolve(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeValue::Null,
        "true" | "True" | "TRUE" => return NodeValue::Bool(true),
        "false" | "False" | "FALSE" => return NodeValue::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return NodeValue::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return NodeValue::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return NodeValue::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return NodeValue::String(text.to_owned());
    }
    let digits = text.replace('_', "");
    if let Some(number) = integer(&digits) {
        return NodeValue::Int(number);
    }
    match float(&digits) {
        Some(number) => NodeValue::Float(number),
        None => NodeValue::String(text.to_owned()),
    }
}

fn integer(text: &str) -> Option<i64> {
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
    // `from_str_radix` accepts a sign of its own, which was read already.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let magnitude = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

fn float(text: &str) -> Option<f64> {
    // Rust also parses "inf", "nan" and "infinity", which are text here.
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    let digit = text.bytes().any(|byte| byte.is_ascii_digit());
    if plain && digit { text.parse().ok() } else { None }
}
