//! The mode `ecs`: the Elastic Common Schema. Attributes of the resource, the scope and the record come together at the
//! root of the document, with the names of the schema where it has others.

use kubewake_otlp::view::{AnyValue, AttributesView, LogRecord, Span};

use super::{
    DocumentWriter, RecordSource, log_time,
    otel::push_scalar_text,
    prefixed::{push_events, push_links},
};
use crate::exporter::{
    bulk_index::index_name::StreamName,
    record_json::{FieldList, FieldValue, JsonOutput, push_text, push_value},
};

/// Attributes of resources with their names in the schema.
const RESOURCE_NAMES: [(&str, &str); 33] = [
    ("cloud.platform", "cloud.service.name"),
    ("container.image.tags", "container.image.tag"),
    ("deployment.environment", "service.environment"),
    ("deployment.environment.name", "service.environment"),
    ("faas.instance", "faas.id"),
    ("faas.trigger", "faas.trigger.type"),
    ("host.arch", "host.architecture"),
    ("host.name", "host.hostname"),
    ("k8s.cluster.name", "orchestrator.cluster.name"),
    ("k8s.container.name", "kubernetes.container.name"),
    ("k8s.cronjob.name", "kubernetes.cronjob.name"),
    ("k8s.daemonset.name", "kubernetes.daemonset.name"),
    ("k8s.deployment.name", "kubernetes.deployment.name"),
    ("k8s.job.name", "kubernetes.job.name"),
    ("k8s.namespace.name", "kubernetes.namespace"),
    ("k8s.node.name", "kubernetes.node.name"),
    ("k8s.pod.name", "kubernetes.pod.name"),
    ("k8s.pod.uid", "kubernetes.pod.uid"),
    ("k8s.replicaset.name", "kubernetes.replicaset.name"),
    ("k8s.statefulset.name", "kubernetes.statefulset.name"),
    ("os.description", "host.os.full"),
    ("os.name", "host.os.name"),
    ("os.type", "host.os.platform"),
    ("os.version", "host.os.version"),
    ("process.command_line", "process.command_line"),
    ("process.executable.path", "process.executable"),
    ("process.parent_pid", "process.parent.pid"),
    ("process.runtime.name", "service.runtime.name"),
    ("process.runtime.version", "service.runtime.version"),
    ("service.instance.id", "service.node.name"),
    ("source.address", "source.address"),
    ("telemetry.sdk.name", "agent.name"),
    ("telemetry.sdk.version", "agent.version"),
];

/// Attributes of records with their names in the schema.
const RECORD_NAMES: [(&str, &str); 5] = [
    ("event.name", "event.action"),
    ("exception.escaped", "event.error.exception.handled"),
    ("exception.message", "error.message"),
    ("exception.stacktrace", "error.stack_trace"),
    ("exception.type", "error.type"),
];

fn ecs_name(names: &[(&'static str, &'static str)], key: &[u8]) -> Option<&'static str> {
    let at = names.binary_search_by(|(name, _)| name.as_bytes().cmp(key)).ok()?;
    names.get(at).map(|(_, ecs)| *ecs)
}

fn add_attributes<'a>(
    attributes: AttributesView<'a>,
    names: &[(&'static str, &'static str)],
    fields: &mut FieldList<'a, '_, '_>,
) {
    for pair in attributes {
        let key = ecs_name(names, pair.key()).map_or(pair.key(), str::as_bytes);
        fields.attribute("", key, pair);
    }
}

/// The stream, the resource and the scope, which count more than what follows.
fn add_source<'a>(source: &RecordSource<'a>, stream: Option<&'a StreamName>, fields: &mut FieldList<'a, '_, '_>) {
    if let Some(stream) = stream {
        stream.add_to(fields);
    }
    add_attributes(source.resource.attributes(), &RESOURCE_NAMES, fields);
    // Dashboards look for either.
    if let Some(host) = source.resource.attributes().iter().find(|pair| pair.key() == b"host.name") {
        fields.attribute("", b"host.name", host);
    }
    fields.next_rank();
    add_attributes(source.scope.attributes(), &[], fields);
    fields.next_rank();
}

pub(super) fn push_log(
    record: LogRecord<'_>,
    source: &RecordSource<'_>,
    stream: Option<&StreamName>,
    writer: &DocumentWriter,
    out: &mut JsonOutput<'_>,
) {
    let push_message = |out: &mut JsonOutput<'_>| push_message(&record.body(), out);
    FieldList::write_object(out, writer.dedot, 1, |fields| {
        fields.time("@timestamp", writer.time_or_now(log_time(record)));
        fields.hex("trace.id", record.trace_id());
        fields.hex("span.id", record.span_id());
        fields.number("event.severity", record.severity_number());
        fields.text("log.level", record.severity_text());
        if !matches!(record.body(), AnyValue::None) {
            fields.field("", b"message", FieldValue::Written(&push_message));
        }
        add_source(source, stream, fields);
        fields.text("event.action", record.event_name());
        add_attributes(record.attributes(), &RECORD_NAMES, fields);
    });
}

/// The schema has text there; a list or a map is its JSON.
fn push_message(body: &AnyValue<'_>, out: &mut JsonOutput<'_>) {
    if !matches!(body, AnyValue::Array(_) | AnyValue::KeyValueList(_)) {
        push_scalar_text(body, out);
        return;
    }
    let start = out.len();
    let mut json = Vec::new();
    push_value(body, kubewake_config::model::Dedot::None, 0, out);
    out.move_tail(start, &mut json);
    push_text(&json, out);
}

pub(super) fn push_span(
    span: Span<'_>,
    source: &RecordSource<'_>,
    stream: Option<&StreamName>,
    writer: &DocumentWriter,
    out: &mut JsonOutput<'_>,
) {
    let duration = i64::try_from(span.end().saturating_sub(span.start())).unwrap_or(i64::MAX);
    let push_events = |out: &mut JsonOutput<'_>| push_events(span, writer.dedot, out);
    let push_links = |out: &mut JsonOutput<'_>| push_links(span, writer.dedot, out);
    FieldList::write_object(out, writer.dedot, 1, |fields| {
        fields.time("@timestamp", writer.time_or_now(span.start()));
        fields.hex("trace.id", span.trace_id());
        fields.hex("span.id", span.span_id());
        fields.hex("parent.id", span.parent_span_id());
        fields.text("span.name", span.name());
        fields.field("", b"span.kind", FieldValue::Name(kind_name(span.kind())));
        fields.field("", b"event.outcome", FieldValue::Name(outcome(span.status().code())));
        fields.field("", b"event.duration", FieldValue::Integer(duration));
        if span.links().next().is_some() {
            fields.field("", b"span.links", FieldValue::Written(&push_links));
        }
        if span.events().next().is_some() {
            fields.field("", b"span.events", FieldValue::Written(&push_events));
        }
        add_source(source, stream, fields);
        add_attributes(span.attributes(), &RECORD_NAMES, fields);
    });
}

fn kind_name(kind: i32) -> &'static str {
    match kind {
        1 => "INTERNAL",
        2 => "SERVER",
        3 => "CLIENT",
        4 => "PRODUCER",
        5 => "CONSUMER",
        _ => "UNSPECIFIED",
    }
}

fn outcome(status: i32) -> &'static str {
    match status {
        1 => "success",
        2 => "failure",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_for_the_search() {
        assert!(RESOURCE_NAMES.is_sorted() && RECORD_NAMES.is_sorted());
        assert_eq!(ecs_name(&RESOURCE_NAMES, b"k8s.pod.uid"), Some("kubernetes.pod.uid"));
        assert_eq!(ecs_name(&RESOURCE_NAMES, b"k8s.pod"), None);
    }
}
