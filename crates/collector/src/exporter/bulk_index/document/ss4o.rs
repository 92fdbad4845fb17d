//! The mode `ss4o`: the Simple Schema for Observability of OpenSearch.

use kubewake_config::model::Dedot;
use kubewake_otlp::view::{AnyValue, AttributesView, Event, KeyValue, Link, LogRecord, Resource, Scope, Span};

use super::{
    DocumentWriter, log_time,
    otel::{kind_name, push_scalar_text},
    without_stream,
};
use crate::exporter::{
    bulk_index::index_name::StreamName,
    record_json::{FieldList, FieldValue, JsonOutput, ObjectWriter, push_text, push_value},
};

/// The resource, whose values are all text.
pub(super) fn push_resource(resource: Resource<'_>, schema_url: &[u8], dedot: Dedot, out: &mut JsonOutput<'_>) {
    out.push(b"\"resource\":");
    FieldList::write_object(out, dedot, 1, |fields| {
        for pair in resource.attributes() {
            fields.field("", pair.key(), FieldValue::Converted(pair, push_value_text));
        }
    });
    if !schema_url.is_empty() {
        out.push(b",\"schemaUrl\":");
        push_text(schema_url, out);
    }
}

fn push_value_text(pair: KeyValue<'_>, _: Dedot, out: &mut JsonOutput<'_>) {
    push_as_text(&pair.value(), out);
}

/// Any value as text; a list or a map as its JSON.
fn push_as_text(value: &AnyValue<'_>, out: &mut JsonOutput<'_>) {
    match value {
        AnyValue::Array(_) | AnyValue::KeyValueList(_) => {
            let start = out.len();
            let mut json = Vec::new();
            push_value(value, Dedot::None, 0, out);
            out.move_tail(start, &mut json);
            push_text(&json, out);
        }
        _ => push_scalar_text(value, out),
    }
}

pub(super) fn push_scope(scope: Scope<'_>, schema_url: &[u8], dedot: Dedot, out: &mut JsonOutput<'_>) {
    out.push(b"\"instrumentationScope\":");
    let mut object = ObjectWriter::begin(out);
    object.text("name", scope.name());
    object.text("version", scope.version());
    object.text("schemaUrl", schema_url);
    object.number("droppedAttributesCount", scope.dropped_attributes());
    object.attributes("attributes", scope.attributes(), dedot);
    object.end();
}

pub(super) fn push_log(
    record: LogRecord<'_>,
    writer: &DocumentWriter,
    stream: Option<&StreamName>,
    out: &mut JsonOutput<'_>,
) {
    let mut object = ObjectWriter::begin(out);
    object.rfc3339("@timestamp", writer.time_or_now(log_time(record)));
    object.rfc3339("observedTimestamp", record.observed_time());
    if !matches!(record.body(), AnyValue::None) {
        push_as_text(&record.body(), object.member("body"));
    }
    if !record.severity_text().is_empty() || record.severity_number() != 0 {
        let mut severity = ObjectWriter::begin(object.member("severity"));
        severity.text("text", record.severity_text());
        severity.number("number", record.severity_number());
        severity.end();
    }
    push_attributes(record.attributes(), stream, writer.dedot, &mut object);
    object.number("droppedAttributesCount", record.dropped_attributes());
    object.text("eventName", record.event_name());
    object.hex("traceId", record.trace_id());
    object.hex("spanId", record.span_id());
    push_source(writer, &mut object);
    object.end();
}

pub(super) fn push_span(
    span: Span<'_>,
    writer: &DocumentWriter,
    stream: Option<&StreamName>,
    out: &mut JsonOutput<'_>,
) {
    let mut object = ObjectWriter::begin(out);
    object.rfc3339("@timestamp", writer.time_or_now(span.start()));
    object.hex("traceId", span.trace_id());
    object.hex("spanId", span.span_id());
    object.hex("parentSpanId", span.parent_span_id());
    object.text("traceState", span.trace_state());
    object.text("name", span.name());
    object.text("kind", kind_name(span.kind()).as_bytes());
    object.rfc3339("startTime", span.start());
    object.rfc3339("endTime", span.end());
    push_attributes(span.attributes(), stream, writer.dedot, &mut object);
    object.number("droppedAttributesCount", span.dropped_attributes());
    object.number("droppedEventsCount", span.dropped_events());
    object.number("droppedLinksCount", span.dropped_links());
    push_list("events", span.events(), &mut object, |event, out| push_event(event, writer.dedot, out));
    push_list("links", span.links(), &mut object, |link, out| push_link(link, writer.dedot, out));
    let mut status = ObjectWriter::begin(object.member("status"));
    status.text("code", status_name(span.status().code()));
    status.text("message", span.status().message());
    status.end();
    push_source(writer, &mut object);
    object.end();
}

fn push_list<T>(
    key: &str,
    items: impl Iterator<Item = T>,
    object: &mut ObjectWriter<'_, '_>,
    push: impl Fn(T, &mut JsonOutput<'_>),
) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    let out = object.member(key);
    out.push_byte(b'[');
    for item in items {
        push(item, out);
        out.push_byte(b',');
    }
    out.pop_if(b',');
    out.push_byte(b']');
}

fn push_event(event: Event<'_>, dedot: Dedot, out: &mut JsonOutput<'_>) {
    let mut object = ObjectWriter::begin(out);
    object.text("name", event.name());
    object.rfc3339("@timestamp", event.time());
    object.attributes("attributes", event.attributes(), dedot);
    object.number("droppedAttributesCount", event.dropped_attributes());
    object.end();
}

fn push_link(link: Link<'_>, dedot: Dedot, out: &mut JsonOutput<'_>) {
    let mut object = ObjectWriter::begin(out);
    object.hex("traceId", link.trace_id());
    object.hex("spanId", link.span_id());
    object.text("traceState", link.trace_state());
    object.attributes("attributes", link.attributes(), dedot);
    object.number("droppedAttributesCount", link.dropped_attributes());
    object.end();
}

fn status_name(code: i32) -> &'static [u8] {
    match code {
        1 => b"Ok",
        2 => b"Error",
        _ => b"Unset",
    }
}

/// The attributes, with the data stream among them.
fn push_attributes(
    attributes: AttributesView<'_>,
    stream: Option<&StreamName>,
    dedot: Dedot,
    object: &mut ObjectWriter<'_, '_>,
) {
    if stream.is_none() && attributes.iter().next().is_none() {
        return;
    }
    let push_stream = |out: &mut JsonOutput<'_>| stream.into_iter().for_each(|stream| stream.push(out));
    FieldList::write_object(object.member("attributes"), dedot, 1, |fields| {
        if stream.is_some() {
            fields.field("", b"data_stream", FieldValue::Written(&push_stream));
        }
        fields.next_rank();
        fields.attributes(without_stream(attributes));
    });
}

fn push_source(writer: &DocumentWriter, object: &mut ObjectWriter<'_, '_>) {
    object.members(&writer.resource_members);
    object.members(&writer.scope_members);
}
