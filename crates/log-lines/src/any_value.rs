//! Writes attributes and values of OTLP.

use kubewake_otlp::wire::{self, len_field_size, put_bytes, put_header, tag_size, varint_size};

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
            Self::Bool(value) => wire::put_bool(out, BOOL, *value),
            Self::Int(value) => wire::put_uint(out, INT, *value as u64),
            Self::Double(value) => wire::put_double(out, DOUBLE, *value),
            Self::Text(text) => put_bytes(out, STRING, text),
        }
    }
}

/// Writes an attribute as the field `number` of the message around it.
pub(crate) fn put_attribute(out: &mut Vec<u8>, number: u32, key: &[u8], value: Scalar<'_>) {
    put_header(out, number, len_field_size(KEY, key.len()) + len_field_size(VALUE, value.size()));
    put_bytes(out, KEY, key);
    put_header(out, VALUE, value.size());
    value.put(out);
}

/// Writes an attribute whose value is a string.
pub(crate) fn put_string_attribute(out: &mut Vec<u8>, number: u32, key: &[u8], value: &[u8]) {
    put_attribute(out, number, key, Scalar::Text(value));
}
