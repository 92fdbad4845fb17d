//! The `detailed` format: every field, in the Collector's layout.

mod metrics;

use kubewake_otlp::{
    Signal,
    view::{AttributesView, Event, KeyValue, Link, LogRecord, MessageView, Resource, ScopeEntry, Span, lossy},
    wire::WireFields,
};

use super::{
    resources,
    text_output::TextLines,
    value::{id, severity, span_kind, status_code, time, typed},
};
use crate::core::{Batch, SendError};

/// Prefix of a list's entries.
const ARROW: &str = "     ->";
/// Prefix of the entries of a nested list.
const INNER_ARROW: &str = "          ->";

pub(super) fn write_batch(batch: &Batch, mut out: TextLines<'_>) -> Result<(), SendError> {
    let (resource, scope) = match batch.signal() {
        Signal::Traces => ("ResourceSpans", "ScopeSpans"),
        Signal::Metrics => ("ResourceMetrics", "ScopeMetrics"),
        Signal::Logs => ("ResourceLog", "ScopeLogs"),
    };
    for (i, entry) in resources(batch).enumerate() {
        if !out.reserve_for_message(entry.resource().as_bytes()) {
            break;
        }
        out.add(format_args!("{resource} #{i}"));
        out.add(format_args!("Resource SchemaURL: {}", lossy(entry.schema_url())));
        attributes(&mut out, "Resource attributes", entry.resource().attributes());
        entity_refs(&mut out, entry.resource());
        for (j, scope_entry) in entry.scopes().enumerate() {
            if !out.reserve_for_message(scope_entry.scope().as_bytes()) {
                break;
            }
            out.add(format_args!("{scope} #{j}"));
            out.add(format_args!("{scope} SchemaURL: {}", lossy(scope_entry.schema_url())));
            let scope = scope_entry.scope();
            out.add(format_args!("InstrumentationScope {} {}", lossy(scope.name()), lossy(scope.version())));
            attributes(&mut out, "InstrumentationScope attributes", scope.attributes());
            records(&mut out, batch.signal(), &scope_entry);
        }
    }
    out.finish()
}

fn records(out: &mut TextLines<'_>, signal: Signal, scope: &ScopeEntry<'_>) {
    match signal {
        Signal::Traces => scope.spans().enumerate().for_each(|(i, record)| span(out, i, record)),
        Signal::Logs => scope.log_records().enumerate().for_each(|(i, record)| log(out, i, record)),
        Signal::Metrics => scope.metrics().enumerate().for_each(|(i, record)| metrics::metric(out, i, record)),
    }
}

fn attributes(out: &mut TextLines<'_>, title: &str, attributes: AttributesView<'_>) {
    pairs(out, title, ARROW, attributes.iter());
}

fn pairs<'a>(out: &mut TextLines<'_>, title: &str, arrow: &str, pairs: impl Iterator<Item = KeyValue<'a>>) {
    for (i, pair) in pairs.enumerate() {
        if i == 0 {
            out.add(format_args!("{title}:"));
        }
        out.add(format_args!("{arrow} {}: {}", lossy(pair.key()), typed(pair.value())));
    }
}

/// Entity references of a resource: `EntityRef` messages, which have no view of their own.
fn entity_refs(out: &mut TextLines<'_>, resource: Resource<'_>) {
    const ENTITY_REFS: u32 = 3;
    let schema_url = 1;
    let kind = 2;
    let id_keys = 3;
    let description_keys = 4;
    for (i, entity) in WireFields::new(resource.as_bytes()).filter(|field| field.is_len(ENTITY_REFS)).enumerate() {
        if i == 0 {
            out.add(format_args!("Resource entity refs:"));
        }
        let texts = |number| WireFields::new(entity.value).filter(move |f| f.is_len(number)).map(|f| lossy(f.value));
        out.add(format_args!("{ARROW} Entity ref #{i}:"));
        out.add(format_args!("{INNER_ARROW} Type: {}", texts(kind).last().unwrap_or_default()));
        if let Some(url) = texts(schema_url).last() {
            out.add(format_args!("{INNER_ARROW} Schema URL: {url}"));
        }
        for (title, number) in [("ID keys", id_keys), ("Description keys", description_keys)] {
            for (j, key) in texts(number).enumerate() {
                if j == 0 {
                    out.add(format_args!("{INNER_ARROW} {title}:"));
                }
                out.add(format_args!("     {INNER_ARROW} {key}"));
            }
        }
    }
}

fn span(out: &mut TextLines<'_>, i: usize, span: Span<'_>) {
    if !out.reserve_for_message(span.as_bytes()) {
        return;
    }
    out.add(format_args!("Span #{i}"));
    let mut field = |name: &str, value: &str| out.add(format_args!("    {name:<15}: {value}"));
    field("Trace ID", &id(span.trace_id()));
    field("Parent ID", &id(span.parent_span_id()));
    field("ID", &id(span.span_id()));
    field("Name", &lossy(span.name()));
    field("Kind", span_kind(span.kind()));
    if !span.trace_state().is_empty() {
        field("TraceState", &lossy(span.trace_state()));
    }
    field("Start time", &time(span.start()));
    field("End time", &time(span.end()));
    field("Status code", status_code(span.status().code()));
    field("Status message", &lossy(span.status().message()));
    field("DroppedAttributesCount", &span.dropped_attributes().to_string());
    field("DroppedEventsCount", &span.dropped_events().to_string());
    field("DroppedLinksCount", &span.dropped_links().to_string());
    attributes(out, "Attributes", span.attributes());
    events(out, span.events());
    links(out, span.links());
}

fn events<'a>(out: &mut TextLines<'_>, events: impl Iterator<Item = Event<'a>>) {
    for (i, event) in events.enumerate() {
        if i == 0 {
            out.add(format_args!("Events:"));
        }
        out.add(format_args!("SpanEvent #{i}"));
        out.add(format_args!("{ARROW} Name: {}", lossy(event.name())));
        out.add(format_args!("{ARROW} Timestamp: {}", time(event.time())));
        out.add(format_args!("{ARROW} DroppedAttributesCount: {}", event.dropped_attributes()));
        // The Collector writes two colons here.
        pairs(out, "     -> Attributes:", INNER_ARROW, event.attributes().iter());
    }
}

fn links<'a>(out: &mut TextLines<'_>, links: impl Iterator<Item = Link<'a>>) {
    for (i, link) in links.enumerate() {
        if i == 0 {
            out.add(format_args!("Links:"));
        }
        out.add(format_args!("SpanLink #{i}"));
        out.add(format_args!("{ARROW} Trace ID: {}", id(link.trace_id())));
        out.add(format_args!("{ARROW} ID: {}", id(link.span_id())));
        out.add(format_args!("{ARROW} TraceState: {}", lossy(link.trace_state())));
        out.add(format_args!("{ARROW} DroppedAttributesCount: {}", link.dropped_attributes()));
        pairs(out, "     -> Attributes:", INNER_ARROW, link.attributes().iter());
    }
}

fn log(out: &mut TextLines<'_>, i: usize, record: LogRecord<'_>) {
    if !out.reserve_for_message(record.as_bytes()) {
        return;
    }
    out.add(format_args!("LogRecord #{i}"));
    out.add(format_args!("ObservedTimestamp: {}", time(record.observed_time())));
    out.add(format_args!("Timestamp: {}", time(record.time())));
    out.add(format_args!("SeverityText: {}", lossy(record.severity_text())));
    let number = record.severity_number();
    out.add(format_args!("SeverityNumber: {}({number})", severity(number)));
    if !record.event_name().is_empty() {
        out.add(format_args!("EventName: {}", lossy(record.event_name())));
    }
    out.add(format_args!("Body: {}", typed(record.body())));
    attributes(out, "Attributes", record.attributes());
    out.add(format_args!("Trace ID: {}", id(record.trace_id())));
    out.add(format_args!("Span ID: {}", id(record.span_id())));
    out.add(format_args!("Flags: {}", record.flags()));
}
