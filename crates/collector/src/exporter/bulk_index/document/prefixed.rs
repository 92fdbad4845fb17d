//! The modes `none` and `raw`: the fields of a record under the names of OpenTelemetry.

use kubewake_config::model::Dedot;
use kubewake_otlp::view::{AnyValue, LogRecord, Span};

use super::{DocumentWriter, RecordSource, log_time};
use crate::exporter::{
    bulk_index::index_name::StreamName,
    record_json::{FieldList, FieldValue, JsonOutput, ObjectWriter},
};

/// `prefix` is that of attributes of the record.
pub(super) fn push_log(
    record: LogRecord<'_>,
    source: &RecordSource<'_>,
    stream: Option<&StreamName>,
    prefix: &'static str,
    writer: &DocumentWriter,
    out: &mut JsonOutput<'_>,
) {
    FieldList::write_object(out, writer.dedot, 1, |fields| {
        fields.time("@timestamp", writer.time_or_now(log_time(record)));
        fields.time("ObservedTimestamp", record.observed_time());
        fields.hex("TraceId", record.trace_id());
        fields.hex("SpanId", record.span_id());
        fields.number("TraceFlags", record.flags() & 0xff);
        fields.text("SeverityText", record.severity_text());
        fields.number("SeverityNumber", record.severity_number());
        fields.text("EventName", record.event_name());
        if !matches!(record.body(), AnyValue::None) {
            fields.field("", b"Body", FieldValue::Body(record));
        }
        push_source(source, stream, fields);
        record.attributes().into_iter().for_each(|pair| fields.attribute(prefix, pair.key(), pair));
    });
}

/// The stream, the resource and the scope, which count more than what follows.
fn push_source<'a>(source: &RecordSource<'a>, stream: Option<&'a StreamName>, fields: &mut FieldList<'a, '_, '_>) {
    if let Some(stream) = stream {
        stream.add_to(fields);
    }
    source.resource.attributes().into_iter().for_each(|pair| fields.attribute("Resource.", pair.key(), pair));
    fields.text("Scope.name", source.scope.name());
    fields.text("Scope.version", source.scope.version());
    source.scope.attributes().into_iter().for_each(|pair| fields.attribute("Scope.", pair.key(), pair));
    fields.next_rank();
}

pub(super) fn push_span(
    span: Span<'_>,
    source: &RecordSource<'_>,
    stream: Option<&StreamName>,
    prefix: &'static str,
    writer: &DocumentWriter,
    out: &mut JsonOutput<'_>,
) {
    let microseconds = span.end().saturating_sub(span.start()) / 1000;
    let push_events = |out: &mut JsonOutput<'_>| push_events(span, writer.dedot, out);
    let push_links = |out: &mut JsonOutput<'_>| push_links(span, writer.dedot, out);
    FieldList::write_object(out, writer.dedot, 1, |fields| {
        fields.time("@timestamp", writer.time_or_now(span.start()));
        fields.time("EndTimestamp", span.end());
        fields.hex("TraceId", span.trace_id());
        fields.hex("SpanId", span.span_id());
        fields.hex("ParentSpanId", span.parent_span_id());
        fields.text("TraceState", span.trace_state());
        fields.text("Name", span.name());
        fields.field("", b"Kind", FieldValue::Name(kind_name(span.kind())));
        fields.field("", b"TraceStatus", FieldValue::Integer(span.status().code().into()));
        fields.text("TraceStatusDescription", span.status().message());
        fields.field("", b"Duration", FieldValue::Integer(i64::try_from(microseconds).unwrap_or(i64::MAX)));
        if span.links().next().is_some() {
            fields.field("", b"Link", FieldValue::Written(&push_links));
        }
        if span.events().next().is_some() {
            fields.field("", b"Events", FieldValue::Written(&push_events));
        }
        push_source(source, stream, fields);
        span.attributes().into_iter().for_each(|pair| fields.attribute(prefix, pair.key(), pair));
    });
}

pub(super) fn push_links(span: Span<'_>, dedot: Dedot, out: &mut JsonOutput<'_>) {
    out.push_byte(b'[');
    for link in span.links() {
        let mut object = ObjectWriter::begin(out);
        object.hex("traceID", link.trace_id());
        object.hex("spanID", link.span_id());
        object.text("traceState", link.trace_state());
        object.attributes("attribute", link.attributes(), dedot);
        object.end();
        out.push_byte(b',');
    }
    out.pop_if(b',');
    out.push_byte(b']');
}

pub(super) fn push_events(span: Span<'_>, dedot: Dedot, out: &mut JsonOutput<'_>) {
    out.push_byte(b'[');
    for event in span.events() {
        let mut object = ObjectWriter::begin(out);
        object.rfc3339("time", event.time());
        object.text("name", event.name());
        object.attributes("attributes", event.attributes(), dedot);
        object.end();
        out.push_byte(b',');
    }
    out.pop_if(b',');
    out.push_byte(b']');
}

fn kind_name(kind: i32) -> &'static str {
    match kind {
        1 => "SPAN_KIND_INTERNAL",
        2 => "SPAN_KIND_SERVER",
        3 => "SPAN_KIND_CLIENT",
        4 => "SPAN_KIND_PRODUCER",
        5 => "SPAN_KIND_CONSUMER",
        _ => "SPAN_KIND_UNSPECIFIED",
    }
}
