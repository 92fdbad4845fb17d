//! The fields that a sampler reads, found in one walk over the record.

use super::{AnyValue, KeyValue, LogRecord, MessageView, Span};
use crate::field_numbers::{log, span};
use crate::wire::{LEN, WireFields, tag};

#[derive(Clone, Copy, Debug, Default)]
pub struct SpanToSample<'a> {
    /// The trace that it belongs to; 16 bytes, or none.
    pub trace_id: &'a [u8],
    /// The `tracestate` of W3C trace context.
    pub trace_state: &'a [u8],
}

impl<'a> Span<'a> {
    /// The trace id if it stands first, as every SDK writes it. One that stands behind it would count instead.
    #[inline(always)]
    pub fn leading_trace_id(&self) -> Option<&'a [u8; 16]> {
        const TRACE_ID: u8 = tag(span::TRACE_ID, LEN);
        match self.as_bytes().first_chunk::<18>()? {
            [TRACE_ID, 16, id @ ..] => Some(id),
            _ => None,
        }
    }

    /// The fields that decide the sampling of a span.
    pub fn to_sample(&self) -> SpanToSample<'a> {
        let mut found = SpanToSample::default();
        for field in WireFields::new(self.as_bytes()) {
            match (field.number, field.wire) {
                (span::TRACE_ID, LEN) => found.trace_id = field.value,
                (span::TRACE_STATE, LEN) => found.trace_state = field.value,
                _ => {}
            }
        }
        found
    }
}

#[derive(Clone, Copy, Debug)]
pub struct LogToSample<'a, const N: usize> {
    /// The id of its trace; 16 bytes, or empty.
    pub trace_id: &'a [u8],
    /// The values of the requested attributes. Of several with the same key the first one counts.
    pub attributes: [Option<AnyValue<'a>>; N],
}

impl<'a> LogRecord<'a> {
    /// The fields that decide the sampling of a log record: its trace id, and the attributes with these keys.
    /// An empty key finds nothing.
    pub fn to_sample<const N: usize>(&self, keys: [&[u8]; N]) -> LogToSample<'a, N> {
        let mut found = LogToSample { trace_id: &[], attributes: [const { None }; N] };
        for field in WireFields::new(self.as_bytes()) {
            match (field.number, field.wire) {
                (log::TRACE_ID, LEN) => found.trace_id = field.value,
                (log::ATTRIBUTES, LEN) => {
                    let attribute = KeyValue::new(field.value);
                    let key = attribute.key();
                    let wanted = keys.iter().zip(&mut found.attributes);
                    for (_, slot) in
                        wanted.filter(|(wanted, slot)| **wanted == key && !key.is_empty() && slot.is_none())
                    {
                        *slot = Some(attribute.value());
                    }
                }
                _ => {}
            }
        }
        found
    }
}
