//! Types whose JSON is not an object of their fields: times, quantities, int-or-string, raw JSON, and
//! alternatives.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value};

use super::{
    ProtobufDecodeError,
    message_table::{FieldType, MessageTable},
    read::{self, message_value},
    wire::{WireReader, put_bytes, put_int, put_tag, put_varint},
    write,
};
use crate::codec::json;

/// Decodes such a type: null if it is empty. `None` for all other types.
pub(super) fn read(name: &str, bytes: &[u8], depth: usize) -> Result<Option<Value>, ProtobufDecodeError> {
    Ok(Some(match name {
        "meta/v1.Time" => time(bytes, false)?,
        "meta/v1.MicroTime" => time(bytes, true)?,
        "meta/v1.Duration" => duration(MessageFields::read(bytes)?.first).into(),
        "resource.Quantity" => match MessageFields::read(bytes)?.bytes(1) {
            b"" => "0".into(),
            quantity => read::text(quantity).into(),
        },
        "intstr.IntOrString" => {
            let parts = MessageFields::read(bytes)?;
            // The first field selects one of the others.
            if parts.first == 0 { (parts.second as i32).into() } else { read::text(parts.bytes(3)).into() }
        }
        "runtime.RawExtension" | "meta/v1.FieldsV1" | "apiextensions/v1.JSON" => {
            match MessageFields::read(bytes)?.bytes(1) {
                b"" => Value::Null,
                raw => json::decode_within(raw, depth)?.value,
            }
        }
        "apiextensions/v1.JSONSchemaPropsOrArray"
        | "apiextensions/v1.JSONSchemaPropsOrBool"
        | "apiextensions/v1.JSONSchemaPropsOrStringArray" => alternative(name, bytes, depth)?,
        _ => return Ok(None),
    }))
}

/// Encodes such a type. `false` for all other types.
pub(super) fn write(to: &mut Vec<u8>, name: &str, value: Option<&Value>) -> bool {
    let value = value.unwrap_or(&Value::Null);
    match name {
        "meta/v1.Time" => put_time(to, value, false),
        "meta/v1.MicroTime" => put_time(to, value, true),
        "meta/v1.Duration" => put_int(to, 1, nanos(value.as_str().unwrap_or_default()).unwrap_or(0)),
        "resource.Quantity" => match value {
            Value::String(text) => put_bytes(to, 1, text.as_bytes()),
            Value::Number(number) => put_bytes(to, 1, number.to_string().as_bytes()),
            _ => put_bytes(to, 1, b"0"),
        },
        "intstr.IntOrString" => {
            let text = value.as_str();
            put_int(to, 1, i64::from(text.is_some()));
            put_int(to, 2, value.as_i64().unwrap_or(0));
            put_bytes(to, 3, text.unwrap_or_default().as_bytes());
        }
        "runtime.RawExtension" | "meta/v1.FieldsV1" | "apiextensions/v1.JSON" => {
            if !value.is_null() {
                let mut raw = Vec::new();
                json::write(&mut raw, value);
                put_bytes(to, 1, &raw);
            }
        }
        "apiextensions/v1.JSONSchemaPropsOrArray"
        | "apiextensions/v1.JSONSchemaPropsOrBool"
        | "apiextensions/v1.JSONSchemaPropsOrStringArray" => put_alternative(to, name, value),
        _ => return false,
    }
    true
}

/// The first fields of a small message.
#[derive(Default)]
struct MessageFields<'b> {
    first: i64,
    second: i64,
    delimited: Vec<(u32, &'b [u8])>,
}

impl<'b> MessageFields<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self, ProtobufDecodeError> {
        let mut parts = MessageFields::default();
        let mut reader = WireReader::new(bytes);
        while let Some((number, wire)) = reader.tag()? {
            match (number, wire) {
                (1, 0) => parts.first = reader.varint()?.cast_signed(),
                (2, 0) => parts.second = reader.varint()?.cast_signed(),
                (1..=3, 2) => parts.delimited.push((number, reader.bytes()?)),
                _ => reader.skip(wire)?,
            }
        }
        Ok(parts)
    }

    /// The last value of a field.
    fn bytes(&self, number: u32) -> &'b [u8] {
        self.all(number).next_back().unwrap_or_default()
    }

    fn all(&self, number: u32) -> impl DoubleEndedIterator<Item = &'b [u8]> {
        self.delimited.iter().filter(move |(of, _)| *of == number).map(|(_, bytes)| *bytes)
    }
}

/// RFC 3339, with microseconds or without a fraction. Go's zero time is an empty message.
fn time(bytes: &[u8], micro: bool) -> Result<Value, ProtobufDecodeError> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let parts = MessageFields::read(bytes)?;
    let nanos = if micro { parts.second as i32 / 1000 * 1000 } else { 0 };
    let time = Timestamp::new(parts.first, nanos).map_err(|_| ProtobufDecodeError::Time)?;
    let precision = if micro { Some(6) } else { Some(0) };
    let printer = jiff::fmt::temporal::DateTimePrinter::new().precision(precision);
    let text = printer.timestamp_to_string(&time);
    // Years before 0 have a sign.
    if text.starts_with('-') { Err(ProtobufDecodeError::Time) } else { Ok(text.into()) }
}

fn put_time(to: &mut Vec<u8>, value: &Value, micro: bool) {
    let Some(time) = value.as_str().and_then(|text| text.parse::<Timestamp>().ok()) else { return };
    let nanos = if micro { i64::from(time.subsec_nanosecond()) / 1000 * 1000 } else { 0 };
    let whole = if time.subsec_nanosecond() < 0 { time.as_second() - 1 } else { time.as_second() };
    put_int(to, 1, whole);
    put_int(to, 2, if nanos < 0 { nanos + 1_000_000_000 } else { nanos });
}

/// A duration as Go's `time.Duration` prints it: `1h0m0s`, `1.5s`, `20ms`.
pub(super) fn duration(nanos: i64) -> String {
    let size = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    let fraction = |unit: u64, name: &str| {
        let text = format!("{}.{:0width$}", size / unit, size % unit, width = unit.ilog10() as usize);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{sign}{text}{name}")
    };
    match size {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{size}ns"),
        1_000..1_000_000 => fraction(1_000, "µs"),
        1_000_000..1_000_000_000 => fraction(1_000_000, "ms"),
        _ => {
            let minutes = size / 60_000_000_000;
            let rest = size % 60_000_000_000;
            let seconds = SignedDuration::from_nanos(rest.cast_signed()).as_secs_f64();
            let head = match (minutes / 60, minutes % 60) {
                (0, 0) => String::new(),
                (0, minutes) => format!("{minutes}m"),
                (hours, minutes) => format!("{hours}h{minutes}m"),
            };
            format!("{sign}{head}{seconds}s")
        }
    }
}

pub(super) fn nanos(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut total = 0.0;
    while !rest.is_empty() && rest != "0" {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at_checked(digits)?;
        let length = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(length)?;
        let unit = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit;
        rest = after;
    }
    let total = total.round() as i64;
    Some(if negative { -total } else { total })
}

/// A schema, or else a boolean, a list of schemas, or a list of strings.
fn alternative(name: &str, bytes: &[u8], depth: usize) -> Result<Value, ProtobufDecodeError> {
    let schema = |bytes| {
        let schema = message_value("apiextensions/v1.JSONSchemaProps", bytes, None, depth)?;
        Ok(schema.unwrap_or(Value::Null))
    };
    let parts = MessageFields::read(bytes)?;
    match name {
        "apiextensions/v1.JSONSchemaPropsOrBool" => match parts.all(2).next_back() {
            Some(bytes) => schema(bytes),
            None => Ok((parts.first != 0).into()),
        },
        _ => {
            let several: Vec<&[u8]> = parts.all(2).collect();
            match (several.as_slice(), parts.all(1).next_back()) {
                ([], Some(bytes)) => schema(bytes),
                ([], None) => Ok(Value::Null),
                (several, _) if name.ends_with("StringArray") => {
                    Ok(several.iter().map(|bytes| Value::from(read::text(bytes))).collect())
                }
                (several, _) => several.iter().map(|bytes| schema(bytes)).collect(),
            }
        }
    }
}

fn put_alternative(to: &mut Vec<u8>, name: &str, value: &Value) {
    let schema = |schema: &Map<String, Value>| {
        let mut bytes = Vec::new();
        if let Some(message) = MessageTable::get().message("apiextensions/v1.JSONSchemaProps") {
            write::message(&mut bytes, message, schema);
        }
        bytes
    };
    if name.ends_with("OrBool") {
        // The flag of a schema is true.
        put_tag(to, 1, 0);
        put_varint(to, u64::from(value.as_bool().unwrap_or(true)));
        if let Value::Object(object) = value {
            put_bytes(to, 2, &schema(object));
        }
        return;
    }
    match value {
        Value::Object(object) => put_bytes(to, 1, &schema(object)),
        Value::Array(items) => {
            for item in items {
                match item {
                    Value::Object(object) => put_bytes(to, 2, &schema(object)),
                    other => write::scalar(to, 2, FieldType::String, Some(other)),
                }
            }
        }
        _ => {}
    }
}
