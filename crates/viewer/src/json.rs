//! What both kinds of JSON share: ids, times and values of attributes.
//!
//! Text that is not UTF-8 is shown with U+FFFD in its places. Numbers that JavaScript cannot hold are strings.

use std::borrow::Cow;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kubewake_otlp::view::{AnyValue, KeyValue, lossy};
use serde::{
    Serialize, Serializer,
    ser::{SerializeMap as _, SerializeSeq as _},
};

/// Lists and maps may lie in each other this deep; in the place of a deeper one stands [`TOO_DEEP`]. A stranger chooses the depth, and each level takes stack.
const MAX_DEPTH: usize = 32;
const TOO_DEEP: &[u8] = "… (not shown: more than 32 levels deep)".as_bytes();
/// The largest integers that JavaScript holds exactly.
const SAFE: i64 = (1 << 53) - 1;

/// A number of nanoseconds as a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nanos(pub(crate) u64);

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The id of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanId(pub(crate) u64);

impl std::fmt::Display for SpanId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Bytes in hexadecimal digits, for ids of any length.
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits: String = self.0.iter().take(32).map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&digits)
    }
}

/// Text that may not be UTF-8.
pub(crate) struct Text<'a>(pub(crate) &'a [u8]);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&lossy(self.0))
    }
}

/// A value as JSON.
pub(crate) struct Value<'a> {
    value: AnyValue<'a>,
    depth: usize,
}

impl<'a> Value<'a> {
    pub(crate) fn new(value: AnyValue<'a>) -> Self {
        Self { value, depth: 0 }
    }

    fn inner(&self, value: AnyValue<'a>) -> Self {
        let is_nested = matches!(value, AnyValue::Array(_) | AnyValue::KeyValueList(_));
        let value = if is_nested && self.depth >= MAX_DEPTH { AnyValue::String(TOO_DEEP) } else { value };
        Self { value, depth: self.depth + 1 }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            AnyValue::None => serializer.serialize_unit(),
            AnyValue::String(text) => serializer.serialize_str(&lossy(text)),
            AnyValue::Bool(value) => serializer.serialize_bool(value),
            AnyValue::Int(value) if (-SAFE..=SAFE).contains(&value) => serializer.serialize_i64(value),
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

/// What a value is.
pub(crate) fn type_of(value: &AnyValue<'_>) -> &'static str {
    match value {
        // Absent: as text it is none.
        AnyValue::None | AnyValue::String(_) => "string",
        AnyValue::Bool(_) => "bool",
        AnyValue::Int(_) => "int",
        AnyValue::Double(_) => "double",
        AnyValue::Bytes(_) => "bytes",
        AnyValue::Array(_) => "array",
        AnyValue::KeyValueList(_) => "map",
    }
}

/// Long values are shown up to here.
const SHOWN: usize = 16 << 10;

/// An attribute. Unless it is wanted whole, a value that is too long to be looked at is cut.
pub(crate) struct Attribute<'a> {
    pub(crate) pair: KeyValue<'a>,
    pub(crate) whole: bool,
}

impl Serialize for Attribute<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.pair.value();
        let size = self.pair.raw_value().len();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &lossy(shown(self.pair.key())))?;
        if self.whole || size <= SHOWN {
            map.serialize_entry("value", &Value::new(value))?;
            map.serialize_entry("type", type_of(&value))?;
        } else {
            map.serialize_entry("value", &start_of(&value))?;
            map.serialize_entry("type", type_of(&value))?;
            map.serialize_entry("cut", &true)?;
            map.serialize_entry("bytes", &size)?;
        }
        map.end()
    }
}

/// The first bytes of something long, to the end of a character.
fn shown(text: &[u8]) -> &[u8] {
    let Some(start) = text.get(..SHOWN) else { return text };
    match start.utf8_chunks().last() {
        // An end that is no character may be the half of one.
        Some(last) if last.invalid().len() < 4 => start.strip_suffix(last.invalid()).unwrap_or(start),
        _ => start,
    }
}

fn start_of<'a>(value: &AnyValue<'a>) -> Cow<'a, str> {
    match value {
        AnyValue::String(text) => lossy(shown(text)),
        AnyValue::Bytes(bytes) => BASE64_STANDARD.encode(bytes.get(..SHOWN / 4 * 3).unwrap_or(bytes)).into(),
        value => {
            let json = serde_json::to_string(&Value::new(*value)).unwrap_or_default();
            crate::store::cut(&json, SHOWN).to_owned().into()
        }
    }
}

/// Text for people, cut where nobody reads on.
pub(crate) struct Label<'a>(pub(crate) &'a [u8]);

impl Serialize for Label<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&lossy(shown(self.0)))
    }
}

/// Attributes, in their order.
pub(crate) struct Attributes<'a> {
    pub(crate) all: kubewake_otlp::view::Attributes<'a>,
    pub(crate) whole: bool,
}

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(|pair| Attribute { pair, whole: self.whole }))
    }
}

/// How a kind of span is called.
pub(crate) fn kind(kind: u8) -> &'static str {
    match kind {
        1 => "internal",
        2 => "server",
        3 => "client",
        4 => "producer",
        5 => "consumer",
        _ => "unspecified",
    }
}

/// How a status is called.
pub(crate) fn status(code: u8) -> &'static str {
    match code {
        1 => "ok",
        2 => "error",
        _ => "unset",
    }
}

#[cfg(test)]
mod tests {
    use kubewake_otlp::{
        view::View as _,
        wire::{close, open, put_bytes, put_double, put_uint},
    };

    use super::*;

    /// An attribute `k` whose value is written so.
    fn attribute(whole: bool, value: impl FnOnce(&mut Vec<u8>)) -> serde_json::Value {
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, 1, b"k\xff");
        let inner = open(&mut bytes, 2);
        value(&mut bytes);
        close(&mut bytes, inner);
        serde_json::to_value(Attribute { pair: KeyValue::new(&bytes), whole }).unwrap()
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
            // A list with the one before in it.
            let (mut list, mut value) = (Vec::new(), Vec::new());
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
        let text = format!("x{}", "ü".repeat(SHOWN));
        let cut = attribute(false, |out| put_bytes(out, 1, text.as_bytes()));
        let shown = cut["value"].as_str().unwrap();
        assert_eq!(shown.len(), SHOWN - 1);
        assert!(shown.ends_with('ü') && cut["cut"] == true && cut["bytes"].as_u64().unwrap() > SHOWN as u64);
        assert_eq!(attribute(true, |out| put_bytes(out, 1, text.as_bytes()))["value"], text.as_str());
    }
}
