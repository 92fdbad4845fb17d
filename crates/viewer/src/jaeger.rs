//! Jaeger's query API, for its UI and for Grafana.
//!
//! Responses have the form `{data, total, limit, offset, errors}`. All conditions on spans must hold for one
//! span, including its duration, as in Jaeger.

mod model;
pub(crate) mod params;
mod v3;

use std::sync::Arc;

use axum::{
    Router,
    extract::{self, Path, Query, rejection::PathRejection},
    response::Response,
    routing::get,
};
use http::StatusCode;
use serde::Serialize;

use crate::{
    api::{NOT_UTF8_MESSAGE, ParameterProblem, QueryParams, json_response, run_blocking},
    query,
    receive::unix_nanos_now,
    serve::ViewerState,
    store::StoredTrace,
};

pub(crate) fn routes() -> Router<ViewerState> {
    Router::new()
        .nest("/v3", v3::routes())
        .route("/services", get(services))
        .route("/services/{service}/operations", get(operations_of))
        .route("/operations", get(operations))
        .route("/dependencies", get(dependencies))
        .route("/traces", get(traces))
        .route("/traces/{id}", get(trace))
}

#[derive(Serialize)]
struct JaegerResponse<T> {
    data: Option<T>,
    total: usize,
    limit: usize,
    offset: usize,
    errors: Option<Vec<JaegerError>>,
}

#[derive(Serialize)]
struct JaegerError {
    code: u16,
    msg: String,
}

fn success_response<T: Serialize>(data: Vec<T>) -> Response {
    let total = data.len();
    json_response(StatusCode::OK, &JaegerResponse { data: Some(data), total, limit: 0, offset: 0, errors: None })
}

fn error_response(status: StatusCode, msg: impl Into<String>) -> Response {
    let errors = Some(vec![JaegerError { code: status.as_u16(), msg: msg.into() }]);
    json_response(status, &JaegerResponse::<Vec<()>> { data: None, total: 0, limit: 0, offset: 0, errors })
}

async fn services(extract::State(state): extract::State<ViewerState>) -> Response {
    run_blocking(move || success_response(query::list_services(&state.store.snapshot()).into_keys().collect())).await
}

async fn operations_of(
    extract::State(state): extract::State<ViewerState>,
    service: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(service)) = service else { return error_response(StatusCode::BAD_REQUEST, NOT_UTF8_MESSAGE) };
    run_blocking(move || {
        let mut services = query::list_services(&state.store.snapshot());
        let operations = services.remove(&service).unwrap_or_default().operations;
        success_response(operations.into_keys().collect())
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JaegerOperation {
    name: String,
    span_kind: &'static str,
}

async fn operations(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let Some((service, kind)) = params::parse_operation_query(pairs) else {
        return error_response(StatusCode::BAD_REQUEST, "parameter 'service' is required");
    };
    run_blocking(move || success_response(operations_of_service(&state, &service, kind.as_deref()))).await
}

/// Operations of a service with their span kinds, of one kind or of all.
fn operations_of_service(state: &ViewerState, service: &str, wanted: Option<&str>) -> Vec<JaegerOperation> {
    let mut services = query::list_services(&state.store.snapshot());
    let operations = services.remove(service).unwrap_or_default().operations;
    let each = operations.into_iter().flat_map(|(name, kinds)| {
        kinds
            .into_iter()
            .map(move |kind| JaegerOperation { name: name.clone(), span_kind: crate::json::span_kind_name(kind) })
    });
    each.filter(|one| wanted.is_none_or(|wanted| one.span_kind == wanted)).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JaegerDependency {
    parent: String,
    child: String,
    call_count: usize,
}

async fn dependencies(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let when = match params::parse_time_range(pairs) {
        Ok(when) => when,
        Err(problem) => return parameter_error_response(&problem),
    };
    run_blocking(move || {
        let calls = query::count_dependencies(&state.store.snapshot(), &when).into_iter();
        success_response(
            calls.map(|((parent, child), call_count)| JaegerDependency { parent, child, call_count }).collect(),
        )
    })
    .await
}

fn parameter_error_response(ParameterProblem { parameter, message }: &ParameterProblem) -> Response {
    error_response(StatusCode::BAD_REQUEST, format!("unable to parse param '{parameter}': {message}"))
}

async fn traces(
    extract::State(state): extract::State<ViewerState>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    match params::parse_selection(pairs) {
        Ok(wanted) => run_blocking(move || traces_response(&params::find_traces(&state, &wanted), false)).await,
        Err(problem) => parameter_error_response(&problem),
    }
}

async fn trace(
    extract::State(state): extract::State<ViewerState>,
    id: Result<Path<String>, PathRejection>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let id = match params::parse_trace_id(id) {
        Ok(id) => id,
        Err(message) => return error_response(StatusCode::BAD_REQUEST, message),
    };
    let raw = QueryParams::new(pairs).text("raw") == Some("true");
    run_blocking(move || match state.store.trace(id) {
        Some(trace) => traces_response(&[trace], raw),
        None => error_response(StatusCode::NOT_FOUND, "trace not found"),
    })
    .await
}

fn traces_response(traces: &[Arc<StoredTrace>], raw: bool) -> Response {
    let now = unix_nanos_now();
    let arranged: Vec<_> = traces.iter().map(|trace| (trace, query::arrange(trace, now))).collect();
    success_response(
        arranged.iter().map(|(trace, arranged)| model::JaegerTrace::new(trace.id, arranged, raw)).collect(),
    )
}
