//! One trace, and one span of it.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::{self, Query},
    response::Response,
};
use http::StatusCode;
use kubewake_otlp::view::lossy;
use serde::{Serialize, Serializer};

use super::{PathParts, QueryParams, error_response, json_response, raw_json_response, run_blocking};
use crate::{
    json::{AttributesJson, HexBytes, LossyText, Nanos, SpanIdJson, TruncatedText, span_kind_name, status_name},
    query::{self, ArrangedTrace, IncomingLink, PlacedSpan, TraceWarning, WarningKind},
    receive::unix_nanos_now,
    serve::ViewerState,
    store::{SpanRef, StoredTrace, TelemetryOrigin, TraceId, TraceIdError},
};

pub(crate) async fn trace(
    extract::State(state): extract::State<ViewerState>,
    PathParts(id): PathParts<String>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let trace = match find_trace(&state, &id) {
        Ok(trace) => trace,
        Err((status, message)) => return error_response(status, &message),
    };
    match QueryParams::new(pairs).text("format") {
        None | Some("json") => {}
        Some("otlp") => {
            return run_blocking(move || raw_json_response(StatusCode::OK, query::encode_otlp_json(&[trace]))).await;
        }
        Some(_) => return error_response(StatusCode::BAD_REQUEST, "unknown format: use json or otlp"),
    }
    run_blocking(move || {
        let arranged = query::arrange(&trace, unix_nanos_now());
        let linked = query::find_incoming_links(&state.store.snapshot(), trace.id);
        json_response(StatusCode::OK, &TraceJson::new(&trace, &arranged, &linked))
    })
    .await
}

pub(crate) async fn span(
    extract::State(state): extract::State<ViewerState>,
    PathParts((id, span)): PathParts<(String, String)>,
) -> Response {
    let trace = match find_trace(&state, &id) {
        Ok(trace) => trace,
        Err((status, message)) => return error_response(status, &message),
    };
    let Ok(id) = u64::from_str_radix(&span, 16) else {
        return error_response(StatusCode::BAD_REQUEST, "a span id has 16 hexadecimal digits");
    };
    run_blocking(move || {
        let arranged = query::arrange(&trace, unix_nanos_now());
        let resources = ResourceTable::from_arranged(&arranged);
        match arranged.spans.iter().find(|placed| placed.span.entry.id == id) {
            Some(placed) => json_response(StatusCode::OK, &SpanJson::new(placed, &resources, true)),
            None => error_response(StatusCode::NOT_FOUND, "span not found in this trace"),
        }
    })
    .await
}

fn find_trace(state: &ViewerState, id: &str) -> Result<Arc<StoredTrace>, (StatusCode, String)> {
    let id: TraceId = id.parse().map_err(|error: TraceIdError| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let unknown = "trace not found: it was never received, or was dropped to make room for others";
    state.store.trace(id).ok_or_else(|| (StatusCode::NOT_FOUND, unknown.to_owned()))
}

/// The distinct resources of a trace.
struct ResourceTable<'a> {
    all: Vec<&'a TelemetryOrigin>,
    by_content: HashMap<&'a [u8], usize>,
}

impl<'a> ResourceTable<'a> {
    fn from_arranged(arranged: &ArrangedTrace<'a>) -> Self {
        let mut resources = Self { all: Vec::new(), by_content: HashMap::new() };
        for origin in arranged.spans.iter().filter_map(|placed| placed.span.origin()) {
            let Self { all, by_content } = &mut resources;
            by_content.entry(&origin.resource).or_insert_with(|| {
                all.push(origin);
                all.len() - 1
            });
        }
        resources
    }

    fn index(&self, span: &SpanRef<'a>) -> usize {
        span.origin().and_then(|origin| self.by_content.get(&*origin.resource)).copied().unwrap_or_default()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TraceJson<'a> {
    trace_id: TraceId,
    start: Nanos,
    duration: u64,
    services: Vec<ResourceJson<'a>>,
    spans: Vec<SpanJson<'a>>,
    linked_from: Vec<LinkedFromJson<'a>>,
    warnings: Vec<WarningJson<'a>>,
}

#[derive(Serialize)]
struct ResourceJson<'a> {
    name: &'a str,
    attributes: AttributesJson<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkedFromJson<'a> {
    trace_id: TraceId,
    span_id: SpanIdJson,
    to_span_id: SpanIdJson,
    root_name: &'a str,
    service: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WarningJson<'a> {
    kind: WarningKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<SpanIdJson>,
    message: &'a str,
}

impl<'a> TraceJson<'a> {
    fn new(trace: &StoredTrace, arranged: &'a ArrangedTrace<'a>, linked: &'a [IncomingLink]) -> Self {
        let resources = ResourceTable::from_arranged(arranged);
        let named = |origin: &&'a TelemetryOrigin| ResourceJson {
            name: &origin.service,
            attributes: AttributesJson { all: origin.resource().attributes(), untruncated: false },
        };
        Self {
            trace_id: trace.id,
            start: Nanos(arranged.start),
            duration: arranged.end.saturating_sub(arranged.start),
            services: resources.all.iter().map(named).collect(),
            spans: arranged.spans.iter().map(|placed| SpanJson::new(placed, &resources, false)).collect(),
            linked_from: linked.iter().map(LinkedFromJson::from).collect(),
            warnings: arranged.warnings.iter().map(WarningJson::from).collect(),
        }
    }
}

impl<'a> From<&'a IncomingLink> for LinkedFromJson<'a> {
    fn from(link: &'a IncomingLink) -> Self {
        Self {
            trace_id: link.trace,
            span_id: SpanIdJson(link.span),
            to_span_id: SpanIdJson(link.to),
            root_name: &link.root,
            service: &link.service,
        }
    }
}

impl<'a> From<&'a TraceWarning> for WarningJson<'a> {
    fn from(warning: &'a TraceWarning) -> Self {
        Self { kind: warning.kind, span_id: warning.span.map(SpanIdJson), message: &warning.message }
    }
}

#[derive(Serialize)]
pub(crate) struct SpanJson<'a> {
    id: SpanIdJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<SpanIdJson>,
    name: TruncatedText<'a>,
    kind: &'static str,
    start: Nanos,
    duration: u64,
    resource: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<TruncatedText<'a>>,
    attributes: AttributesJson<'a>,
    events: EventsJson<'a>,
    links: LinksJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<LossyText<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skew: Option<u64>,
    #[serde(skip_serializing_if = "<[WarningKind]>::is_empty")]
    warnings: &'a [WarningKind],
}

impl<'a> SpanJson<'a> {
    fn new(placed: &'a PlacedSpan<'a>, resources: &ResourceTable<'a>, whole: bool) -> Self {
        Self {
            parent: placed.parent.map(SpanIdJson),
            start: Nanos(placed.start),
            skew: Some(placed.skew).filter(|skew| *skew > 0),
            warnings: &placed.warnings,
            ..Self::as_sent(placed.span, resources.index(&placed.span), whole)
        }
    }

    /// A span with the times that its sender gave, without the correction for clock skew.
    pub(crate) fn as_sent(span: SpanRef<'a>, resource: usize, whole: bool) -> Self {
        let view = span.view();
        let entry = span.entry;
        Self {
            id: SpanIdJson(entry.id),
            parent: Some(SpanIdJson(entry.parent)).filter(|_| entry.parent != 0),
            name: TruncatedText(view.name()),
            kind: span_kind_name(entry.kind),
            start: Nanos(entry.start),
            duration: entry.duration(),
            resource,
            scope: span.origin().and_then(|origin| scope_name(origin)),
            status: status_name(entry.status),
            message: Some(view.status().message()).filter(|message| !message.is_empty()).map(TruncatedText),
            attributes: AttributesJson { all: view.attributes(), untruncated: whole },
            events: EventsJson { span, whole },
            links: LinksJson { span, whole },
            state: Some(view.trace_state()).filter(|state| !state.is_empty()).map(LossyText),
            skew: None,
            warnings: &[],
        }
    }
}

/// The instrumentation library, with its version.
fn scope_name(origin: &TelemetryOrigin) -> Option<String> {
    let name = lossy(origin.scope().name());
    let version = lossy(origin.scope().version());
    (!name.is_empty()).then(|| format!("{name} {version}").trim_end().to_owned())
}

struct EventsJson<'a> {
    span: SpanRef<'a>,
    whole: bool,
}

#[derive(Serialize)]
struct EventJson<'a> {
    time: Nanos,
    name: TruncatedText<'a>,
    attributes: AttributesJson<'a>,
}

impl Serialize for EventsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.span.view().events().map(|event| EventJson {
            time: Nanos(event.time()),
            name: TruncatedText(event.name()),
            attributes: AttributesJson { all: event.attributes(), untruncated: self.whole },
        }))
    }
}

struct LinksJson<'a> {
    span: SpanRef<'a>,
    whole: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkJson<'a> {
    trace_id: HexBytes<'a>,
    span_id: HexBytes<'a>,
    attributes: AttributesJson<'a>,
}

impl Serialize for LinksJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.span.view().links().map(|link| LinkJson {
            trace_id: HexBytes(link.trace_id()),
            span_id: HexBytes(link.span_id()),
            attributes: AttributesJson { all: link.attributes(), untruncated: self.whole },
        }))
    }
}
