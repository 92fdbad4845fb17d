//! Values as text, in the Collector's format.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::AnyValue;

/// Limit of nested values; deeper ones are `null`. A stranger chooses the depth, and each level takes stack.
const MAX_VALUE_DEPTH: usize = 64;

impl<'a> AnyValue<'a> {
    /// The value as text: text unchanged, `true`, numbers as in JavaScript, bytes in base64, lists and maps as
    /// JSON with sorted keys. Allocates for all but text.
    pub fn to_text(&self) -> Cow<'a, [u8]> {
        let mut out = Vec::new();
        match *self {
            AnyValue::String(text) => return Cow::Borrowed(text),
            AnyValue::None => {}
            AnyValue::Bytes(bytes) => out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes()),
            AnyValue::Double(value) if !value.is_finite() => {
                let sign = if value == f64::INFINITY { "+" } else { "" };
                let name = if value.is_nan() {
                    "NaN"
                } else if value < 0.0 {
                    "-Inf"
                } else {
                    "Inf"
                };
                put(&mut out, format_args!("json: unsupported value: {sign}{name}"));
            }
            AnyValue::Array(_) | AnyValue::KeyValueList(_) => {
                // As in the Collector: a list or map with a number that JSON lacks becomes empty text.
                if !json(self, MAX_VALUE_DEPTH, &mut out) {
                    out.clear();
                }
            }
            AnyValue::Bool(_) | AnyValue::Int(_) | AnyValue::Double(_) => {
                json(self, 0, &mut out);
            }
        }
        Cow::Owned(out)
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector does not fail.
    let _ = out.write_fmt(text);
}

/// Writes JSON; false if the value has no JSON form.
fn json(value: &AnyValue<'_>, depth: usize, out: &mut Vec<u8>) -> bool {
    match *value {
        AnyValue::None => out.extend_from_slice(b"null"),
        AnyValue::String(text) => string(text, out),
        AnyValue::Bool(value) => put(out, format_args!("{value}")),
        AnyValue::Int(value) => put(out, format_args!("{value}")),
        AnyValue::Double(value) if value.is_finite() => double(value, out),
        AnyValue::Double(_) => return false,
        AnyValue::Bytes(bytes) => put(out, format_args!("\"{}\"", BASE64_STANDARD.encode(bytes))),
        AnyValue::Array(_) | AnyValue::KeyValueList(_) if depth == 0 => out.extend_from_slice(b"null"),
        AnyValue::Array(values) => {
            out.push(b'[');
            for (at, content) in values.enumerate() {
                comma(at, out);
                if !json(&AnyValue::new(content), depth - 1, out) {
                    return false;
                }
            }
            out.push(b']');
        }
        AnyValue::KeyValueList(pairs) => {
            let sorted: BTreeMap<_, _> = pairs.map(|pair| (pair.key(), pair.value())).collect();
            out.push(b'{');
            for (at, (key, value)) in sorted.iter().enumerate() {
                comma(at, out);
                string(key, out);
                out.push(b':');
                if !json(value, depth - 1, out) {
                    return false;
                }
            }
            out.push(b'}');
        }
    }
    true
}

fn comma(at: usize, out: &mut Vec<u8>) {
    if at > 0 {
        out.push(b',');
    }
}

fn double(value: f64, out: &mut Vec<u8>) {
    let size = value.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{value:e}");
        let text = if text.contains("e-") { text } else { text.replacen('e', "e+", 1) };
        out.extend_from_slice(text.as_bytes());
    } else {
        put(out, format_args!("{value}"));
    }
}

/// A string in the format of Go's JSON, which also escapes HTML's special characters.
fn string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|c| character(c, out));
        // One for each byte, as in Go.
        chunk.invalid().iter().for_each(|_| out.extend_from_slice(b"\\ufffd"));
    }
    out.push(b'"');
}

fn character(c: char, out: &mut Vec<u8>) {
    match c {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\u{8}' => out.extend_from_slice(b"\\b"),
        '\u{c}' => out.extend_from_slice(b"\\f"),
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        '\t' => out.extend_from_slice(b"\\t"),
        '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => put(out, format_args!("\\u{:04x}", u32::from(c))),
        c => put(out, format_args!("{c}")),
    }
}
