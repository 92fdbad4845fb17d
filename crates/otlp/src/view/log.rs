//! Log records.

use std::borrow::Cow;

use super::message::{bytes, fixed32, fixed64, int32, merged, uint32, view};
use super::{AnyValue, Attributes};
use crate::numbers::log;

view! {
    /// One entry of a log: the content of a `LogRecord`.
    LogRecord
}

impl<'a> LogRecord<'a> {
    /// When it happened, in nanoseconds since 1970; 0 if that is not known.
    pub fn time(&self) -> u64 {
        fixed64(self.0, log::TIME)
    }

    /// When it was seen first by something that collects logs, in nanoseconds since 1970.
    pub fn observed_time(&self) -> u64 {
        fixed64(self.0, log::OBSERVED_TIME)
    }

    /// The `SeverityNumber`: 1 to 4 trace, to 8 debug, to 12 info, to 16 warn, to 20 error, to 24 fatal; 0 unspecified.
    pub fn severity_number(&self) -> i32 {
        int32(self.0, log::SEVERITY_NUMBER)
    }

    /// The severity as its source writes it.
    pub fn severity_text(&self) -> &'a [u8] {
        bytes(self.0, log::SEVERITY_TEXT)
    }

    /// What was logged.
    pub fn body(&self) -> AnyValue<'a> {
        AnyValue::within(self.0, log::BODY)
    }

    /// The content of the body's `AnyValue` message, as it was sent. One that was sent in parts is put together, which
    /// allocates.
    pub fn raw_body(&self) -> Cow<'a, [u8]> {
        merged(self.0, log::BODY)
    }

    /// What describes it.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.0, log::ATTRIBUTES)
    }

    /// How many attributes were dropped before it was sent.
    pub fn dropped_attributes(&self) -> u32 {
        uint32(self.0, log::DROPPED_ATTRIBUTES)
    }

    /// Trace flags in the lowest byte.
    pub fn flags(&self) -> u32 {
        fixed32(self.0, log::FLAGS)
    }

    /// The trace that it belongs to; 16 bytes, or none.
    pub fn trace_id(&self) -> &'a [u8] {
        bytes(self.0, log::TRACE_ID)
    }

    /// The span that it belongs to; 8 bytes, or none.
    pub fn span_id(&self) -> &'a [u8] {
        bytes(self.0, log::SPAN_ID)
    }

    /// The kind of event that it is, if it is one.
    pub fn event_name(&self) -> &'a [u8] {
        bytes(self.0, log::EVENT_NAME)
    }
}
