//! Translates attributes, texts and times.

use super::opencensus_fields::{oc_attributes, oc_time, oc_trace_state};
use super::translation_output::TranslationOutput;
use crate::field_numbers::{any_value, key_value};
use crate::wire::{WireField, WireFields};

/// The Collector's text for a value of unknown type.
const UNKNOWN_VALUE_TEXT: &[u8] = b"<Unknown OpenCensus attribute value type>";

/// The content of the last length-delimited field with that number.
pub(super) fn content(message: &[u8], number: u32) -> Option<&[u8]> {
    WireFields::new(message).filter(|field| field.is_len(number)).last().map(|field| field.value)
}

/// The last number in that field; zero if there is none.
pub(super) fn number(message: &[u8], number: u32) -> u64 {
    WireFields::new(message).last_of(number).and_then(|field| field.as_varint()).unwrap_or_default()
}

/// The text in a `TruncatableString`.
pub(super) fn text(message: &[u8]) -> &[u8] {
    content(message, oc_attributes::INNER).unwrap_or_default()
}

/// Nanoseconds since 1970 of a `Timestamp`, clamped to the representable range.
pub(super) fn nanoseconds(timestamp: &[u8]) -> u64 {
    let seconds = number(timestamp, oc_time::SECONDS) as i64;
    let nanoseconds = number(timestamp, oc_time::NANOSECONDS) as i32;
    let all = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
    u64::try_from(all.clamp(0, u64::MAX.into())).unwrap_or_default()
}

/// The key and the value of an entry of a map.
pub(super) fn entry(content: &[u8]) -> (&[u8], &[u8]) {
    let part = |number| self::content(content, number).unwrap_or_default();
    (part(oc_attributes::KEY), part(oc_attributes::VALUE))
}

/// The value of the attribute with that key. The last entry counts.
pub(super) fn find<'a>(attributes: &'a [u8], key: &[u8]) -> Option<OpenCensusValue<'a>> {
    let entries = WireFields::new(attributes).filter(|field| field.is_len(oc_attributes::MAP));
    let values = entries.map(|field| entry(field.value)).filter(|(found, _)| *found == key);
    values.last().map(|(_, value)| OpenCensusValue::read(value))
}

/// Writes the attributes, except for the keys in `left_out`.
pub(super) fn write(attributes: &[u8], number: u32, left_out: &[&[u8]], out: &mut TranslationOutput<'_>) {
    for field in WireFields::new(attributes).filter(|field| field.is_len(oc_attributes::MAP)) {
        let (key, value) = entry(field.value);
        if !left_out.contains(&key) {
            pair(number, key, OpenCensusValue::read(value), out);
        }
    }
}

pub(super) fn pair(number: u32, key: &[u8], value: OpenCensusValue<'_>, out: &mut TranslationOutput<'_>) {
    out.message(number, |out| {
        out.bytes(key_value::KEY, key);
        out.message(key_value::VALUE, |out| value.write(out));
    });
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub(super) enum OpenCensusValue<'a> {
    String(&'a [u8]),
    Int(i64),
    Bool(bool),
    Double(f64),
}

impl<'a> OpenCensusValue<'a> {
    /// Of several values the last one counts.
    fn read(content: &'a [u8]) -> Self {
        let known = |field: WireField<'a>| match field.number {
            oc_attributes::STRING => field.as_len().map(|text| Self::String(self::text(text))),
            oc_attributes::INT => field.as_varint().map(|value| Self::Int(value as i64)),
            oc_attributes::BOOL => field.as_varint().map(|value| Self::Bool(value != 0)),
            oc_attributes::DOUBLE => field.as_double().map(Self::Double),
            _ => None,
        };
        WireFields::new(content).filter_map(known).last().unwrap_or(Self::String(UNKNOWN_VALUE_TEXT))
    }

    fn write(self, out: &mut TranslationOutput<'_>) {
        match self {
            Self::String(text) => out.bytes(any_value::STRING, text),
            Self::Int(value) => out.uint(any_value::INT, value as u64),
            Self::Bool(value) => out.uint(any_value::BOOL, value.into()),
            Self::Double(value) => out.fixed64(any_value::DOUBLE, value.to_bits()),
        }
    }
}

/// The number of attributes that the sender dropped.
pub(super) fn dropped(attributes: &[u8]) -> u64 {
    // The number has 32 bits, and should not be negative.
    u64::from(number(attributes, oc_attributes::DROPPED) as u32)
}

/// Writes a `Tracestate` in W3C notation.
pub(super) fn trace_state(content: Option<&[u8]>, number: u32, out: &mut TranslationOutput<'_>) {
    let entries = || {
        let fields = WireFields::new(content.unwrap_or_default()).filter(|field| field.is_len(oc_trace_state::ENTRIES));
        fields.map(|field| {
            let part = |number| self::content(field.value, number).unwrap_or_default();
            [part(oc_trace_state::KEY), b"=", part(oc_trace_state::VALUE)]
        })
    };
    // A comma follows each entry but the last.
    let length = entries().map(|entry| entry.iter().map(|piece| piece.len()).sum::<usize>() + 1).sum::<usize>();
    let commas = std::iter::once(&b""[..]).chain(std::iter::repeat(&b","[..]));
    out.joined(number, length.saturating_sub(1), commas.zip(entries()).flat_map(|(comma, [a, b, c])| [comma, a, b, c]));
}
