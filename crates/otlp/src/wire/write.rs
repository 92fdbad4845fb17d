//! Computes sizes, and writes fields.

use super::{I32, I64, LEN, VARINT};

/// Length of a number's varint.
#[inline]
pub const fn varint_size(value: u64) -> usize {
    // One byte for every seven bits, and one for zero.
    ((value | 1).ilog2() as usize) / 7 + 1
}

/// Length of a field's tag.
#[inline]
pub const fn tag_size(number: u32) -> usize {
    varint_size((number as u64) << 3)
}

/// Length of a field with a content of `len` bytes, including its tag and its length.
#[inline]
pub const fn len_field_size(number: u32, len: usize) -> usize {
    tag_size(number) + varint_size(len as u64) + len
}

#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline]
pub fn put_tag(out: &mut Vec<u8>, number: u32, wire: u8) {
    put_varint(out, u64::from(number) << 3 | u64::from(wire));
}

/// Writes the tag and the length of a field; the caller appends its content.
#[inline]
pub fn put_header(out: &mut Vec<u8>, number: u32, len: usize) {
    put_tag(out, number, LEN);
    put_varint(out, len as u64);
}

/// Begins a field of unknown length; returns the offset of its content. [`close`] ends it.
#[inline]
pub fn open(out: &mut Vec<u8>, number: u32) -> usize {
    put_tag(out, number, LEN);
    out.len()
}

/// Ends the field whose content began at `start`. The content moves up to make room for its length, so that a
/// byte moves once for each message around it.
pub fn close(out: &mut Vec<u8>, start: usize) {
    let end = out.len();
    put_varint(out, end.saturating_sub(start) as u64);
    let width = out.len() - end;
    if let Some(content_and_length) = out.get_mut(start..) {
        content_and_length.rotate_right(width);
    }
}

/// Writes a string, bytes or message field, also when it is empty.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    put_header(out, number, content.len());
    out.extend_from_slice(content);
}

/// Writes a varint field, also when it is zero. For a negative int32, int64 or enum give `value as i64 as u64`.
pub fn put_uint(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, VARINT);
    put_varint(out, value);
}

/// Writes a bool field, also when it is false.
pub fn put_bool(out: &mut Vec<u8>, number: u32, value: bool) {
    put_uint(out, number, u64::from(value));
}

/// Writes a fixed64 or sfixed64 field, also when it is zero.
pub fn put_fixed64(out: &mut Vec<u8>, number: u32, value: u64) {
    put_tag(out, number, I64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a fixed32 field, also when it is zero.
pub fn put_fixed32(out: &mut Vec<u8>, number: u32, value: u32) {
    put_tag(out, number, I32);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a double field, also when it is zero.
pub fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_fixed64(out, number, value.to_bits());
}
