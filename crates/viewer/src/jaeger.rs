//! Jaeger's query API, for its UI and for Grafana.
//!
//! Answers have the form `{data, total, limit, offset, errors}`. What is asked of a span must be true of one span together, its duration too, as in Jaeger.

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
    api::{NO_TEXT, Params, Problem, aside, json},
    query,
    receive::now,
    serve::State,
    store::Trace,
};

/// The routes below `/api`.
pub(crate) fn routes() -> Router<State> {
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
struct Answer<T> {
    data: Option<T>,
    total: usize,
    limit: usize,
    offset: usize,
    errors: Option<Vec<Failure>>,
}

#[derive(Serialize)]
struct Failure {
    code: u16,
    msg: String,
}

fn answer<T: Serialize>(data: Vec<T>) -> Response {
    let total = data.len();
    json(StatusCode::OK, &Answer { data: Some(data), total, limit: 0, offset: 0, errors: None })
}

fn refuse(status: StatusCode, msg: impl Into<String>) -> Response {
    let errors = Some(vec![Failure { code: status.as_u16(), msg: msg.into() }]);
    json(status, &Answer::<Vec<()>> { data: None, total: 0, limit: 0, offset: 0, errors })
}

async fn services(extract::State(state): extract::State<State>) -> Response {
    aside(move || answer(query::services(&state.store.snapshot()).into_keys().collect())).await
}

async fn operations_of(
    extract::State(state): extract::State<State>,
    service: Result<Path<String>, PathRejection>,
) -> Response {
    let Ok(Path(service)) = service else { return refuse(StatusCode::BAD_REQUEST, NO_TEXT) };
    aside(move || {
        let mut services = query::services(&state.store.snapshot());
        let operations = services.remove(&service).unwrap_or_default().operations;
        answer(operations.into_keys().collect())
    })
    .await
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Operation {
    name: String,
    span_kind: &'static str,
}

async fn operations(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let Some((service, kind)) = params::operations(pairs) else {
        return refuse(StatusCode::BAD_REQUEST, "parameter 'service' is required");
    };
    aside(move || answer(operations_of_service(&state, &service, kind.as_deref()))).await
}

/// Names of spans with their kinds, of one kind or of all.
fn operations_of_service(state: &State, service: &str, wanted: Option<&str>) -> Vec<Operation> {
    let mut services = query::services(&state.store.snapshot());
    let operations = services.remove(service).unwrap_or_default().operations;
    let each = operations.into_iter().flat_map(|(name, kinds)| {
        kinds.into_iter().map(move |kind| Operation { name: name.clone(), span_kind: crate::json::kind(kind) })
    });
    each.filter(|one| wanted.is_none_or(|wanted| one.span_kind == wanted)).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dependency {
    parent: String,
    child: String,
    call_count: usize,
}

async fn dependencies(
    extract::State(state): extract::State<State>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let when = match params::when(pairs) {
        Ok(when) => when,
        Err(problem) => return bad(&problem),
    };
    aside(move || {
        let calls = query::dependencies(&state.store.snapshot(), &when).into_iter();
        answer(calls.map(|((parent, child), call_count)| Dependency { parent, child, call_count }).collect())
    })
    .await
}

fn bad(Problem { parameter, message }: &Problem) -> Response {
    refuse(StatusCode::BAD_REQUEST, format!("unable to parse param '{parameter}': {message}"))
}

async fn traces(extract::State(state): extract::State<State>, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    match params::wanted(pairs) {
        Ok(wanted) => aside(move || show(&params::find(&state, &wanted), false)).await,
        Err(problem) => bad(&problem),
    }
}

async fn trace(
    extract::State(state): extract::State<State>,
    id: Result<Path<String>, PathRejection>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let id = match params::trace_id(id) {
        Ok(id) => id,
        Err(message) => return refuse(StatusCode::BAD_REQUEST, message),
    };
    let raw = Params::new(pairs).text("raw") == Some("true");
    aside(move || match state.store.trace(id) {
        Some(trace) => show(&[trace], raw),
        None => refuse(StatusCode::NOT_FOUND, "trace not found"),
    })
    .await
}

fn show(traces: &[Arc<Trace>], raw: bool) -> Response {
    let now = now();
    let arranged: Vec<_> = traces.iter().map(|trace| (trace, query::arrange(trace, now))).collect();
    answer(arranged.iter().map(|(trace, arranged)| model::TraceJson::new(trace.id, arranged, raw)).collect())
}
