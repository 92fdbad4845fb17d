//! Walks from a request to its records.

use std::cell::OnceCell;
use std::ops::Range;

use super::message::{RepeatedField, bytes};
use super::{LogRecord, MessageView, Metric, Resource, Scope, Span};
use crate::Signal;
use crate::field_numbers::{request, resource_entry, scope_entry};
use crate::wire::WireFields;

/// The resource entries of a request of any signal, in order. Ends where the request stops being well formed.
pub fn resources(request: &[u8]) -> impl Iterator<Item = ResourceEntry<'_>> {
    RepeatedField::<&[u8]>::new(request, request::RESOURCE_ENTRIES).map(ResourceEntry::new)
}

/// A `ResourceSpans`, `ResourceLogs` or `ResourceMetrics`.
#[derive(Clone, Debug)]
pub struct ResourceEntry<'a> {
    content: &'a [u8],
    resource: OnceCell<EntryHeader>,
}

impl<'a> ResourceEntry<'a> {
    /// Views the content of the message. Any bytes are allowed.
    pub fn new(content: &'a [u8]) -> Self {
        Self { content, resource: OnceCell::new() }
    }

    /// The resource; found at the first call. If it was sent in parts they are merged, which allocates.
    pub fn resource(&self) -> Resource<'_> {
        let header = self.resource.get_or_init(|| EntryHeader::find(self.content, resource_entry::RESOURCE));
        Resource::new(header.within(self.content))
    }

    /// The schema URL of the resource.
    pub fn schema_url(&self) -> &'a [u8] {
        bytes(self.content, resource_entry::SCHEMA_URL)
    }

    /// The scope entries, in order.
    pub fn scopes(&self) -> impl Iterator<Item = ScopeEntry<'a>> + use<'a> {
        RepeatedField::<&[u8]>::new(self.content, resource_entry::SCOPE_ENTRIES).map(ScopeEntry::new)
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
    scope: OnceCell<EntryHeader>,
}

impl<'a> ScopeEntry<'a> {
    /// Views the content of the message. Any bytes are allowed.
    pub fn new(content: &'a [u8]) -> Self {
        Self { content, scope: OnceCell::new() }
    }

    /// The scope; found at the first call. If it was sent in parts they are merged, which allocates.
    pub fn scope(&self) -> Scope<'_> {
        let header = self.scope.get_or_init(|| EntryHeader::find(self.content, scope_entry::SCOPE));
        Scope::new(header.within(self.content))
    }

    /// The schema URL of the records.
    pub fn schema_url(&self) -> &'a [u8] {
        bytes(self.content, scope_entry::SCHEMA_URL)
    }

    /// The records of a request of traces.
    pub fn spans(&self) -> RepeatedField<'a, Span<'a>> {
        RepeatedField::new(self.content, scope_entry::RECORDS)
    }

    /// The records of a request of logs.
    pub fn log_records(&self) -> RepeatedField<'a, LogRecord<'a>> {
        RepeatedField::new(self.content, scope_entry::RECORDS)
    }

    /// The records of a request of metrics.
    pub fn metrics(&self) -> RepeatedField<'a, Metric<'a>> {
        RepeatedField::new(self.content, scope_entry::RECORDS)
    }

    /// The content of the message.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.content
    }
}

/// A singular message of an entry. It borrows nothing, so that an entry stays covariant in its lifetime.
#[derive(Clone, Debug)]
enum EntryHeader {
    /// The message occurs once, or not at all.
    At(Range<usize>),
    /// The message comes in parts. Protobuf merges them, and merging is concatenation.
    Merged(Vec<u8>),
}

impl EntryHeader {
    fn find(entry: &[u8], number: u32) -> Self {
        let mut parts = WireFields::new(entry).filter(|field| field.is_len(number)).map(|field| field.value);
        let Some(first) = parts.next() else { return EntryHeader::At(0..0) };
        let Some(second) = parts.next() else {
            let start = first.as_ptr().addr() - entry.as_ptr().addr();
            return EntryHeader::At(start..start + first.len());
        };
        let mut whole = [first, second].concat();
        parts.for_each(|part| whole.extend_from_slice(part));
        EntryHeader::Merged(whole)
    }

    fn within<'a>(&'a self, entry: &'a [u8]) -> &'a [u8] {
        match self {
            EntryHeader::At(range) => entry.get(range.clone()).unwrap_or_default(),
            EntryHeader::Merged(whole) => whole,
        }
    }
}

/// A record with its resource and scope entries.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    resource: &'a ResourceEntry<'a>,
    scope: &'a ScopeEntry<'a>,
    record: RecordView<'a>,
}

/// A record, by signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordView<'a> {
    Span(Span<'a>),
    Log(LogRecord<'a>),
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

    pub fn resource(&self) -> Resource<'a> {
        self.resource.resource()
    }

    pub fn scope(&self) -> Scope<'a> {
        self.scope.scope()
    }

    /// The content of its `ResourceSpans`, `ResourceLogs` or `ResourceMetrics`, which identifies the entry
    /// within the request.
    pub fn resource_entry(&self) -> &'a [u8] {
        self.resource.as_bytes()
    }

    /// The record as the type of its signal.
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

    /// The id of its trace; empty if it has none, as metrics.
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
