//! Values of attributes and bodies as JSON.

use kubewake_config::model::Dedot;
use kubewake_otlp::view::{AnyValue, MessageView};

use super::{FieldList, JsonOutput, MAX_VALUE_DEPTH};

/// Writes a value. `depth` is the number of values around it.
pub(crate) fn push_value(value: &AnyValue<'_>, dedot: Dedot, depth: usize, out: &mut JsonOutput<'_>) {
    match *value {
        AnyValue::None => out.push(b"null"),
        AnyValue::String(text) => push_text(text, out),
        AnyValue::Bool(value) => out.push(if value { b"true" } else { b"false" }),
        AnyValue::Int(value) => out.push_display(value),
        // Debug writes `1.0`, and an exponent instead of hundreds of zeros.
        AnyValue::Double(value) if value.is_finite() => out.push_display(format_args!("{value:?}")),
        AnyValue::Double(_) => out.push(b"null"),
        AnyValue::Bytes(bytes) => push_hex(bytes, out),
        AnyValue::Array(_) | AnyValue::KeyValueList(_) if depth >= MAX_VALUE_DEPTH => out.push(b"null"),
        AnyValue::Array(values) => {
            out.push_byte(b'[');
            for value in values {
                push_value(&AnyValue::new(value.as_bytes()), dedot, depth + 1, out);
                out.push_byte(b',');
            }
            out.pop_if(b',');
            out.push_byte(b']');
        }
        AnyValue::KeyValueList(pairs) => {
            FieldList::write_object(out, dedot, depth + 1, |fields| fields.attributes(pairs));
        }
    }
}

/// Writes a string in quotes.
pub(crate) fn push_text(text: &[u8], out: &mut JsonOutput<'_>) {
    out.push_byte(b'"');
    for chunk in text.utf8_chunks() {
        push_escaped(chunk.valid().as_bytes(), out);
        if !chunk.invalid().is_empty() {
            out.push("\u{fffd}".as_bytes());
        }
    }
    out.push_byte(b'"');
}

fn push_escaped(mut text: &[u8], out: &mut JsonOutput<'_>) {
    let is_special = |byte: &u8| matches!(byte, 0..b' ' | b'"' | b'\\');
    while let Some((plain, &[byte, ref rest @ ..])) = text.iter().position(is_special).map(|at| text.split_at(at)) {
        out.push(plain);
        match byte {
            b'"' => out.push(b"\\\""),
            b'\\' => out.push(b"\\\\"),
            b'\n' => out.push(b"\\n"),
            b'\r' => out.push(b"\\r"),
            b'\t' => out.push(b"\\t"),
            _ => out.push(&[b'\\', b'u', b'0', b'0', hex_digit(byte >> 4), hex_digit(byte & 15)]),
        }
        text = rest;
    }
    out.push(text);
}

/// Writes bytes in hexadecimal, in quotes.
pub(super) fn push_hex(bytes: &[u8], out: &mut JsonOutput<'_>) {
    out.push_byte(b'"');
    for byte in bytes {
        out.push(&[hex_digit(byte >> 4), hex_digit(byte & 15)]);
    }
    out.push_byte(b'"');
}

fn hex_digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}
