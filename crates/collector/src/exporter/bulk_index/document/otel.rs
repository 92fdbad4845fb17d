//! The mode `otel`: the structure of OpenTelemetry, which Elasticsearch's own templates expect.

use kubewake_config::model::Dedot;
use kubewake_otlp::view::{AnyValue, Event, Link, LogRecord, Resource, Scope, Span};

use super::{DocumentWriter, log_time, without_stream};
use crate::exporter::{
    bulk_index::index_name::StreamName,
    record_json::{JsonOutput, ObjectWriter, push_text, push_value},
};

pub(super) fn push_resource(resource: Resource<'_>, schema_url: &[u8], dedot: Dedot, out: &mut JsonOutput<'_>) {
    out.push(b"\"resource\":");
    let mut object = ObjectWriter::begin(out);
    object.text("schema_url", schema_url);
    object.attributes("attributes", without_stream(resource.attributes()), dedot);
    object.number("dropped_attributes_count", resource.dropped_attributes());
    object.end();
}

pub(super) fn push_scope(scope: Scope<'_>, schema_url: &[u8], dedot: Dedot, out: &mut JsonOutput<'_>) {
    out.push(b"\"scope\":");
    let mut object = ObjectWriter::begin(out);
    object.text("schema_url", schema_url);
    object.text("name", scope.name());
    object.text("version", scope.version());
    object.attributes("attributes", without_stream(scope.attributes()), dedot);
    object.number("dropped_attributes_count", scope.dropped_attributes());
    object.end();
}

pub(super) fn push_log(
    record: LogRecord<'_>,
    writer: &DocumentWriter,
    stream: Option<&StreamName>,
    out: &mut JsonOutput<'_>,
) {
    let mut object = ObjectWriter::begin(out);
    object.milliseconds("@timestamp", writer.time_or_now(log_time(record)));
    object.milliseconds("observed_timestamp", record.observed_time());
    push_stream(stream, &mut object);
    object.text("severity_text", record.severity_text());
    object.number("severity_number", record.severity_number());
    object.hex("trace_id", record.trace_id());
    object.hex("span_id", record.span_id());
    object.attributes("attributes", without_stream(record.attributes()), writer.dedot);
    object.number("dropped_attributes_count", record.dropped_attributes());
    object.text("event_name", record.event_name());
    push_source(writer, &mut object);
    push_body(record.body(), writer.dedot, &mut object);
    object.end();
}

/// Text, or a structure. Elasticsearch takes objects as structures, and lists of objects.
fn push_body(body: AnyValue<'_>, dedot: Dedot, object: &mut ObjectWriter<'_, '_>) {
    let is_object = |content: &[u8]| matches!(AnyValue::new(content), AnyValue::KeyValueList(_));
    match body {
        AnyValue::None => {}
        AnyValue::KeyValueList(_) => push_structured(object, |out| push_value(&body, dedot, 2, out)),
        AnyValue::Array(values) if { values }.all(is_object) => {
            push_structured(object, |out| push_value(&body, dedot, 2, out));
        }
        AnyValue::Array(_) => push_structured(object, |out| {
            out.push(b"{\"value\":");
            push_value(&body, dedot, 2, out);
            out.push_byte(b'}');
        }),
        _ => {
            let mut inner = ObjectWriter::begin(object.member("body"));
            push_scalar_text(&body, inner.member("text"));
            inner.end();
        }
    }
}

fn push_structured(object: &mut ObjectWriter<'_, '_>, push: impl FnOnce(&mut JsonOutput<'_>)) {
    let mut inner = ObjectWriter::begin(object.member("body"));
    push(inner.member("structured"));
    inner.end();
}

/// A value that is neither a list nor a map, as text.
pub(super) fn push_scalar_text(value: &AnyValue<'_>, out: &mut JsonOutput<'_>) {
    match value {
        AnyValue::String(text) => push_text(text, out),
        AnyValue::Bytes(_) => push_value(value, Dedot::None, 0, out),
        _ => push_text(&value.to_text(), out),
    }
}

pub(super) fn push_span(
    span: Span<'_>,
    writer: &DocumentWriter,
    stream: Option<&StreamName>,
    out: &mut JsonOutput<'_>,
) {
    let mut object = ObjectWriter::begin(out);
    object.milliseconds("@timestamp", writer.time_or_now(span.start()));
    push_stream(stream, &mut object);
    object.hex("trace_id", span.trace_id());
    object.hex("span_id", span.span_id());
    object.text("trace_state", span.trace_state());
    object.hex("parent_span_id", span.parent_span_id());
    object.text("name", span.name());
    object.text("kind", kind_name(span.kind()).as_bytes());
    object.member("duration").push_display(span.end().saturating_sub(span.start()));
    object.attributes("attributes", without_stream(span.attributes()), writer.dedot);
    object.number("dropped_attributes_count", span.dropped_attributes());
    object.number("dropped_events_count", span.dropped_events());
    object.number("dropped_links_count", span.dropped_links());
    push_links(span, writer.dedot, &mut object);
    push_status(span, &mut object);
    push_source(writer, &mut object);
    object.end();
}

fn push_links(span: Span<'_>, dedot: Dedot, object: &mut ObjectWriter<'_, '_>) {
    if span.links().next().is_none() {
        return;
    }
    let out = object.member("links");
    out.push_byte(b'[');
    for link in span.links() {
        push_link(link, dedot, out);
        out.push_byte(b',');
    }
    out.pop_if(b',');
    out.push_byte(b']');
}

fn push_link(link: Link<'_>, dedot: Dedot, out: &mut JsonOutput<'_>) {
    let mut object = ObjectWriter::begin(out);
    object.hex("trace_id", link.trace_id());
    object.hex("span_id", link.span_id());
    object.text("trace_state", link.trace_state());
    object.attributes("attributes", link.attributes(), dedot);
    object.number("dropped_attributes_count", link.dropped_attributes());
    object.end();
}

fn push_status(span: Span<'_>, object: &mut ObjectWriter<'_, '_>) {
    let status = span.status();
    let code: &[u8] = match status.code() {
        1 => b"Ok",
        2 => b"Error",
        _ => b"",
    };
    if code.is_empty() && status.message().is_empty() {
        return;
    }
    let mut inner = ObjectWriter::begin(object.member("status"));
    inner.text("message", status.message());
    inner.text("code", code);
    inner.end();
}

/// What the documents of events have from their span.
pub(in crate::exporter::bulk_index) struct EventParent<'a> {
    trace_id: &'a [u8],
    span_id: &'a [u8],
    start: u64,
}

impl<'a> EventParent<'a> {
    pub(in crate::exporter::bulk_index) fn new(span: Span<'a>) -> Self {
        Self { trace_id: span.trace_id(), span_id: span.span_id(), start: span.start() }
    }
}

/// A document of logs.
pub(super) fn push_event(
    event: Event<'_>,
    parent: &EventParent<'_>,
    writer: &DocumentWriter,
    stream: Option<&StreamName>,
    out: &mut JsonOutput<'_>,
) {
    let mut object = ObjectWriter::begin(out);
    object.milliseconds("@timestamp", writer.time_or_now(if event.time() > 0 { event.time() } else { parent.start }));
    push_stream(stream, &mut object);
    object.hex("trace_id", parent.trace_id);
    object.hex("span_id", parent.span_id);
    object.text("event_name", event.name());
    object.attributes("attributes", without_stream(event.attributes()), writer.dedot);
    object.number("dropped_attributes_count", event.dropped_attributes());
    push_source(writer, &mut object);
    object.end();
}

fn push_stream(stream: Option<&StreamName>, object: &mut ObjectWriter<'_, '_>) {
    if let Some(stream) = stream {
        stream.push(object.member("data_stream"));
    }
}

fn push_source(writer: &DocumentWriter, object: &mut ObjectWriter<'_, '_>) {
    object.members(&writer.resource_members);
    object.members(&writer.scope_members);
}

/// The name of a `SpanKind`.
pub(super) fn kind_name(kind: i32) -> &'static str {
    match kind {
        1 => "Internal",
        2 => "Server",
        3 => "Client",
        4 => "Producer",
        5 => "Consumer",
        _ => "Unspecified",
    }
}
