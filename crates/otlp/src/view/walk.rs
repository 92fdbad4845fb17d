//! From a request to its records.

use std::cell::OnceCell;
use std::ops::Range;

use super::message::{Repeated, bytes};
use super::{LogRecord, Metric, Resource, Scope, Span, View};
use crate::Signal;
use crate::numbers::{request, resource_entry, scope_entry};
use crate::wire::Fields;

/// The resource entries of a request of any signal, in order. Ends where the request stops being well formed.
pub fn resources(request: &[u8]) -> impl Iterator<Item = ResourceEntry<'_>> {
    Repeated::<&[u8]>::new(request, request::RESOURCE_ENTRIES).map(ResourceEntry::new)
}

/// A `ResourceSpans`, `ResourceLogs` or `ResourceMetrics`.
#[derive(Clone, Debug)]
pub struct ResourceEntry<'a> {
    content: &'a [u8],
    resource: OnceCell<Header>,
}

impl<'a> ResourceEntry<'a> {
    /// Sees the content of the message. Any bytes will do.
    pub fn new(content: &'a [u8]) -> Self {
        Self { content, resource: OnceCell::new() }
    }

    /// Who sent the records; found at the first call. If it was sent in parts they are put together, which allocates.
    pub fn resource(&self) -> Resource<'_> {
        let header = self.resource.get_or_init(|| Header::find(self.content, resource_entry::RESOURCE));
        Resource::new(header.within(self.content))
    }

    /// The schema of the resource.
    pub fn schema_url(&self) -> &'a [u8] {
        bytes(self.content, resource_entry::SCHEMA_URL)
    }

    /// The scope entries, in order.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeEntry<'a>> + use<'a> {
        Repeated::<&[u8]>::new(self.content, resource_entry::SCOPE_ENTRIES).map(ScopeEntry::new)
    }

    /// The content of the message.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.content
    }
}

/// A `ScopeSpans`, `ScopeLogs` or `ScopeMetrics`.
#[derive(Clone, Debug)]
pub struct ScopeEntry<'a> {
    content: &'a [u8],
    scope: OnceCell<Header>,
}

impl<'a> ScopeEntry<'a> {
    /// Sees the content of the message. Any bytes will do.
    pub fn new(content: &'a [u8]) -> Self {
        Self { content, scope: OnceCell::new() }
    }

    /// Which library made the records; found at the first call. If it was sent in parts they are put together, which
    /// allocates.
    pub fn scope(&self) -> Scope<'_> {
        let header = self.scope.get_or_init(|| Header::find(self.content, scope_entry::SCOPE));
        Scope::new(header.within(self.content))
    }

    /// The schema of the records.
    pub fn schema_url(&self) -> &'a [u8] {
        bytes(self.content, scope_entry::SCHEMA_URL)
    }

    /// The records of a request of traces.
    pub fn spans(&self) -> Repeated<'a, Span<'a>> {
        Repeated::new(self.content, scope_entry::RECORDS)
    }

    /// The records of a request of logs.
    pub fn log_records(&self) -> Repeated<'a, LogRecord<'a>> {
        Repeated::new(self.content, scope_entry::RECORDS)
    }

    /// The records of a request of metrics.
    pub fn metrics(&self) -> Repeated<'a, Metric<'a>> {
        Repeated::new(self.content, scope_entry::RECORDS)
    }

    /// The content of the message.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.content
    }
}

/// A message that should be in its entry once. It borrows nothing, so that an entry stays covariant in its lifetime.
#[derive(Clone, Debug)]
enum Header {
    /// It is there once, or not at all.
    At(Range<usize>),
    /// It is there in parts. Protobuf merges them, and merging is concatenation.
    Merged(Vec<u8>),
}

impl Header {
    fn find(entry: &[u8], number: u32) -> Self {
        let mut parts = Fields::new(entry).filter(|field| field.is_len(number)).map(|field| field.value);
        let Some(first) = parts.next() else { return Header::At(0..0) };
        let Some(second) = parts.next() else {
            let start = first.as_ptr().addr() - entry.as_ptr().addr();
            return Header::At(start..start + first.len());
        };
        let mut whole = [first, second].concat();
        parts.for_each(|part| whole.extend_from_slice(part));
        Header::Merged(whole)
    }

    fn within<'a>(&'a self, entry: &'a [u8]) -> &'a [u8] {
        match self {
            Header::At(range) => entry.get(range.clone()).unwrap_or_default(),
            Header::Merged(whole) => whole,
        }
    }
}

/// A record with the entries that it is in.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    resource: &'a ResourceEntry<'a>,
    scope: &'a ScopeEntry<'a>,
    record: RecordView<'a>,
}

/// A record of the signal that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordView<'a> {
    /// Of traces.
    Span(Span<'a>),
    /// Of logs.
    Log(LogRecord<'a>),
    /// Of metrics.
    Metric(Metric<'a>),
}

impl<'a> RecordRef<'a> {
    pub(crate) fn new(
        signal: Signal,
        resource: &'a ResourceEntry<'a>,
        scope: &'a ScopeEntry<'a>,
        content: &'a [u8],
    ) -> Self {
        let record = match signal {
            Signal::Traces => RecordView::Span(Span::new(content)),
            Signal::Logs => RecordView::Log(LogRecord::new(content)),
            Signal::Metrics => RecordView::Metric(Metric::new(content)),
        };
        Self { resource, scope, record }
    }

    /// Who sent it.
    pub fn resource(&self) -> Resource<'a> {
        self.resource.resource()
    }

    /// Which library made it.
    pub fn scope(&self) -> Scope<'a> {
        self.scope.scope()
    }

    /// The content of the `ResourceSpans`, `ResourceLogs` or `ResourceMetrics` that it is in: what tells it from others of the same request.
    pub fn resource_entry(&self) -> &'a [u8] {
        self.resource.as_bytes()
    }

    /// The record as what it is.
    pub fn view(&self) -> RecordView<'a> {
        self.record
    }

    /// The span, if it is one.
    pub fn span(&self) -> Option<Span<'a>> {
        match self.record {
            RecordView::Span(span) => Some(span),
            _ => None,
        }
    }

    /// The log record, if it is one.
    pub fn log(&self) -> Option<LogRecord<'a>> {
        match self.record {
            RecordView::Log(record) => Some(record),
            _ => None,
        }
    }

    /// The metric, if it is one.
    pub fn metric(&self) -> Option<Metric<'a>> {
        match self.record {
            RecordView::Metric(metric) => Some(metric),
            _ => None,
        }
    }

    /// The trace that it belongs to; empty if it belongs to none, as metrics do.
    pub fn trace_id(&self) -> &'a [u8] {
        match self.record {
            RecordView::Span(span) => span.trace_id(),
            RecordView::Log(record) => record.trace_id(),
            RecordView::Metric(_) => &[],
        }
    }

    /// The content of the record's message.
    pub fn as_bytes(&self) -> &'a [u8] {
        match self.record {
            RecordView::Span(span) => span.as_bytes(),
            RecordView::Log(record) => record.as_bytes(),
            RecordView::Metric(metric) => metric.as_bytes(),
        }
    }
}
