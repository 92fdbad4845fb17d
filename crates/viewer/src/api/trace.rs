//! One trace, and one span of it.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::{self, Query},
    response::Response,
};
use http::StatusCode;
use kubewake_otlp::view::lossy;
use serde::{Serialize, Serializer};

use super::{Params, Parts, aside, json, raw_json, refuse};
use crate::{
    json::{Attributes, Hex, Label, Nanos, SpanId, Text, kind, status},
    query::{self, Arranged, LinkFrom, Placed, Warning, WarningKind},
    receive::now,
    serve::State,
    store::{Origin, SpanRef, Trace, TraceId, TraceIdError},
};

pub(crate) async fn trace(
    extract::State(state): extract::State<State>,
    Parts(id): Parts<String>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let trace = match find(&state, &id) {
        Ok(trace) => trace,
        Err((status, message)) => return refuse(status, &message),
    };
    match Params::new(pairs).text("format") {
        None | Some("json") => {}
        Some("otlp") => return aside(move || raw_json(StatusCode::OK, query::otlp_json(&[trace]))).await,
        Some(_) => return refuse(StatusCode::BAD_REQUEST, "format: json and otlp are known"),
    }
    aside(move || {
        let arranged = query::arrange(&trace, now());
        let linked = query::linked_from(&state.store.snapshot(), trace.id);
        json(StatusCode::OK, &TraceJson::new(&trace, &arranged, &linked))
    })
    .await
}

pub(crate) async fn span(
    extract::State(state): extract::State<State>,
    Parts((id, span)): Parts<(String, String)>,
) -> Response {
    let trace = match find(&state, &id) {
        Ok(trace) => trace,
        Err((status, message)) => return refuse(status, &message),
    };
    let Ok(id) = u64::from_str_radix(&span, 16) else {
        return refuse(StatusCode::BAD_REQUEST, "a span id has 16 hexadecimal digits");
    };
    aside(move || {
        let arranged = query::arrange(&trace, now());
        let resources = Resources::of(&arranged);
        match arranged.spans.iter().find(|placed| placed.span.entry.id == id) {
            Some(placed) => json(StatusCode::OK, &SpanJson::new(placed, &resources, true)),
            None => refuse(StatusCode::NOT_FOUND, "this trace has no such span"),
        }
    })
    .await
}

/// The trace, or why there is none.
fn find(state: &State, id: &str) -> Result<Arc<Trace>, (StatusCode, String)> {
    let id: TraceId = id.parse().map_err(|error: TraceIdError| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let unknown = "there is no such trace: it never came, or it had to make room for others";
    state.store.trace(id).ok_or_else(|| (StatusCode::NOT_FOUND, unknown.to_owned()))
}

/// The resources of a trace, each of them once.
struct Resources<'a> {
    all: Vec<&'a Origin>,
    by_content: HashMap<&'a [u8], usize>,
}

impl<'a> Resources<'a> {
    fn of(arranged: &Arranged<'a>) -> Self {
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
    attributes: Attributes<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkedFromJson<'a> {
    trace_id: TraceId,
    span_id: SpanId,
    to_span_id: SpanId,
    root_name: &'a str,
    service: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WarningJson<'a> {
    kind: WarningKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<SpanId>,
    message: &'a str,
}

impl<'a> TraceJson<'a> {
    fn new(trace: &Trace, arranged: &'a Arranged<'a>, linked: &'a [LinkFrom]) -> Self {
        let resources = Resources::of(arranged);
        let named = |origin: &&'a Origin| ResourceJson {
            name: &origin.service,
            attributes: Attributes { all: origin.resource().attributes(), whole: false },
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

impl<'a> From<&'a LinkFrom> for LinkedFromJson<'a> {
    fn from(link: &'a LinkFrom) -> Self {
        Self {
            trace_id: link.trace,
            span_id: SpanId(link.span),
            to_span_id: SpanId(link.to),
            root_name: &link.root,
            service: &link.service,
        }
    }
}

impl<'a> From<&'a Warning> for WarningJson<'a> {
    fn from(warning: &'a Warning) -> Self {
        Self { kind: warning.kind, span_id: warning.span.map(SpanId), message: &warning.message }
    }
}

/// A span in full.
#[derive(Serialize)]
pub(crate) struct SpanJson<'a> {
    id: SpanId,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<SpanId>,
    name: Label<'a>,
    kind: &'static str,
    start: Nanos,
    duration: u64,
    resource: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Label<'a>>,
    attributes: Attributes<'a>,
    events: Events<'a>,
    links: Links<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    skew: Option<u64>,
    #[serde(skip_serializing_if = "<[WarningKind]>::is_empty")]
    warnings: &'a [WarningKind],
}

impl<'a> SpanJson<'a> {
    fn new(placed: &'a Placed<'a>, resources: &Resources<'a>, whole: bool) -> Self {
        Self {
            parent: placed.parent.map(SpanId),
            start: Nanos(placed.start),
            skew: Some(placed.skew).filter(|skew| *skew > 0),
            warnings: &placed.warnings,
            ..Self::as_sent(placed.span, resources.index(&placed.span), whole)
        }
    }

    /// A span as it was sent, not as it is placed in its trace.
    pub(crate) fn as_sent(span: SpanRef<'a>, resource: usize, whole: bool) -> Self {
        let (view, entry) = (span.view(), span.entry);
        Self {
            id: SpanId(entry.id),
            parent: Some(SpanId(entry.parent)).filter(|_| entry.parent != 0),
            name: Label(view.name()),
            kind: kind(entry.kind),
            start: Nanos(entry.start),
            duration: entry.duration(),
            resource,
            scope: span.origin().and_then(|origin| scope(origin)),
            status: status(entry.status),
            message: Some(view.status().message()).filter(|message| !message.is_empty()).map(Label),
            attributes: Attributes { all: view.attributes(), whole },
            events: Events { span, whole },
            links: Links { span, whole },
            state: Some(view.trace_state()).filter(|state| !state.is_empty()).map(Text),
            skew: None,
            warnings: &[],
        }
    }
}

/// The library that made it, with its version.
fn scope(origin: &Origin) -> Option<String> {
    let (name, version) = (lossy(origin.scope().name()), lossy(origin.scope().version()));
    (!name.is_empty()).then(|| format!("{name} {version}").trim_end().to_owned())
}

struct Events<'a> {
    span: SpanRef<'a>,
    whole: bool,
}

#[derive(Serialize)]
struct EventJson<'a> {
    time: Nanos,
    name: Label<'a>,
    attributes: Attributes<'a>,
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.span.view().events().map(|event| EventJson {
            time: Nanos(event.time()),
            name: Label(event.name()),
            attributes: Attributes { all: event.attributes(), whole: self.whole },
        }))
    }
}

struct Links<'a> {
    span: SpanRef<'a>,
    whole: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LinkJson<'a> {
    trace_id: Hex<'a>,
    span_id: Hex<'a>,
    attributes: Attributes<'a>,
}

impl Serialize for Links<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.span.view().links().map(|link| LinkJson {
            trace_id: Hex(link.trace_id()),
            span_id: Hex(link.span_id()),
            attributes: Attributes { all: link.attributes(), whole: self.whole },
        }))
    }
}
