//! Version 3 of Jaeger's API, which newer versions of its UI use. Its traces are OTLP.

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
    params::{self, TraceSelection},
};
use crate::{
    api::{json_response, raw_json_response, run_blocking},
    json::Nanos,
    query::{self, summarize},
    serve::ViewerState,
    store::{StoredTrace, TraceId},
};

pub(super) fn routes() -> Router<ViewerState> {
    Router::new()
        .route("/services", get(services))
        .route("/operations", get(operations))
        .route("/trace-summaries", get(summaries))
        .route("/traces", get(traces))
        .route("/traces/{id}", get(trace))
}

/// An error in the format of a gRPC gateway.
fn error_response(status: StatusCode, message: &str) -> Response {
    let error = serde_json::json!({ "httpCode": status.as_u16(), "message": message });
    json_response(status, &serde_json::json!({ "error": error }))
}

async fn services(extract::State(state): extract::State<ViewerState>) -> Response {
    run_blocking(move || {
        let services: Vec<_> = query::list_services(&state.store.snapshot()).into_keys().collect();
        json_response(StatusCode::OK, &serde_json::json!({ "services": services }))
    })
    .await
}

async fn operations(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let Some((service, kind)) = params::parse_operation_query(pairs) else {
        return error_response(StatusCode::BAD_REQUEST, "service is required");
    };
    run_blocking(move || {
        let operations = operations_of_service(&state, &service, kind.as_deref());
        json_response(StatusCode::OK, &serde_json::json!({ "operations": operations }))
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JaegerTraceSummary<'a> {
    trace_id: TraceId,
    root_service_name: &'a str,
    root_operation_name: &'a str,
    min_start_time_unix_nano: Nanos,
    max_end_time_unix_nano: Nanos,
    span_count: usize,
    error_span_count: usize,
    orphan_span_count: usize,
    services: Vec<JaegerServiceSummary<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JaegerServiceSummary<'a> {
    name: &'a str,
    span_count: usize,
}

impl<'a> JaegerTraceSummary<'a> {
    fn new(trace: &'a StoredTrace) -> Self {
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
            services: services.map(|(name, span_count)| JaegerServiceSummary { name, span_count }).collect(),
        }
    }
}

async fn summaries(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let wanted = match parse_selection(pairs) {
        Ok(wanted) => wanted,
        Err(message) => return error_response(StatusCode::BAD_REQUEST, &message),
    };
    run_blocking(move || {
        let found = params::find_traces(&state, &wanted);
        let summaries: Vec<_> = found.iter().map(|trace| JaegerTraceSummary::new(trace)).collect();
        json_response(StatusCode::OK, &serde_json::json!({ "summaries": summaries }))
    })
    .await
}

async fn traces(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    match parse_selection(pairs) {
        Ok(wanted) => run_blocking(move || traces_response(&params::find_traces(&state, &wanted))).await,
        Err(message) => error_response(StatusCode::BAD_REQUEST, &message),
    }
}

async fn trace(
    extract::State(state): extract::State<ViewerState>,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    let id = match params::parse_trace_id(id) {
        Ok(id) => id,
        Err(message) => return error_response(StatusCode::BAD_REQUEST, &message),
    };
    match state.store.trace(id) {
        Some(trace) => run_blocking(move || traces_response(&[trace])).await,
        None => error_response(StatusCode::NOT_FOUND, "trace not found"),
    }
}

fn traces_response(traces: &[std::sync::Arc<StoredTrace>]) -> Response {
    let mut body = b"{\"result\":".to_vec();
    body.extend_from_slice(&query::encode_otlp_json(traces));
    body.push(b'}');
    raw_json_response(StatusCode::OK, body)
}

/// Translates a query to the parameters of the first version.
fn parse_selection(pairs: Vec<(String, String)>) -> Result<TraceSelection, String> {
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
            "start" | "end" => parse_micros(&value)?,
            _ => value,
        };
        known.push(((*name).to_owned(), value));
    }
    params::parse_selection(known).map_err(|problem| format!("{}: {}", problem.parameter, problem.message))
}

fn parse_micros(time: &str) -> Result<String, String> {
    let time: Timestamp = time.parse().map_err(|_| format!("{time:?} is not an RFC 3339 time"))?;
    Ok(time.as_microsecond().max(0).to_string())
}
