//! Writes JSON values.

use std::fmt::Display;
use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Writes a string with the necessary escapes. Invalid UTF-8 becomes U+FFFD.
pub(super) fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for chunk in bytes.utf8_chunks() {
        escaped(chunk.valid().as_bytes(), out);
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    out.push(b'"');
}

fn escaped(mut text: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, 0..b' ' | b'"' | b'\\');
    while let Some((plain, &[byte, ref rest @ ..])) = text.iter().position(special).map(|at| text.split_at(at)) {
        out.extend_from_slice(plain);
        escape(byte, out);
        text = rest;
    }
    out.extend_from_slice(text);
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        _ => {
            out.extend_from_slice(b"\\u00");
            hex_byte(byte, out);
        }
    }
}

pub(super) fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    bytes.iter().for_each(|byte| hex_byte(*byte, out));
    out.push(b'"');
}

fn hex_byte(byte: u8, out: &mut Vec<u8>) {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
    out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
}

pub(super) fn base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}

pub(super) fn bool(value: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// The shortest number that reads as the same double.
pub(super) fn double(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 { b"\"Infinity\"" } else { b"\"-Infinity\"" });
    } else {
        // Unlike Display, Debug uses an exponent instead of hundreds of zeros.
        number(format_args!("{value:?}"), out);
    }
}

pub(super) fn number(value: impl Display, out: &mut Vec<u8>) {
    // A write to memory does not fail.
    let _ = write!(out, "{value}");
}

/// Writes a 64-bit number in quotes, as JavaScript would round it.
pub(super) fn quoted(value: impl Display, out: &mut Vec<u8>) {
    let _ = write!(out, "\"{value}\"");
}
