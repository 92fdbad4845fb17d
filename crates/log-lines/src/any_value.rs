//! Writes attributes and values of OTLP.

use kubewake_otlp::wire::{I64, LEN, VARINT, len_field_size, put_header, put_varint, tag_size, varint_size};

/// Field numbers of `KeyValue`.
pub(crate) const KEY: u32 = 1;
pub(crate) const VALUE: u32 = 2;
/// Field numbers of `AnyValue`.
pub(crate) const STRING: u32 = 1;
const BOOL: u32 = 2;
const INT: u32 = 3;
const DOUBLE: u32 = 4;
pub(crate) const ARRAY: u32 = 5;
pub(crate) const KEY_VALUE_LIST: u32 = 6;
pub(crate) const BYTES: u32 = 7;

/// A value whose length is known before it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(&'a [u8]),
}

impl Scalar<'_> {
    /// Bytes of the `AnyValue`, without its tag and length.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Bool(_) => tag_size(BOOL) + 1,
            Self::Int(value) => tag_size(INT) + varint_size(*value as u64),
            Self::Double(_) => tag_size(DOUBLE) + 8,
            Self::Text(text) => len_field_size(STRING, text.len()),
        }
    }

    /// Writes the content of the `AnyValue`.
    #[inline]
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Bool(value) => out.extend_from_slice(&[tag(BOOL, VARINT), u8::from(*value)]),
            Self::Int(value) => {
                out.push(tag(INT, VARINT));
                put_varint(out, *value as u64);
            }
            Self::Double(value) => {
                out.push(tag(DOUBLE, I64));
                out.extend_from_slice(&value.to_le_bytes());
            }
            Self::Text(text) => put_field(out, STRING, text),
        }
    }
}

/// The tag of a field whose number is below 16.
const fn tag(number: u32, wire: u8) -> u8 {
    (number << 3) as u8 | wire
}

/// Writes a string, bytes or message field.
#[inline]
pub(crate) fn put_field(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    put_header(out, number, content.len());
    out.extend_from_slice(content);
}

/// Bytes that an attribute may have so that all of its lengths are single bytes.
const MAX_SHORT_LENGTH: usize = 127 - 8;

/// Writes a `KeyValue` as the field `number`, below 16, of the message around it.
#[inline]
pub(crate) fn put_attribute(out: &mut Vec<u8>, number: u32, key: &[u8], value: Scalar<'_>) {
    let value_length = value.size();
    if key.len() + value_length <= MAX_SHORT_LENGTH {
        let member_length = 4 + key.len() + value_length;
        out.extend_from_slice(&[tag(number, LEN), member_length as u8, tag(KEY, LEN), key.len() as u8]);
        out.extend_from_slice(key);
        if let Scalar::Text(text) = value {
            out.extend_from_slice(&[tag(VALUE, LEN), value_length as u8, tag(STRING, LEN), text.len() as u8]);
            out.extend_from_slice(text);
        } else {
            out.extend_from_slice(&[tag(VALUE, LEN), value_length as u8]);
            value.put(out);
        }
        return;
    }
    put_header(out, number, len_field_size(KEY, key.len()) + len_field_size(VALUE, value_length));
    put_field(out, KEY, key);
    put_header(out, VALUE, value_length);
    value.put(out);
}

/// Writes an attribute whose value is a string.
pub(crate) fn put_string_attribute(out: &mut Vec<u8>, number: u32, key: &[u8], value: &[u8]) {
    put_attribute(out, number, key, Scalar::Text(value));
}
