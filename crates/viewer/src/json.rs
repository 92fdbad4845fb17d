//! JSON that both APIs share: ids, times and attribute values.
//!
//! Bytes that are not UTF-8 are replaced by U+FFFD. Numbers that JavaScript cannot represent exactly are
//! strings.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kubewake_otlp::view::{AnyValue, KeyValue, lossy};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap as _, SerializeSeq as _},
};

/// How deep lists and maps may be nested; [`TOO_DEEP`] replaces a deeper one. The sender chooses the depth, and
/// each level takes stack.
const MAX_DEPTH: usize = 32;
const TOO_DEEP: &[u8] = "… (not shown: more than 32 levels deep)".as_bytes();
/// The largest integer that JavaScript represents exactly.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// A number of nanoseconds as a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nanos(pub(crate) u64);

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanIdJson(pub(crate) u64);

impl std::fmt::Display for SpanIdJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for SpanIdJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Hexadecimal digits of ids of any length.
pub(crate) struct HexBytes<'a>(pub(crate) &'a [u8]);

impl Serialize for HexBytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = self.0.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&digits)
    }
}

pub(crate) struct LossyText<'a>(pub(crate) &'a [u8]);

impl Serialize for LossyText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&lossy(self.0))
    }
}

pub(crate) struct ValueJson<'a> {
    value: AnyValue<'a>,
    depth: usize,
}

impl<'a> ValueJson<'a> {
    pub(crate) fn new(value: AnyValue<'a>) -> Self {
        Self { value, depth: 0 }
    }

    fn inner(&self, value: AnyValue<'a>) -> Self {
        let is_nested = matches!(value, AnyValue::Array(_) | AnyValue::KeyValueList(_));
        let value = if is_nested && self.depth >= MAX_DEPTH { AnyValue::String(TOO_DEEP) } else { value };
        Self { value, depth: self.depth + 1 }
    }
}

impl Serialize for ValueJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            AnyValue::None => serializer.serialize_unit(),
            AnyValue::String(text) => serializer.serialize_str(&lossy(text)),
            AnyValue::Bool(value) => serializer.serialize_bool(value),
            AnyValue::Int(value) if (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(&value) => {
                serializer.serialize_i64(value)
            }
            AnyValue::Int(value) => serializer.collect_str(&value),
            AnyValue::Double(value) if value.is_finite() => serializer.serialize_f64(value),
            AnyValue::Double(value) => serializer.collect_str(&value),
            AnyValue::Bytes(bytes) => serializer.serialize_str(&BASE64_STANDARD.encode(bytes)),
            AnyValue::Array(values) => {
                let mut list = serializer.serialize_seq(None)?;
                for value in values {
                    list.serialize_element(&self.inner(AnyValue::new(value)))?;
                }
                list.end()
            }
            AnyValue::KeyValueList(pairs) => {
                let mut map = serializer.serialize_map(None)?;
                for pair in pairs {
                    map.serialize_entry(&lossy(pair.key()), &self.inner(pair.value()))?;
                }
                map.end()
            }
        }
    }
}

pub(crate) fn value_type(value: &AnyValue<'_>) -> &'static str {
    match value {
        // An absent value is shown as empty text.
        AnyValue::None | AnyValue::String(_) => "string",
        AnyValue::Bool(_) => "bool",
        AnyValue::Int(_) => "int",
        AnyValue::Double(_) => "double",
        AnyValue::Bytes(_) => "bytes",
        AnyValue::Array(_) => "array",
        AnyValue::KeyValueList(_) => "map",
    }
}

/// Longer values are truncated to this size.
const MAX_SHOWN_BYTES: usize = 16 << 10;

/// An attribute. Long values are truncated unless the whole is requested.
pub(crate) struct AttributeJson<'a> {
    pub(crate) pair: KeyValue<'a>,
    pub(crate) untruncated: bool,
}

impl Serialize for AttributeJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.pair.value();
        let size = self.pair.raw_value().len();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &lossy(truncate_bytes(self.pair.key())))?;
        if self.untruncated || size <= MAX_SHOWN_BYTES {
            map.serialize_entry("value", &ValueJson::new(value))?;
            map.serialize_entry("type", value_type(&value))?;
        } else {
            map.serialize_entry("value", &value_prefix(&value))?;
            map.serialize_entry("type", value_type(&value))?;
            map.serialize_entry("cut", &true)?;
            map.serialize_entry("bytes", &size)?;
        }
        map.end()
    }
}

/// The first bytes of a long value, up to a character boundary.
fn truncate_bytes(text: &[u8]) -> &[u8] {
    let Some(start) = text.get(..MAX_SHOWN_BYTES) else { return text };
    match start.utf8_chunks().last() {
        // An invalid sequence at the end may be the first half of a character.
        Some(last) if last.invalid().len() < 4 => start.strip_suffix(last.invalid()).unwrap_or(start),
        _ => start,
    }
}

fn value_prefix<'a>(value: &AnyValue<'a>) -> Cow<'a, str> {
    match value {
        AnyValue::String(text) => lossy(truncate_bytes(text)),
        AnyValue::Bytes(bytes) => BASE64_STANDARD.encode(bytes.get(..MAX_SHOWN_BYTES / 4 * 3).unwrap_or(bytes)).into(),
        value => {
            let json = serde_json::to_string(&ValueJson::new(*value)).unwrap_or_default();
            crate::store::truncate(&json, MAX_SHOWN_BYTES).to_owned().into()
        }
    }
}

/// A value for display. One of more than [`MAX_SHOWN_BYTES`] becomes its first part, as text.
pub(crate) struct TruncatedValue<'a> {
    pub(crate) value: AnyValue<'a>,
    /// The size of the value as it was sent.
    pub(crate) size: usize,
}

impl Serialize for TruncatedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.size <= MAX_SHOWN_BYTES {
            ValueJson::new(self.value).serialize(serializer)
        } else {
            serializer.serialize_str(&value_prefix(&self.value))
        }
    }
}

/// Text for display, truncated to [`MAX_SHOWN_BYTES`].
pub(crate) struct TruncatedText<'a>(pub(crate) &'a [u8]);

impl Serialize for TruncatedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&lossy(truncate_bytes(self.0)))
    }
}

pub(crate) struct AttributesJson<'a> {
    pub(crate) all: kubewake_otlp::view::AttributesView<'a>,
    pub(crate) untruncated: bool,
}

impl Serialize for AttributesJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(|pair| AttributeJson { pair, untruncated: self.untruncated }))
    }
}

pub(crate) fn span_kind_name(kind: u8) -> &'static str {
    match kind {
        1 => "internal",
        2 => "server",
        3 => "client",
        4 => "producer",
        5 => "consumer",
        _ => "unspecified",
    }
}

pub(crate) fn status_name(code: u8) -> &'static str {
    match code {
        1 => "ok",
        2 => "error",
        _ => "unset",
    }
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::{
        view::MessageView as _,
        wire::{close, open, put_bytes, put_double, put_uint},
    };

    use super::*;

    fn attribute(whole: bool, value: impl FnOnce(&mut Vec<u8>)) -> serde_json::Value {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, b"k\xff");
        let inner = open(&mut bytes, 2);
        value(&mut bytes);
        close(&mut bytes, inner);
        serde_json::to_value(AttributeJson { pair: KeyValue::new(&bytes), untruncated: whole }).unwrap()
    }

    #[test]
    fn whatever_was_sent_is_json() {
        let value = |write: &dyn Fn(&mut Vec<u8>)| attribute(false, write)["value"].clone();
        assert_eq!(attribute(false, |out| put_bytes(out, 1, b"a\xffb"))["value"], "a\u{fffd}b");
        assert_eq!(
            attribute(false, |_| {}),
            serde_json::json!({ "key": "k\u{fffd}", "value": null, "type": "string" })
        );
        assert_eq!(value(&|out| put_double(out, 4, f64::NAN)), "NaN");
        assert_eq!(value(&|out| put_double(out, 4, f64::INFINITY)), "inf");
        assert_eq!(value(&|out| put_uint(out, 3, i64::MIN as u64)), "-9223372036854775808");
        assert_eq!(value(&|out| put_uint(out, 3, 7)), 7);
        assert_eq!(value(&|out| put_bytes(out, 7, &[1, 2, 3])), "AQID");
    }

    #[test]
    fn values_in_values_end_somewhere() {
        let mut nested = Vec::new();
        for _ in 0..10_000 {
            // A list that contains the previous one.
            let mut list = Vec::new();
            let mut value = Vec::new();
            put_bytes(&mut list, 1, &nested);
            put_bytes(&mut value, 5, &list);
            nested = value;
        }
        let shown = attribute(true, |out| out.extend_from_slice(&nested));
        let text = shown["value"].to_string();
        assert_eq!(text.matches('[').count(), MAX_DEPTH + 1);
        assert!(text.contains("[\"… (not shown: more than 32 levels deep)\"]"), "{text}");
        assert!(attribute(false, |out| out.extend_from_slice(&nested))["cut"].as_bool().unwrap());
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = format!("x{}", "ü".repeat(MAX_SHOWN_BYTES));
        let cut = attribute(false, |out| put_bytes(out, 1, text.as_bytes()));
        let shown = cut["value"].as_str().unwrap();
        assert_eq!(shown.len(), MAX_SHOWN_BYTES - 1);
        assert!(shown.ends_with('ü') && cut["cut"] == true && cut["bytes"].as_u64().unwrap() > MAX_SHOWN_BYTES as u64);
        assert_eq!(attribute(true, |out| put_bytes(out, 1, text.as_bytes()))["value"], text.as_str());
    }
}
