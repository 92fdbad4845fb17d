//! Documents: what a record becomes in the mapping modes of Elasticsearch and OpenSearch.
//!
//! *Guarantees.* A document is one line. Where attributes of a resource, a scope and a record come together, the
//! resource wins. What all records of a resource or a scope have in common is written once and copied.

mod body_map;
mod ecs;
mod otel;
mod prefixed;
mod ss4o;

#[cfg(test)]
mod tests;

use kubewake_config::model::{Dedot, MappingMode};
use kubewake_otlp::view::{AttributesView, KeyValue, LogRecord, Resource, Scope, Span};

use super::index_name::StreamName;
use crate::exporter::record_json::JsonOutput;

/// Where a record was found.
#[derive(Clone, Copy)]
pub(super) struct RecordSource<'a> {
    pub(super) resource: Resource<'a>,
    pub(super) scope: Scope<'a>,
}

/// Writes documents in one mode.
pub(super) struct DocumentWriter {
    mode: MappingMode,
    dedot: Dedot,
    /// Members of the resource and of the scope that all documents have.
    resource_members: Vec<u8>,
    scope_members: Vec<u8>,
    /// The time of records that have none; data streams refuse documents without one.
    now: u64,
}

impl DocumentWriter {
    pub(super) fn new(mode: MappingMode, dedot: Dedot, now: u64) -> Self {
        Self { mode, dedot, resource_members: Vec::new(), scope_members: Vec::new(), now }
    }

    /// A time of a record, or now if it is unknown.
    pub(super) fn time_or_now(&self, time: u64) -> u64 {
        if time > 0 { time } else { self.now }
    }

    /// Begins the records of another resource. It comes before its first scope.
    pub(super) fn begin_resource(&mut self, resource: Resource<'_>, schema_url: &[u8], out: &mut JsonOutput<'_>) {
        let start = out.len();
        match self.mode {
            MappingMode::Otel => otel::push_resource(resource, schema_url, self.dedot, out),
            MappingMode::Ss4o => ss4o::push_resource(resource, schema_url, self.dedot, out),
            _ => {}
        }
        out.move_tail(start, &mut self.resource_members);
    }

    /// Begins the records of another scope.
    pub(super) fn begin_scope(&mut self, scope: Scope<'_>, schema_url: &[u8], out: &mut JsonOutput<'_>) {
        let start = out.len();
        match self.mode {
            MappingMode::Otel => otel::push_scope(scope, schema_url, self.dedot, out),
            MappingMode::Ss4o => ss4o::push_scope(scope, schema_url, self.dedot, out),
            _ => {}
        }
        out.move_tail(start, &mut self.scope_members);
    }

    pub(super) fn log(
        &self,
        record: LogRecord<'_>,
        source: &RecordSource<'_>,
        stream: Option<&StreamName>,
        out: &mut JsonOutput<'_>,
    ) {
        match self.mode {
            MappingMode::Otel => otel::push_log(record, self, stream, out),
            MappingMode::Ecs => ecs::push_log(record, source, stream, self, out),
            MappingMode::Prefixed => prefixed::push_log(record, source, stream, "Attributes.", self, out),
            MappingMode::Raw => prefixed::push_log(record, source, stream, "", self, out),
            MappingMode::BodyMap => body_map::push_log(record, self, out),
            MappingMode::Ss4o => ss4o::push_log(record, self, stream, out),
        }
    }

    pub(super) fn span(
        &self,
        span: Span<'_>,
        source: &RecordSource<'_>,
        stream: Option<&StreamName>,
        out: &mut JsonOutput<'_>,
    ) {
        match self.mode {
            MappingMode::Otel | MappingMode::BodyMap => otel::push_span(span, self, stream, out),
            MappingMode::Ecs => ecs::push_span(span, source, stream, self, out),
            MappingMode::Prefixed => prefixed::push_span(span, source, stream, "Attributes.", self, out),
            MappingMode::Raw => prefixed::push_span(span, source, stream, "", self, out),
            MappingMode::Ss4o => ss4o::push_span(span, self, stream, out),
        }
    }

    /// A document of an event of a span.
    pub(super) fn event(
        &self,
        event: kubewake_otlp::view::Event<'_>,
        parent: &EventParent<'_>,
        stream: Option<&StreamName>,
        out: &mut JsonOutput<'_>,
    ) {
        otel::push_event(event, parent, self, stream, out);
    }
}

pub(super) use otel::EventParent;

/// The time of a log record, or the time at which it was observed.
pub(super) fn log_time(record: LogRecord<'_>) -> u64 {
    match record.time() {
        0 => record.observed_time(),
        time => time,
    }
}

/// Attributes without those that name the data stream, which the document has in another place.
fn without_stream<'a>(attributes: AttributesView<'a>) -> impl Iterator<Item = KeyValue<'a>> {
    const STREAM_KEYS: [&[u8]; 3] = [b"data_stream.type", b"data_stream.dataset", b"data_stream.namespace"];
    attributes.into_iter().filter(|pair| !STREAM_KEYS.contains(&pair.key()))
}
