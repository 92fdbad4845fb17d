//! Traces in lines.

use axum::{
    extract::{self, Query},
    response::Response,
};
use http::StatusCode;
use serde::Serialize;

use super::{Params, Problem, StoreJson, aside, bad_parameters, json};
use crate::{
    json::Nanos,
    query::{self, summarize},
    receive::now,
    serve::State,
    store::{Object, Trace, TraceId},
};

#[derive(Serialize)]
struct Results<'a> {
    traces: Vec<SummaryJson<'a>>,
    matched: usize,
    truncated: bool,
    store: StoreJson,
    problems: &'a [Problem],
}

/// A trace in one line.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SummaryJson<'a> {
    trace_id: TraceId,
    root_service: &'a str,
    root_name: &'a str,
    start: Nanos,
    duration: u64,
    spans: usize,
    errors: usize,
    services: Vec<Share<'a>>,
    orphans: usize,
    objects: Vec<ObjectJson<'a>>,
    complete: bool,
}

#[derive(Serialize)]
struct Share<'a> {
    name: &'a str,
    spans: usize,
}

/// An object by its name.
#[derive(Serialize)]
pub(crate) struct ObjectJson<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> From<&'a Object> for ObjectJson<'a> {
    fn from(object: &'a Object) -> Self {
        Self { kind: &object.kind, namespace: &object.namespace, name: &object.name }
    }
}

impl<'a> SummaryJson<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        let summary = summarize(trace);
        Self {
            trace_id: trace.id,
            root_service: summary.root.map_or("", |root| root.service()),
            root_name: summary.root.map_or("", |root| root.name()),
            start: Nanos(trace.start()),
            duration: trace.duration(),
            spans: trace.spans,
            errors: trace.errors,
            services: summary.services.into_iter().map(|(name, spans)| Share { name, spans }).collect(),
            orphans: summary.orphans,
            objects: summary.objects.into_iter().map(ObjectJson::from).collect(),
            complete: summary.complete,
        }
    }
}

pub(crate) async fn search(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut params = Params::new(pairs);
    let (filter, limit) = (params.filter(now()), params.limit());
    if !params.problems.is_empty() {
        return bad_parameters(&params.problems);
    }
    aside(move || {
        let snapshot = state.store.snapshot();
        let found = query::search(&snapshot, &filter, limit);
        let results = Results {
            traces: found.traces.iter().map(|trace| SummaryJson::new(trace)).collect(),
            matched: found.matched,
            truncated: found.matched > found.traces.len(),
            store: snapshot.figures.into(),
            problems: &params.problems,
        };
        json(StatusCode::OK, &results)
    })
    .await
}
