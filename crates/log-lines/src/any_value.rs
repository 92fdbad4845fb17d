//! Writes attributes and values of OTLP.

use kubewake_otlp::wire::{self, len_field_size, put_bytes, put_header};

/// Field numbers of `KeyValue` and `AnyValue`.
pub(crate) const KEY: u32 = 1;
pub(crate) const VALUE: u32 = 2;
pub(crate) const STRING: u32 = 1;
pub(crate) const INT: u32 = 3;
pub(crate) const BYTES: u32 = 7;

/// Writes an attribute whose value is a string, as the field `number` of the message around it.
pub(crate) fn put_string_attribute(out: &mut Vec<u8>, number: u32, key: &[u8], value: &[u8]) {
    let any_value = len_field_size(STRING, value.len());
    put_header(out, number, len_field_size(KEY, key.len()) + len_field_size(VALUE, any_value));
    put_bytes(out, KEY, key);
    put_header(out, VALUE, any_value);
    put_bytes(out, STRING, value);
}

/// Writes an attribute whose value is a number of 64 bits.
pub(crate) fn put_int_attribute(out: &mut Vec<u8>, number: u32, key: &[u8], value: u64) {
    let any_value = wire::tag_size(INT) + wire::varint_size(value);
    put_header(out, number, len_field_size(KEY, key.len()) + len_field_size(VALUE, any_value));
    put_bytes(out, KEY, key);
    put_header(out, VALUE, any_value);
    wire::put_uint(out, INT, value);
}
