//! Search results: one summary line for each trace.

use axum::{
    extract::{self, Query},
    response::Response,
};
use http::StatusCode;
use serde::Serialize;

use super::{ParameterProblem, QueryParams, StoreJson, json_response, parameter_errors_response, run_blocking};
use crate::{
    json::Nanos,
    query::{self, summarize},
    receive::unix_nanos_now,
    serve::ViewerState,
    store::{SpanSubject, StoredTrace, TraceId},
};

#[derive(Serialize)]
struct SearchJson<'a> {
    traces: Vec<SummaryJson<'a>>,
    matched: usize,
    truncated: bool,
    store: StoreJson,
    problems: &'a [ParameterProblem],
}

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
    services: Vec<ServiceShareJson<'a>>,
    orphans: usize,
    objects: Vec<ObjectJson<'a>>,
    complete: bool,
}

#[derive(Serialize)]
struct ServiceShareJson<'a> {
    name: &'a str,
    spans: usize,
}

#[derive(Serialize)]
pub(crate) struct ObjectJson<'a> {
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> From<&'a SpanSubject> for ObjectJson<'a> {
    fn from(object: &'a SpanSubject) -> Self {
        Self { kind: &object.kind, namespace: &object.namespace, name: &object.name }
    }
}

impl<'a> SummaryJson<'a> {
    pub(crate) fn new(trace: &'a StoredTrace) -> Self {
        let summary = summarize(trace);
        Self {
            trace_id: trace.id,
            root_service: summary.root.map_or("", |root| root.service()),
            root_name: summary.root.map_or("", |root| root.name()),
            start: Nanos(trace.start()),
            duration: trace.duration(),
            spans: trace.spans,
            errors: trace.errors,
            services: summary.services.into_iter().map(|(name, spans)| ServiceShareJson { name, spans }).collect(),
            orphans: summary.orphans,
            objects: summary.objects.into_iter().map(ObjectJson::from).collect(),
            complete: summary.complete,
        }
    }
}

pub(crate) async fn search(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let mut params = QueryParams::new(pairs);
    let filter = params.filter(unix_nanos_now());
    let limit = params.limit();
    if !params.problems.is_empty() {
        return parameter_errors_response(&params.problems);
    }
    run_blocking(move || {
        let snapshot = state.store.snapshot();
        let found = query::search(&snapshot, &filter, limit);
        let results = SearchJson {
            traces: found.traces.iter().map(|trace| SummaryJson::new(trace)).collect(),
            matched: found.matched,
            truncated: found.matched > found.traces.len(),
            store: snapshot.figures.into(),
            problems: &params.problems,
        };
        json_response(StatusCode::OK, &results)
    })
    .await
}
