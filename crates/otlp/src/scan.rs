//! Validates a request and counts its content, in one pass.
//!
//! Guaranteed after [`scan`] accepted bytes for a signal: down to the record (span, log record, metric, its
//! data and its data points) every field is well formed, lies within its parent and has the wire type that OTLP
//! gives it; trace ids have 0 or 16 bytes, span and parent span ids 0 or 8. All operations of this crate work
//! on such bytes.
//!
//! Not done: the content of a resource, a scope, an attribute, an event, a link, a status, a body or an
//! exemplar is not checked; only their length is. Text is not checked for UTF-8, enums not for their range.
//! Unknown fields are accepted, and so are field numbers that OTLP has removed (`instrumentation_library_*`,
//! metric labels).
//!
//! Facts that hold for all spans of a request are noted on the way, as [`SpanTraits`]: this costs nothing here,
//! and saves other components a walk of their own.
//!
//! A metric with more than one data message is refused: protobuf merges them, and the Collector takes the last
//! one, so that processors and backends would see different data.

mod error;
mod index;
mod metrics;
mod shape;
mod span;
mod span_traits;

#[cfg(test)]
mod tests;

pub use error::{ScanError, ScanErrorKind};
pub use index::{IndexedRecord, RequestIndex, index};
pub use span_traits::SpanTraits;

use std::ops::Range;

use crate::Signal;
use crate::field_numbers::{log, request, resource_entry, scope_entry};
use crate::wire::{WireError, read_tag, skip_value};
use error::ScanFault;
use shape::{MessageShape, ValueShape};

/// The counts and traits of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanSummary {
    /// Spans, log records or data points: the unit of limits, counters and partial success.
    pub items: usize,
    /// Spans, log records or metrics: the unit of [`retain`](crate::retain).
    pub records: usize,
    pub resources: usize,
    pub scopes: usize,
    /// Whether a span or log record has an all-zero trace, span or parent id, which means "no id".
    /// [`clear_zero_ids`](crate::clear_zero_ids) removes them.
    pub zero_ids: bool,
    /// Facts that hold for all spans.
    pub traits: SpanTraits,
}

/// Visits entries and records during a scan. Ranges are offsets of message contents, without tag and length.
/// Visits are valid only if the scan succeeds.
pub trait ScanVisitor {
    /// A `ResourceSpans`, `ResourceLogs` or `ResourceMetrics` begins.
    #[inline]
    fn resource(&mut self, range: Range<usize>) {
        let _ = range;
    }

    /// A `ScopeSpans`, `ScopeLogs` or `ScopeMetrics` begins; it belongs to the last resource.
    #[inline]
    fn scope(&mut self, range: Range<usize>) {
        let _ = range;
    }

    /// A span, log record or metric of the last scope. The trace id is empty where there is none; `items` is 1,
    /// or the number of data points.
    #[inline]
    fn record(&mut self, range: Range<usize>, trace_id: &[u8], items: usize) {
        let _ = (range, trace_id, items);
    }
}

/// Ignores all visits, at no cost.
impl ScanVisitor for () {}

/// Validates a request and counts its content. Empty bytes are an empty request.
pub fn scan(signal: Signal, bytes: &[u8]) -> Result<ScanSummary, ScanError> {
    scan_with(signal, bytes, &mut ())
}

/// As [`scan`], with a visitor for entries and records.
pub fn scan_with<V: ScanVisitor>(signal: Signal, bytes: &[u8], visitor: &mut V) -> Result<ScanSummary, ScanError> {
    let mut scanner = RequestScanner { origin: bytes.as_ptr().addr(), summary: ScanSummary::default(), visitor };
    let mut traits = SpanTraits::NONE;
    let result = match signal {
        Signal::Traces => scanner.request(bytes, &mut |record| span::scan_span(record, &mut traits)),
        Signal::Logs => scanner.request(bytes, &mut scan_log_record),
        Signal::Metrics => scanner.request(bytes, &mut metrics::scan_metric),
    };
    if signal == Signal::Traces && scanner.summary.records > 0 && !scanner.summary.zero_ids {
        scanner.summary.traits = traits;
    }
    match result {
        Ok(()) => Ok(scanner.summary),
        Err(fault) => Err(fault.within(bytes)),
    }
}

/// The facts about a record.
struct ScannedRecord<'a> {
    trace_id: &'a [u8],
    items: usize,
    zero_ids: bool,
}

struct RequestScanner<'v, V> {
    /// The address of the first byte, from which offsets are computed.
    origin: usize,
    summary: ScanSummary,
    visitor: &'v mut V,
}

impl<V: ScanVisitor> RequestScanner<'_, V> {
    #[inline(always)]
    fn request<'a>(
        &mut self,
        bytes: &'a [u8],
        record: &mut impl FnMut(&'a [u8]) -> Result<ScannedRecord<'a>, ScanFault>,
    ) -> Result<(), ScanFault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (number, content) = next_field(&mut rest, &shape::REQUEST)?;
            if number == request::RESOURCE_ENTRIES {
                self.summary.resources += 1;
                self.visitor.resource(self.range(content));
                self.resource_entry(content, record)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn resource_entry<'a>(
        &mut self,
        bytes: &'a [u8],
        record: &mut impl FnMut(&'a [u8]) -> Result<ScannedRecord<'a>, ScanFault>,
    ) -> Result<(), ScanFault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (number, content) = next_field(&mut rest, &shape::RESOURCE_ENTRY)?;
            if number == resource_entry::SCOPE_ENTRIES {
                self.summary.scopes += 1;
                self.visitor.scope(self.range(content));
                self.scope_entry(content, record)?;
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn scope_entry<'a>(
        &mut self,
        bytes: &'a [u8],
        record: &mut impl FnMut(&'a [u8]) -> Result<ScannedRecord<'a>, ScanFault>,
    ) -> Result<(), ScanFault> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (number, content) = next_field(&mut rest, &shape::SCOPE_ENTRY)?;
            if number == scope_entry::RECORDS {
                let found = record(content)?;
                self.summary.records += 1;
                self.summary.items += found.items;
                self.summary.zero_ids |= found.zero_ids;
                self.visitor.record(self.range(content), found.trace_id, found.items);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn range(&self, content: &[u8]) -> Range<usize> {
        let start = content.as_ptr().addr() - self.origin;
        start..start + content.len()
    }
}

/// Reads a field that the shape allows: its number, and its content if it has a length. `rest` is not empty.
///
/// Nearly every field of telemetry has a tag of one byte and is shorter than 16 KiB, a time, or a small number.
#[inline(always)]
fn next_field<'a>(rest: &mut &'a [u8], shape: &MessageShape) -> Result<(u32, &'a [u8]), ScanFault> {
    if let [tag, ref tail @ ..] = **rest {
        let next = shape.after(tag);
        // Tested for first and by itself: attributes are most of the fields, and a jump table would be slower.
        if next == ValueShape::Len {
            if let [size @ ..0x80, tail @ ..] = tail
                && let Some((value, behind)) = tail.split_at_checked(usize::from(*size))
            {
                *rest = behind;
                return Ok((u32::from(tag >> 3), value));
            }
            if let [low @ 0x80..=0xff, high @ ..0x80, tail @ ..] = tail
                && let Some((value, behind)) = tail.split_at_checked(usize::from(low & 0x7f) | usize::from(*high) << 7)
            {
                *rest = behind;
                return Ok((u32::from(tag >> 3), value));
            }
        } else if next == ValueShape::I64
            && let Some((value, behind)) = tail.split_at_checked(8)
        {
            *rest = behind;
            return Ok((u32::from(tag >> 3), value));
        } else if next == ValueShape::Varint
            && let [..0x80, behind @ ..] = tail
            && let Some((value, _)) = tail.split_at_checked(1)
        {
            *rest = behind;
            return Ok((u32::from(tag >> 3), value));
        }
    }
    let (number, value, behind) = any_field(rest, shape)?;
    *rest = behind;
    Ok((number, value))
}

/// As [`next_field`], for every field and every error. The rest behind the field is returned and not written
/// back, so that the caller can keep its position in a register.
#[inline(never)]
fn any_field<'a>(start: &'a [u8], shape: &MessageShape) -> Result<(u32, &'a [u8], &'a [u8]), ScanFault> {
    let mut rest = start;
    let (number, wire) = read_tag(&mut rest).map_err(|error| ScanFault::new(error, start))?;
    if !shape.allows(number, wire) {
        return Err(refuse(number, wire, start));
    }
    match skip_value(&mut rest, wire) {
        Ok(value) => Ok((number, value, rest)),
        Err(error) => Err(ScanFault::new(error, start)),
    }
}

/// Determines why the shape did not allow a tag.
#[cold]
fn refuse(number: u32, wire: u8, start: &[u8]) -> ScanFault {
    match (number, wire) {
        (0, _) => ScanFault::new(WireError::FieldZero, start),
        (_, 3 | 4 | 6 | 7) => ScanFault::new(WireError::WireType(wire), start),
        _ => ScanFault::new(ScanErrorKind::FieldType { number, wire }, start),
    }
}

#[inline]
fn scan_log_record(bytes: &[u8]) -> Result<ScannedRecord<'_>, ScanFault> {
    let mut record = ScannedRecord { trace_id: &[], items: 1, zero_ids: false };
    let mut rest = bytes;
    while !rest.is_empty() {
        let start = rest;
        let (number, content) = next_field(&mut rest, &shape::LOG_RECORD)?;
        match number {
            log::TRACE_ID => {
                record.zero_ids |= is_zero_trace_id(content, start)?;
                record.trace_id = content;
            }
            log::SPAN_ID => record.zero_ids |= is_zero_span_id(content, start)?,
            _ => {}
        }
    }
    Ok(record)
}

#[inline(always)]
fn is_zero_trace_id(content: &[u8], field: &[u8]) -> Result<bool, ScanFault> {
    match <[u8; 16]>::try_from(content) {
        Ok(id) => Ok(u128::from_ne_bytes(id) == 0),
        Err(_) if content.is_empty() => Ok(false),
        Err(_) => Err(ScanFault::new(ScanErrorKind::TraceId(content.len()), field)),
    }
}

#[inline(always)]
fn is_zero_span_id(content: &[u8], field: &[u8]) -> Result<bool, ScanFault> {
    match <[u8; 8]>::try_from(content) {
        Ok(id) => Ok(u64::from_ne_bytes(id) == 0),
        Err(_) if content.is_empty() => Ok(false),
        Err(_) => Err(ScanFault::new(ScanErrorKind::SpanId(content.len()), field)),
    }
}
