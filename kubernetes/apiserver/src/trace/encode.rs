//! Encodes OTLP's `Span`, field by field. The field numbers are those of
//! `opentelemetry/proto/trace/v1/trace.proto`.

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use super::span::SpanAttributeValue;

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

/// Writes the key and the length of a field.
pub(super) fn begin(to: &mut Vec<u8>, field: u32, length: usize) {
    encode_key(field, WireType::LengthDelimited, to);
    encode_varint(length as u64, to);
}

/// Writes a field of bytes or text.
pub(super) fn bytes(to: &mut Vec<u8>, field: u32, value: &[u8]) {
    begin(to, field, value.len());
    to.extend_from_slice(value);
}

/// Writes a field of eight bytes.
pub(super) fn fixed64(to: &mut Vec<u8>, field: u32, value: u64) {
    encode_key(field, WireType::SixtyFourBit, to);
    to.extend_from_slice(&value.to_le_bytes());
}

/// Writes a field of variable length.
pub(super) fn varint(to: &mut Vec<u8>, field: u32, value: u64) {
    encode_key(field, WireType::Varint, to);
    encode_varint(value, to);
}

/// Writes a `KeyValue` as a field. Lengths are computed first, so that nothing is copied.
pub(super) fn attribute(to: &mut Vec<u8>, field: u32, key: &str, value: &SpanAttributeValue<'_>) {
    let any = any_length(value);
    begin(to, field, delimited(key.len()) + delimited(any));
    bytes(to, 1, key.as_bytes());
    begin(to, 2, any);
    match value {
        SpanAttributeValue::Text(text) => bytes(to, 1, text.as_bytes()),
        SpanAttributeValue::Flag(flag) => varint(to, 2, u64::from(*flag)),
        SpanAttributeValue::Number(number) => varint(to, 3, *number as u64),
    }
}

fn any_length(value: &SpanAttributeValue<'_>) -> usize {
    match value {
        SpanAttributeValue::Text(text) => delimited(text.len()),
        SpanAttributeValue::Flag(_) => 2,
        SpanAttributeValue::Number(number) => 1 + encoded_len_varint(*number as u64),
    }
}

/// The length of a field with its key (of one byte) and its length prefix.
pub(super) fn delimited(length: usize) -> usize {
    1 + encoded_len_varint(length as u64) + length
}

/// Writes a `Span.Event` as a field of a span.
pub(super) fn event(to: &mut Vec<u8>, time: u64, name: &str, attributes: &[(&str, SpanAttributeValue<'_>)]) {
    let length =
        |(key, value): &(&str, SpanAttributeValue<'_>)| delimited(delimited(key.len()) + delimited(any_length(value)));
    // The key and the eight bytes of the time.
    let size = 9 + delimited(name.len()) + attributes.iter().map(length).sum::<usize>();
    begin(to, EVENTS, size);
    fixed64(to, 1, time);
    bytes(to, 2, name.as_bytes());
    for (key, value) in attributes {
        attribute(to, 3, key, value);
    }
}
