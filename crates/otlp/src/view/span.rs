//! Spans and what is in them.

use super::Attributes;
use super::message::{Repeated, bytes, fixed32, fixed64, int32, last_within, uint32, view};
use crate::numbers::{event, link, span, status};
use crate::wire::{LEN, VARINT};

view! {
    /// One step of a trace: the content of a `Span`.
    Span
}

impl<'a> Span<'a> {
    /// The trace that it belongs to; 16 bytes, or none.
    pub fn trace_id(&self) -> &'a [u8] {
        bytes(self.0, span::TRACE_ID)
    }

    /// Its own id; 8 bytes, or none.
    pub fn span_id(&self) -> &'a [u8] {
        bytes(self.0, span::SPAN_ID)
    }

    /// The span that caused it; 8 bytes, or none for a root.
    pub fn parent_span_id(&self) -> &'a [u8] {
        bytes(self.0, span::PARENT_SPAN_ID)
    }

    /// The `tracestate` of W3C trace context.
    pub fn trace_state(&self) -> &'a [u8] {
        bytes(self.0, span::TRACE_STATE)
    }

    /// What was done.
    pub fn name(&self) -> &'a [u8] {
        bytes(self.0, span::NAME)
    }

    /// The `SpanKind`: 0 unspecified, 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub fn kind(&self) -> i32 {
        int32(self.0, span::KIND)
    }

    /// Nanoseconds since 1970.
    pub fn start(&self) -> u64 {
        fixed64(self.0, span::START)
    }

    /// Nanoseconds since 1970.
    pub fn end(&self) -> u64 {
        fixed64(self.0, span::END)
    }

    /// What describes it.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.0, span::ATTRIBUTES)
    }

    /// What happened meanwhile.
    pub fn events(&self) -> Repeated<'a, Event<'a>> {
        Repeated::new(self.0, span::EVENTS)
    }

    /// Spans of other traces that it has to do with.
    pub fn links(&self) -> Repeated<'a, Link<'a>> {
        Repeated::new(self.0, span::LINKS)
    }

    /// How it ended. An absent status reads as unset.
    pub fn status(&self) -> Status<'a> {
        Status { span: self.0 }
    }

    /// Trace flags in the lowest byte, and whether the parent is remote above them.
    pub fn flags(&self) -> u32 {
        fixed32(self.0, span::FLAGS)
    }

    /// How many attributes were dropped before it was sent.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, span::DROPPED_ATTRIBUTES)
    }

    /// How many events were dropped before it was sent.
    pub fn dropped_events(&self) -> u32 {
        uint32(self.0, span::DROPPED_EVENTS)
    }

    /// How many links were dropped before it was sent.
    pub fn dropped_links(&self) -> u32 {
        uint32(self.0, span::DROPPED_LINKS)
    }
}

view! {
    /// Something that happened during a span.
    Event
}

impl<'a> Event<'a> {
    /// Nanoseconds since 1970.
    pub fn time(&self) -> u64 {
        fixed64(self.0, event::TIME)
    }

    /// What happened.
    pub fn name(&self) -> &'a [u8] {
        bytes(self.0, event::NAME)
    }

    /// What describes it.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.0, event::ATTRIBUTES)
    }

    /// How many attributes were dropped before it was sent.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, event::DROPPED_ATTRIBUTES)
    }
}

view! {
    /// Another span that a span has to do with. Its ids were not checked for their length.
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

    /// What describes the link.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.0, link::ATTRIBUTES)
    }

    /// How many attributes were dropped before it was sent.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, link::DROPPED_ATTRIBUTES)
    }

    /// Trace flags in the lowest byte, and whether the other span is remote above them.
    pub fn flags(&self) -> u32 {
        fixed32(self.0, link::FLAGS)
    }
}

/// How a span ended. It may be there in parts, which protobuf takes together as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status<'a> {
    span: &'a [u8],
}

impl<'a> Status<'a> {
    /// 0 unset, 1 ok, 2 error.
    pub fn code(&self) -> i32 {
        let code = last_within(self.span, span::STATUS, status::CODE, VARINT);
        // Protobuf cuts what is too long.
        code.and_then(|field| field.as_varint()).unwrap_or_default() as i32
    }

    /// Why it failed.
    pub fn message(&self) -> &'a [u8] {
        last_within(self.span, span::STATUS, status::MESSAGE, LEN).map(|field| field.value).unwrap_or_default()
    }
}
