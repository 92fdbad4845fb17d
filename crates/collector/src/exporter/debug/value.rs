//! Formats values, ids, times and enums as the Collector does.

use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use kubewake_otlp::view::{AnyValue, KeyValue, lossy};
use serde_json::{Map, Value};

use crate::telemetry::format_shortest;

/// Limit of nested values. Deeper ones are not shown, so that no sender can exhaust the stack.
const MAX_DEPTH: usize = 64;

/// A value without its type: text verbatim, lists and maps in JSON.
pub(super) fn plain(value: AnyValue<'_>) -> String {
    match value {
        AnyValue::None => String::new(),
        AnyValue::String(text) => lossy(text).into_owned(),
        AnyValue::Bool(value) => value.to_string(),
        AnyValue::Int(value) => value.to_string(),
        AnyValue::Double(value) => format_shortest(value, 21),
        AnyValue::Bytes(bytes) => BASE64_STANDARD.encode(bytes),
        AnyValue::Array(_) | AnyValue::KeyValueList(_) => json(value, MAX_DEPTH).to_string(),
    }
}

/// A value with its type: `Str(text)`.
pub(super) fn typed(value: AnyValue<'_>) -> String {
    let kind = match value {
        AnyValue::None => "Empty",
        AnyValue::String(_) => "Str",
        AnyValue::Bool(_) => "Bool",
        AnyValue::Int(_) => "Int",
        AnyValue::Double(_) => "Double",
        AnyValue::Array(_) => "Slice",
        AnyValue::KeyValueList(_) => "Map",
        AnyValue::Bytes(_) => "Bytes",
    };
    format!("{kind}({})", plain(value))
}

fn json(value: AnyValue<'_>, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    match value {
        AnyValue::None => Value::Null,
        AnyValue::Bool(value) => value.into(),
        AnyValue::Int(value) => value.into(),
        // JSON has no text for infinity: it becomes null.
        AnyValue::Double(value) => value.into(),
        AnyValue::String(_) | AnyValue::Bytes(_) => plain(value).into(),
        AnyValue::Array(values) => values.map(|content| json(AnyValue::new(content), depth)).collect(),
        AnyValue::KeyValueList(pairs) => {
            let pair = |pair: KeyValue<'_>| (lossy(pair.key()).into_owned(), json(pair.value(), depth));
            Value::Object(pairs.map(pair).collect::<Map<_, _>>())
        }
    }
}

/// An id in hexadecimal; empty if it is absent or all zeros.
pub(super) fn id(bytes: &[u8]) -> String {
    if bytes.iter().all(|byte| *byte == 0) {
        String::new()
    } else {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Nanoseconds since 1970, in Go's format of a UTC time.
pub(super) fn time(nanoseconds: u64) -> String {
    // A time of 64 bits is before the year 2600.
    let time = Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%d %H:%M:%S%.f +0000 UTC").to_string()
}

/// A number with six decimal places.
pub(super) fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { format_shortest(value, 21) }
}

/// The name of a `SpanKind`.
pub(super) fn span_kind(kind: i32) -> &'static str {
    match kind {
        0 => "Unspecified",
        1 => "Internal",
        2 => "Server",
        3 => "Client",
        4 => "Producer",
        5 => "Consumer",
        _ => "",
    }
}

/// The name of a span's `StatusCode`.
pub(super) fn status_code(code: i32) -> &'static str {
    match code {
        0 => "Unset",
        1 => "Ok",
        2 => "Error",
        _ => "",
    }
}

/// The name of a `SeverityNumber`.
pub(super) fn severity(number: i32) -> String {
    let name = match number {
        0 => return "Unspecified".into(),
        1..=4 => "Trace",
        5..=8 => "Debug",
        9..=12 => "Info",
        13..=16 => "Warn",
        17..=20 => "Error",
        21..=24 => "Fatal",
        _ => return String::new(),
    };
    match (number - 1) % 4 {
        0 => name.into(),
        step => format!("{name}{}", step + 1),
    }
}
