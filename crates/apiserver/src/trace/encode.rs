//! OTLP's `Span`, written field by field. The numbers are those of `opentelemetry/proto/trace/v1/trace.proto`.

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use super::span::Attribute;

pub(super) const TRACE_ID: u32 = 1;
pub(super) const SPAN_ID: u32 = 2;
pub(super) const TRACE_STATE: u32 = 3;
pub(super) const PARENT_SPAN_ID: u32 = 4;
pub(super) const NAME: u32 = 5;
pub(super) const KIND: u32 = 6;
pub(super) const START: u32 = 7;
pub(super) const END: u32 = 8;
pub(super) const ATTRIBUTES: u32 = 9;
pub(super) const EVENTS: u32 = 11;
pub(super) const LINKS: u32 = 13;
pub(super) const STATUS: u32 = 15;

/// What stands before so many bytes.
pub(super) fn begin(to: &mut Vec<u8>, field: u32, length: usize) {
    encode_key(field, WireType::LengthDelimited, to);
    encode_varint(length as u64, to);
}

/// Bytes or text.
pub(super) fn bytes(to: &mut Vec<u8>, field: u32, value: &[u8]) {
    begin(to, field, value.len());
    to.extend_from_slice(value);
}

/// A number of eight bytes.
pub(super) fn fixed64(to: &mut Vec<u8>, field: u32, value: u64) {
    encode_key(field, WireType::SixtyFourBit, to);
    to.extend_from_slice(&value.to_le_bytes());
}

/// A number of few bytes.
pub(super) fn varint(to: &mut Vec<u8>, field: u32, value: u64) {
    encode_key(field, WireType::Varint, to);
    encode_varint(value, to);
}

/// `KeyValue` as a field of something. Lengths are reckoned first, so that nothing is copied.
pub(super) fn attribute(to: &mut Vec<u8>, field: u32, key: &str, value: &Attribute<'_>) {
    let any = any_length(value);
    begin(to, field, delimited(key.len()) + delimited(any));
    bytes(to, 1, key.as_bytes());
    begin(to, 2, any);
    match value {
        Attribute::Text(text) => bytes(to, 1, text.as_bytes()),
        Attribute::Flag(flag) => varint(to, 2, u64::from(*flag)),
        Attribute::Number(number) => varint(to, 3, *number as u64),
    }
}

/// The length of an `AnyValue`.
fn any_length(value: &Attribute<'_>) -> usize {
    match value {
        Attribute::Text(text) => delimited(text.len()),
        Attribute::Flag(_) => 2,
        Attribute::Number(number) => 1 + encoded_len_varint(*number as u64),
    }
}

/// How long a field of this length is with its key (a small number) and its length before it.
pub(super) fn delimited(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

/// `Span.Event` as a field of a span.
pub(super) fn event(to: &mut Vec<u8>, time: u64, name: &str, attributes: &[(&str, Attribute<'_>)]) {
    let length = |(key, value): &(&str, Attribute<'_>)| delimited(delimited(key.len()) + delimited(any_length(value)));
    // The key and the eight bytes of the time.
    let size = 9 + delimited(name.len()) + attributes.iter().map(length).sum::<usize>();
    begin(to, EVENTS, size);
    fixed64(to, 1, time);
    bytes(to, 2, name.as_bytes());
    for (key, value) in attributes {
        attribute(to, 3, key, value);
    }
}
