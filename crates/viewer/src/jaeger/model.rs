//! Traces as Jaeger's UI wants them.

use std::collections::{BTreeMap, HashMap};

use kubewake_otlp::view::{AnyValue, KeyValue, lossy};
use serde::{Serialize, Serializer, ser::SerializeMap as _};

use crate::{
    json::{Hex, SpanId, Text, Value, kind, status},
    query::{Arranged, Placed, WarningKind},
    store::{Origin, TraceId},
};

/// A trace.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TraceJson<'a> {
    #[serde(rename = "traceID")]
    trace_id: TraceId,
    spans: Vec<SpanJson<'a>>,
    processes: BTreeMap<String, ProcessJson<'a>>,
    warnings: Option<Vec<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProcessJson<'a> {
    service_name: &'a str,
    tags: Tags<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpanJson<'a> {
    #[serde(rename = "traceID")]
    trace_id: TraceId,
    #[serde(rename = "spanID")]
    span_id: SpanId,
    flags: u32,
    operation_name: Text<'a>,
    references: Vec<Reference<'a>>,
    start_time: u64,
    duration: u64,
    tags: SpanTags<'a>,
    logs: Vec<Log<'a>>,
    #[serde(rename = "processID")]
    process_id: String,
    warnings: Option<Vec<&'static str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reference<'a> {
    ref_type: &'static str,
    #[serde(rename = "traceID")]
    trace_id: Id<'a>,
    #[serde(rename = "spanID")]
    span_id: Id<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Id<'a> {
    Trace(TraceId),
    Span(SpanId),
    Sent(Hex<'a>),
}

#[derive(Serialize)]
struct Log<'a> {
    timestamp: u64,
    fields: LogFields<'a>,
}

impl<'a> TraceJson<'a> {
    pub(super) fn new(id: TraceId, arranged: &'a Arranged<'a>, raw: bool) -> Self {
        let mut processes = Processes::default();
        let spans = arranged.spans.iter().map(|placed| SpanJson::new(id, placed, processes.of(placed), raw)).collect();
        let general = arranged.warnings.iter().filter(|warning| warning.span.is_none());
        let warnings: Vec<_> = general.map(|warning| warning.message.clone()).collect();
        Self { trace_id: id, spans, processes: processes.all, warnings: Some(warnings).filter(|all| !all.is_empty()) }
    }
}

#[derive(Default)]
struct Processes<'a> {
    all: BTreeMap<String, ProcessJson<'a>>,
    by_resource: HashMap<&'a [u8], String>,
}

impl<'a> Processes<'a> {
    fn of(&mut self, placed: &Placed<'a>) -> String {
        let Some(origin) = placed.span.origin() else { return String::new() };
        let number = self.by_resource.len() + 1;
        let all = &mut self.all;
        let add = || {
            let id = format!("p{number}");
            all.insert(id.clone(), ProcessJson { service_name: &origin.service, tags: Tags(origin) });
            id
        };
        self.by_resource.entry(&origin.resource).or_insert_with(add).clone()
    }
}

impl<'a> SpanJson<'a> {
    fn new(id: TraceId, placed: &'a Placed<'a>, process_id: String, raw: bool) -> Self {
        let (view, entry) = (placed.span.view(), placed.span.entry);
        // Raw: as it was sent, without what was made good.
        let start = if raw && entry.has_time() { entry.start } else { placed.start };
        let parent = if raw { Some(entry.parent).filter(|parent| *parent != 0) } else { placed.parent };
        let child_of = parent.map(|parent| Reference {
            ref_type: "CHILD_OF",
            trace_id: Id::Trace(id),
            span_id: Id::Span(SpanId(parent)),
        });
        let follows = view.links().map(|link| Reference {
            ref_type: "FOLLOWS_FROM",
            trace_id: Id::Sent(Hex(link.trace_id())),
            span_id: Id::Sent(Hex(link.span_id())),
        });
        let logs = view.events().map(|event| Log { timestamp: event.time() / 1000, fields: LogFields(event) });
        let warnings: Vec<_> = placed.warnings.iter().map(|kind| warning(*kind)).collect();
        Self {
            trace_id: id,
            span_id: SpanId(entry.id),
            flags: view.flags() & 0xff,
            operation_name: Text(view.name()),
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

fn warning(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::MissingParent => "invalid parent span IDs; the parent is not in this trace",
        WarningKind::Cycle => "the span is among its own ancestors; it is shown without a parent",
        WarningKind::ClockSkew => "clock skew: this span was moved to begin after its parent",
        WarningKind::DuplicateSpan => "another span of this trace has the same id",
        WarningKind::Future => "the span begins in the future",
        WarningKind::NoTime => "the span has no time",
        WarningKind::BadTime => "the span ends before it starts, or says only one of the two; it is shown as a moment",
        WarningKind::Truncated => "spans are missing",
    }
}

/// A tag: key, type, value.
struct Tag<'a>(KeyValue<'a>);

impl Serialize for Tag<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (key, value) = (lossy(self.0.key()), self.0.value());
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("key", &key)?;
        let (name, plain) = match value {
            AnyValue::Bool(_) => ("bool", true),
            AnyValue::Int(_) => ("int64", true),
            AnyValue::Double(_) => ("float64", true),
            AnyValue::Bytes(_) => ("binary", true),
            AnyValue::String(_) => ("string", true),
            // Jaeger has no lists and no maps: they are JSON in text.
            AnyValue::None | AnyValue::Array(_) | AnyValue::KeyValueList(_) => ("string", false),
        };
        map.serialize_entry("type", name)?;
        if plain {
            map.serialize_entry("value", &Value::new(value))?;
        } else {
            map.serialize_entry("value", &lossy(&value.to_text()))?;
        }
        map.end()
    }
}

/// A tag that was not sent as one.
#[derive(Serialize)]
struct Implied<'a> {
    key: &'static str,
    r#type: &'static str,
    value: ImpliedValue<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ImpliedValue<'a> {
    Flag(bool),
    Name(&'static str),
    Text(Text<'a>),
}

/// Either.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyTag<'a> {
    Sent(Tag<'a>),
    Implied(Implied<'a>),
}

fn implied<'a>(key: &'static str, value: ImpliedValue<'a>) -> AnyTag<'a> {
    let r#type = if matches!(value, ImpliedValue::Flag(_)) { "bool" } else { "string" };
    AnyTag::Implied(Implied { key, r#type, value })
}

/// What describes a process.
struct Tags<'a>(&'a Origin);

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tags = self.0.resource().attributes().iter().filter(|pair| pair.key() != b"service.name");
        serializer.collect_seq(tags.map(Tag))
    }
}

/// What describes a span: what was sent, then what Jaeger has as tags and OTLP as fields.
struct SpanTags<'a>(&'a Placed<'a>);

impl Serialize for SpanTags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let span = self.0.span;
        let (view, entry) = (span.view(), span.entry);
        let mut more = Vec::new();
        let text = |text| ImpliedValue::Text(Text(text));
        if let Some(scope) = span.origin().map(|origin| origin.scope()) {
            more.extend(
                Some(scope.name()).filter(|name| !name.is_empty()).map(|name| implied("otel.scope.name", text(name))),
            );
            let version = Some(scope.version()).filter(|version| !version.is_empty());
            more.extend(version.map(|version| implied("otel.scope.version", text(version))));
        }
        if (1..=5).contains(&entry.kind) {
            more.push(implied("span.kind", ImpliedValue::Name(kind(entry.kind))));
        }
        if entry.is_error() {
            more.push(implied("error", ImpliedValue::Flag(true)));
        }
        if matches!(entry.status, 1 | 2) {
            let code = if status(entry.status) == "ok" { "OK" } else { "ERROR" };
            more.push(implied("otel.status_code", ImpliedValue::Name(code)));
        }
        let message = Some(view.status().message()).filter(|message| !message.is_empty());
        more.extend(message.map(|message| implied("otel.status_description", text(message))));
        let state = Some(view.trace_state()).filter(|state| !state.is_empty());
        more.extend(state.map(|state| implied("w3c.tracestate", text(state))));
        serializer.collect_seq(view.attributes().iter().map(|pair| AnyTag::Sent(Tag(pair))).chain(more))
    }
}

/// What happened: the name of the event first.
struct LogFields<'a>(kubewake_otlp::view::Event<'a>);

impl Serialize for LogFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = implied("event", ImpliedValue::Text(Text(self.0.name())));
        let fields = self.0.attributes().iter().map(|pair| AnyTag::Sent(Tag(pair)));
        serializer.collect_seq(std::iter::once(name).chain(fields))
    }
}
