//! Values of attributes and bodies.

use super::common::split_plain;
use super::message::Repeated;
use super::{KeyValue, View};
use crate::numbers::any_value;
use crate::wire::{Fields, I64, LEN, VARINT};

/// A value of any type, read one level deep: what is in an array or a list is read when it is asked for.
#[derive(Clone, Copy, Debug)]
pub enum AnyValue<'a> {
    /// No value, or one of a kind that is not known here.
    None,
    /// Text, not checked for UTF-8.
    String(&'a [u8]),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
    /// Values in order, each to be seen by [`AnyValue::new`].
    Array(Repeated<'a, &'a [u8]>),
    /// Keys with values.
    KeyValueList(Repeated<'a, KeyValue<'a>>),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> AnyValue<'a> {
    /// Reads the content of an `AnyValue` message. Of several values the last one counts.
    pub fn new(content: &'a [u8]) -> Self {
        Fields::new(content).fold(AnyValue::None, |value, field| match (field.number, field.wire) {
            (any_value::STRING, LEN) => AnyValue::String(field.value),
            (any_value::BOOL, VARINT) => AnyValue::Bool(field.as_varint().unwrap_or_default() != 0),
            (any_value::INT, VARINT) => AnyValue::Int(field.as_varint().unwrap_or_default() as i64),
            (any_value::DOUBLE, I64) => AnyValue::Double(field.as_double().unwrap_or_default()),
            (any_value::ARRAY, LEN) => AnyValue::Array(Repeated::new(field.value, any_value::VALUES)),
            (any_value::KVLIST, LEN) => AnyValue::KeyValueList(Repeated::new(field.value, any_value::VALUES)),
            (any_value::BYTES, LEN) => AnyValue::Bytes(field.value),
            _ => value,
        })
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&'a [u8]> {
        match *self {
            AnyValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text, if it is text and UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        self.as_text().and_then(|text| std::str::from_utf8(text).ok())
    }
}

impl<'a> KeyValue<'a> {
    /// The value.
    pub fn value(&self) -> AnyValue<'a> {
        AnyValue::new(self.raw_value())
    }

    /// The content of the `AnyValue` message, as it was sent.
    pub fn raw_value(&self) -> &'a [u8] {
        match split_plain(self.as_bytes()) {
            Some((_, value)) => value,
            None => super::message::bytes(self.as_bytes(), crate::numbers::key_value::VALUE),
        }
    }
}
