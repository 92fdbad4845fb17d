//! The third version of Jaeger's API, which newer versions of its UI ask: traces are OTLP there.

use axum::{
    Router,
    extract::{self, Path, Query, rejection::PathRejection},
    response::Response,
    routing::get,
};
use http::StatusCode;
use jiff::Timestamp;
use serde::Serialize;

use super::{
    operations_of_service,
    params::{self, Wanted},
};
use crate::{
    api::{aside, json, raw_json},
    json::Nanos,
    query::{self, summarize},
    serve::State,
    store::{Trace, TraceId},
};

/// The routes below `/api/v3`.
pub(super) fn routes() -> Router<State> {
    Router::new()
        .route("/services", get(services))
        .route("/operations", get(operations))
        .route("/trace-summaries", get(summaries))
        .route("/traces", get(traces))
        .route("/traces/{id}", get(trace))
}

/// A refusal, as the gateway of a gRPC service writes it.
fn refuse(status: StatusCode, message: &str) -> Response {
    let error = serde_json::json!({ "httpCode": status.as_u16(), "message": message });
    json(status, &serde_json::json!({ "error": error }))
}

async fn services(extract::State(state): extract::State<State>) -> Response {
    aside(move || {
        let services: Vec<_> = query::services(&state.store.snapshot()).into_keys().collect();
        json(StatusCode::OK, &serde_json::json!({ "services": services }))
    })
    .await
}

async fn operations(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let Some((service, kind)) = params::operations(pairs) else {
        return refuse(StatusCode::BAD_REQUEST, "service is required");
    };
    aside(move || {
        let operations = operations_of_service(&state, &service, kind.as_deref());
        json(StatusCode::OK, &serde_json::json!({ "operations": operations }))
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    trace_id: TraceId,
    root_service_name: &'a str,
    root_operation_name: &'a str,
    min_start_time_unix_nano: Nanos,
    max_end_time_unix_nano: Nanos,
    span_count: usize,
    error_span_count: usize,
    orphan_span_count: usize,
    services: Vec<ServiceSummary<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceSummary<'a> {
    name: &'a str,
    span_count: usize,
}

impl<'a> Summary<'a> {
    fn new(trace: &'a Trace) -> Self {
        let summary = summarize(trace);
        let services = summary.services.into_iter();
        Self {
            trace_id: trace.id,
            root_service_name: summary.root.map_or("", |root| root.service()),
            root_operation_name: summary.root.map_or("", |root| root.name()),
            min_start_time_unix_nano: Nanos(trace.start()),
            max_end_time_unix_nano: Nanos(trace.start().saturating_add(trace.duration())),
            span_count: trace.spans,
            error_span_count: trace.errors,
            orphan_span_count: summary.orphans,
            services: services.map(|(name, span_count)| ServiceSummary { name, span_count }).collect(),
        }
    }
}

async fn summaries(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let wanted = match wanted(pairs) {
        Ok(wanted) => wanted,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, &message),
    };
    aside(move || {
        let found = params::find(&state, &wanted);
        let summaries: Vec<_> = found.iter().map(|trace| Summary::new(trace)).collect();
        json(StatusCode::OK, &serde_json::json!({ "summaries": summaries }))
    })
    .await
}

async fn traces(extract::State(state): extract::State<State>, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    match wanted(pairs) {
        Ok(wanted) => aside(move || result(&params::find(&state, &wanted))).await,
        Err(message) => refuse(StatusCode::BAD_REQUEST, &message),
    }
}

async fn trace(extract::State(state): extract::State<State>, id: Result<Path<String>, PathRejection>) -> Response {
    let id = match params::trace_id(id) {
        Ok(id) => id,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, &message),
    };
    match state.store.trace(id) {
        Some(trace) => aside(move || result(&[trace])).await,
        None => refuse(StatusCode::NOT_FOUND, "trace not found"),
    }
}

fn result(traces: &[std::sync::Arc<Trace>]) -> Response {
    let mut body = b"{\"result\":".to_vec();
    body.extend_from_slice(&query::otlp_json(traces));
    body.push(b'}');
    raw_json(StatusCode::OK, body)
}

/// The same question in the words of the first version.
fn wanted(pairs: Vec<(String, String)>) -> Result<Wanted, String> {
    let names = [
        ("service_name", "service"),
        ("span_name", "operation"),
        ("operation_name", "operation"),
        ("start_time_min", "start"),
        ("start_time_max", "end"),
        ("duration_min", "minDuration"),
        ("duration_max", "maxDuration"),
        ("num_traces", "limit"),
        ("search_depth", "limit"),
        ("attributes", "tags"),
    ];
    let mut known = Vec::new();
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()) {
        let Some(name) = name.strip_prefix("query.") else { continue };
        let Some((_, name)) = names.iter().find(|(new, _)| *new == name) else { continue };
        let value = match *name {
            "start" | "end" => micros(&value)?,
            _ => value,
        };
        known.push(((*name).to_owned(), value));
    }
    params::wanted(known).map_err(|problem| format!("{}: {}", problem.parameter, problem.message))
}

fn micros(time: &str) -> Result<String, String> {
    let time: Timestamp = time.parse().map_err(|_| format!("{time:?} is no time as RFC 3339 writes it"))?;
    Ok(time.as_microsecond().max(0).to_string())
}
