//! Spans and what is in them.

use super::AttributesView;
use super::message::{RepeatedField, bytes, fixed32, fixed64, int32, last_within, uint32, view};
use crate::field_numbers::{event, link, span, status};
use crate::wire::{LEN, VARINT};

view! {
    /// A span: the content of a `Span`.
    Span
}

impl<'a> Span<'a> {
    /// The id of its trace; 16 bytes, or empty.
    pub fn trace_id(&self) -> &'a [u8] {
        bytes(self.0, span::TRACE_ID)
    }

    /// The id of the span; 8 bytes, or empty.
    pub fn span_id(&self) -> &'a [u8] {
        bytes(self.0, span::SPAN_ID)
    }

    /// The id of the parent span; 8 bytes, or empty for a root.
    pub fn parent_span_id(&self) -> &'a [u8] {
        bytes(self.0, span::PARENT_SPAN_ID)
    }

    /// The `tracestate` of W3C trace context.
    pub fn trace_state(&self) -> &'a [u8] {
        bytes(self.0, span::TRACE_STATE)
    }

    pub fn name(&self) -> &'a [u8] {
        bytes(self.0, span::NAME)
    }

    /// The `SpanKind`: 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub fn kind(&self) -> i32 {
        int32(self.0, span::KIND)
    }

    /// The start time, in nanoseconds since 1970.
    pub fn start(&self) -> u64 {
        fixed64(self.0, span::START)
    }

    /// The end time, in nanoseconds since 1970.
    pub fn end(&self) -> u64 {
        fixed64(self.0, span::END)
    }

    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, span::ATTRIBUTES)
    }

    pub fn events(&self) -> RepeatedField<'a, Event<'a>> {
        RepeatedField::new(self.0, span::EVENTS)
    }

    /// Links to spans of other traces.
    pub fn links(&self) -> RepeatedField<'a, Link<'a>> {
        RepeatedField::new(self.0, span::LINKS)
    }

    /// The status. An absent status reads as unset.
    pub fn status(&self) -> SpanStatus<'a> {
        SpanStatus { span: self.0 }
    }

    /// Trace flags in the lowest byte; above them whether the parent is remote.
    pub fn flags(&self) -> u32 {
        fixed32(self.0, span::FLAGS)
    }

    /// The number of attributes that the sender dropped.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, span::DROPPED_ATTRIBUTES)
    }

    /// The number of events that the sender dropped.
    pub fn dropped_events(&self) -> u32 {
        uint32(self.0, span::DROPPED_EVENTS)
    }

    /// The number of links that the sender dropped.
    pub fn dropped_links(&self) -> u32 {
        uint32(self.0, span::DROPPED_LINKS)
    }
}

view! {
    /// An event during a span.
    Event
}

impl<'a> Event<'a> {
    /// The time of the event, in nanoseconds since 1970.
    pub fn time(&self) -> u64 {
        fixed64(self.0, event::TIME)
    }

    pub fn name(&self) -> &'a [u8] {
        bytes(self.0, event::NAME)
    }

    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, event::ATTRIBUTES)
    }

    /// The number of attributes that the sender dropped.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, event::DROPPED_ATTRIBUTES)
    }
}

view! {
    /// A link to another span. The length of its ids is not checked.
    Link
}

impl<'a> Link<'a> {
    /// The trace of the other span.
    pub fn trace_id(&self) -> &'a [u8] {
        bytes(self.0, link::TRACE_ID)
    }

    /// The id of the other span.
    pub fn span_id(&self) -> &'a [u8] {
        bytes(self.0, link::SPAN_ID)
    }

    /// The `tracestate` of the other span.
    pub fn trace_state(&self) -> &'a [u8] {
        bytes(self.0, link::TRACE_STATE)
    }

    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, link::ATTRIBUTES)
    }

    /// The number of attributes that the sender dropped.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, link::DROPPED_ATTRIBUTES)
    }

    /// Trace flags in the lowest byte; above them whether the other span is remote.
    pub fn flags(&self) -> u32 {
        fixed32(self.0, link::FLAGS)
    }
}

/// The status of a span. A message that comes in parts is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanStatus<'a> {
    span: &'a [u8],
}

impl<'a> SpanStatus<'a> {
    /// 0 unset, 1 ok, 2 error.
    pub fn code(&self) -> i32 {
        let code = last_within(self.span, span::STATUS, status::CODE, VARINT);
        // Protobuf truncates longer values.
        code.and_then(|field| field.as_varint()).unwrap_or_default() as i32
    }

    pub fn message(&self) -> &'a [u8] {
        last_within(self.span, span::STATUS, status::MESSAGE, LEN).map(|field| field.value).unwrap_or_default()
    }
}
