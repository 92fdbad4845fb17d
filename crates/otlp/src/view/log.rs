//! Log records.

use std::borrow::Cow;

use super::message::{bytes, fixed32, fixed64, int32, merged, uint32, view};
use super::{AnyValue, AttributesView};
use crate::field_numbers::log;

view! {
    /// A log record: the content of a `LogRecord`.
    LogRecord
}

impl<'a> LogRecord<'a> {
    /// The time of the event, in nanoseconds since 1970; 0 if unknown.
    pub fn time(&self) -> u64 {
        fixed64(self.0, log::TIME)
    }

    /// The time at which a collector first observed the event, in nanoseconds since 1970.
    pub fn observed_time(&self) -> u64 {
        fixed64(self.0, log::OBSERVED_TIME)
    }

    /// The `SeverityNumber`: 1 to 4 trace, to 8 debug, to 12 info, to 16 warn, to 20 error, to 24 fatal; 0
    /// unspecified.
    pub fn severity_number(&self) -> i32 {
        int32(self.0, log::SEVERITY_NUMBER)
    }

    /// The severity as its source names it.
    pub fn severity_text(&self) -> &'a [u8] {
        bytes(self.0, log::SEVERITY_TEXT)
    }

    pub fn body(&self) -> AnyValue<'a> {
        AnyValue::within(self.0, log::BODY)
    }

    /// The content of the body's `AnyValue` message, as it was sent. One that was sent in parts is merged,
    /// which allocates.
    pub fn raw_body(&self) -> Cow<'a, [u8]> {
        merged(self.0, log::BODY)
    }

    pub fn attributes(&self) -> AttributesView<'a> {
        AttributesView::new(self.0, log::ATTRIBUTES)
    }

    /// The number of attributes that the sender dropped.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, log::DROPPED_ATTRIBUTES)
    }

    /// Trace flags in the lowest byte.
    pub fn flags(&self) -> u32 {
        fixed32(self.0, log::FLAGS)
    }

    /// The id of its trace; 16 bytes, or empty.
    pub fn trace_id(&self) -> &'a [u8] {
        bytes(self.0, log::TRACE_ID)
    }

    /// The id of its span; 8 bytes, or empty.
    pub fn span_id(&self) -> &'a [u8] {
        bytes(self.0, log::SPAN_ID)
    }

    /// The name of the event type, if the record is an event.
    pub fn event_name(&self) -> &'a [u8] {
        bytes(self.0, log::EVENT_NAME)
    }
}
