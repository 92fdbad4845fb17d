//! Traces in the data model of Jaeger's UI.

use std::collections::{BTreeMap, HashMap};

use kubewake_otlp::view::{AnyValue, KeyValue, lossy};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{
    json::{HexBytes, LossyText, SpanIdJson, ValueJson, span_kind_name, status_name},
    query::{ArrangedTrace, PlacedSpan, WarningKind},
    store::{TelemetryOrigin, TraceId},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JaegerTrace<'a> {
    #[serde(rename = "traceID")]
    trace_id: TraceId,
    spans: Vec<JaegerSpan<'a>>,
    processes: BTreeMap<String, JaegerProcess<'a>>,
    warnings: Option<Vec<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JaegerProcess<'a> {
    service_name: &'a str,
    tags: ResourceTags<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JaegerSpan<'a> {
    #[serde(rename = "traceID")]
    trace_id: TraceId,
    #[serde(rename = "spanID")]
    span_id: SpanIdJson,
    flags: u32,
    operation_name: LossyText<'a>,
    references: Vec<JaegerReference<'a>>,
    start_time: u64,
    duration: u64,
    tags: SpanTags<'a>,
    logs: Vec<JaegerLog<'a>>,
    #[serde(rename = "processID")]
    process_id: String,
    warnings: Option<Vec<&'static str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JaegerReference<'a> {
    ref_type: &'static str,
    #[serde(rename = "traceID")]
    trace_id: JaegerId<'a>,
    #[serde(rename = "spanID")]
    span_id: JaegerId<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum JaegerId<'a> {
    Trace(TraceId),
    Span(SpanIdJson),
    Sent(HexBytes<'a>),
}

#[derive(Serialize)]
struct JaegerLog<'a> {
    timestamp: u64,
    fields: LogFields<'a>,
}

impl<'a> JaegerTrace<'a> {
    pub(super) fn new(id: TraceId, arranged: &'a ArrangedTrace<'a>, raw: bool) -> Self {
        let mut processes = ProcessTable::default();
        let spans = arranged
            .spans
            .iter()
            .map(|placed| JaegerSpan::new(id, placed, processes.id_for_span(placed), raw))
            .collect();
        let general = arranged.warnings.iter().filter(|warning| warning.span.is_none());
        let warnings: Vec<_> = general.map(|warning| warning.message.clone()).collect();
        Self { trace_id: id, spans, processes: processes.all, warnings: Some(warnings).filter(|all| !all.is_empty()) }
    }
}

#[derive(Default)]
struct ProcessTable<'a> {
    all: BTreeMap<String, JaegerProcess<'a>>,
    by_resource: HashMap<&'a [u8], String>,
}

impl<'a> ProcessTable<'a> {
    fn id_for_span(&mut self, placed: &PlacedSpan<'a>) -> String {
        let Some(origin) = placed.span.origin() else { return String::new() };
        let number = self.by_resource.len() + 1;
        let all = &mut self.all;
        let add = || {
            let id = format!("p{number}");
            all.insert(id.clone(), JaegerProcess { service_name: &origin.service, tags: ResourceTags(origin) });
            id
        };
        self.by_resource.entry(&origin.resource).or_insert_with(add).clone()
    }
}

impl<'a> JaegerSpan<'a> {
    fn new(id: TraceId, placed: &'a PlacedSpan<'a>, process_id: String, raw: bool) -> Self {
        let view = placed.span.view();
        let entry = placed.span.entry;
        // Raw traces keep the sent times, without the correction for clock skew.
        let start = if raw && entry.has_time() { entry.start } else { placed.start };
        let parent = if raw { Some(entry.parent).filter(|parent| *parent != 0) } else { placed.parent };
        let child_of = parent.map(|parent| JaegerReference {
            ref_type: "CHILD_OF",
            trace_id: JaegerId::Trace(id),
            span_id: JaegerId::Span(SpanIdJson(parent)),
        });
        let follows = view.links().map(|link| JaegerReference {
            ref_type: "FOLLOWS_FROM",
            trace_id: JaegerId::Sent(HexBytes(link.trace_id())),
            span_id: JaegerId::Sent(HexBytes(link.span_id())),
        });
        let logs = view.events().map(|event| JaegerLog { timestamp: event.time() / 1000, fields: LogFields(event) });
        let warnings: Vec<_> = placed.warnings.iter().map(|kind| warning_text(*kind)).collect();
        Self {
            trace_id: id,
            span_id: SpanIdJson(entry.id),
            flags: view.flags() & 0xff,
            operation_name: LossyText(view.name()),
            references: child_of.into_iter().chain(follows).collect(),
            start_time: start / 1000,
            duration: entry.duration() / 1000,
            tags: SpanTags(placed),
            logs: logs.collect(),
            process_id,
            warnings: Some(warnings).filter(|all| !all.is_empty()),
        }
    }
}

fn warning_text(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::MissingParent => "invalid parent span IDs; the parent is not in this trace",
        WarningKind::Cycle => "the span is its own ancestor; it is shown without a parent",
        WarningKind::ClockSkew => "clock skew: this span was moved to begin after its parent",
        WarningKind::DuplicateSpan => "another span of this trace has the same id",
        WarningKind::Future => "the span begins in the future",
        WarningKind::NoTime => "the span has no time",
        WarningKind::BadTime => {
            "the span ends before it starts, or has only one of the two times; it is shown with zero duration"
        }
        WarningKind::Truncated => "spans are missing",
    }
}

/// An attribute as a tag: key, type and value.
struct SentTag<'a>(KeyValue<'a>);

impl Serialize for SentTag<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let key = lossy(self.0.key());
        let value = self.0.value();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("key", &key)?;
        let (name, plain) = match value {
            AnyValue::Bool(_) => ("bool", true),
            AnyValue::Int(_) => ("int64", true),
            AnyValue::Double(_) => ("float64", true),
            AnyValue::Bytes(_) => ("binary", true),
            AnyValue::String(_) => ("string", true),
            // Jaeger has no lists and no maps: they are written as JSON text.
            AnyValue::None | AnyValue::Array(_) | AnyValue::KeyValueList(_) => ("string", false),
        };
        map.serialize_entry("type", name)?;
        if plain {
            map.serialize_entry("value", &ValueJson::new(value))?;
        } else {
            map.serialize_entry("value", &lossy(&value.to_text()))?;
        }
        map.end()
    }
}

/// A tag that was no attribute in OTLP.
#[derive(Serialize)]
struct ImpliedTag<'a> {
    key: &'static str,
    r#type: &'static str,
    value: ImpliedValue<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ImpliedValue<'a> {
    Flag(bool),
    Name(&'static str),
    Text(LossyText<'a>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnyTag<'a> {
    Sent(SentTag<'a>),
    Implied(ImpliedTag<'a>),
}

fn implied_tag<'a>(key: &'static str, value: ImpliedValue<'a>) -> AnyTag<'a> {
    let r#type = if matches!(value, ImpliedValue::Flag(_)) { "bool" } else { "string" };
    AnyTag::Implied(ImpliedTag { key, r#type, value })
}

struct ResourceTags<'a>(&'a TelemetryOrigin);

impl Serialize for ResourceTags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tags = self.0.resource().attributes().iter().filter(|pair| pair.key() != b"service.name");
        serializer.collect_seq(tags.map(SentTag))
    }
}

/// Tags of a span: its attributes, then the fields of OTLP that are tags in Jaeger.
struct SpanTags<'a>(&'a PlacedSpan<'a>);

impl Serialize for SpanTags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let span = self.0.span;
        let view = span.view();
        let entry = span.entry;
        let mut more = Vec::new();
        let text = |text| ImpliedValue::Text(LossyText(text));
        if let Some(scope) = span.origin().map(|origin| origin.scope()) {
            more.extend(
                Some(scope.name())
                    .filter(|name| !name.is_empty())
                    .map(|name| implied_tag("otel.scope.name", text(name))),
            );
            let version = Some(scope.version()).filter(|version| !version.is_empty());
            more.extend(version.map(|version| implied_tag("otel.scope.version", text(version))));
        }
        if (1..=5).contains(&entry.kind) {
            more.push(implied_tag("span.kind", ImpliedValue::Name(span_kind_name(entry.kind))));
        }
        if entry.is_error() {
            more.push(implied_tag("error", ImpliedValue::Flag(true)));
        }
        if matches!(entry.status, 1 | 2) {
            let code = if status_name(entry.status) == "ok" { "OK" } else { "ERROR" };
            more.push(implied_tag("otel.status_code", ImpliedValue::Name(code)));
        }
        let message = Some(view.status().message()).filter(|message| !message.is_empty());
        more.extend(message.map(|message| implied_tag("otel.status_description", text(message))));
        let state = Some(view.trace_state()).filter(|state| !state.is_empty());
        more.extend(state.map(|state| implied_tag("w3c.tracestate", text(state))));
        serializer.collect_seq(view.attributes().iter().map(|pair| AnyTag::Sent(SentTag(pair))).chain(more))
    }
}

/// Fields of an event, its name first.
struct LogFields<'a>(kubewake_otlp::view::Event<'a>);

impl Serialize for LogFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = implied_tag("event", ImpliedValue::Text(LossyText(self.0.name())));
        let fields = self.0.attributes().iter().map(|pair| AnyTag::Sent(SentTag(pair)));
        serializer.collect_seq(std::iter::once(name).chain(fields))
    }
}
