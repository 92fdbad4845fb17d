//! Jaeger's query API, for its UI and for Grafana.
//!
//! Answers have the form `{data, total, limit, offset, errors}`. What is asked of a span must be true of one span together, its duration too, as in Jaeger.

mod model;
mod params;
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
    api::{Params, aside, json},
    query,
    receive::now,
    serve::State,
    store::{Trace, TraceId},
};

/// The answer to an address whose parts are no UTF-8.
const NO_TEXT: &str = "the address holds something that is not UTF-8";

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
    let params = Params::new(pairs);
    let Some(service) = params.text("service").map(str::to_owned) else {
        return refuse(StatusCode::BAD_REQUEST, "parameter 'service' is required");
    };
    let wanted = params.text("spanKind").map(str::to_owned);
    aside(move || answer(operations_of_service(&state, &service, wanted.as_deref()))).await
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
    let mut params = Params::new(pairs);
    let Some(when) = params::when(&mut params) else { return bad(&params) };
    aside(move || {
        let calls = query::dependencies(&state.store.snapshot(), &when).into_iter();
        answer(calls.map(|((parent, child), call_count)| Dependency { parent, child, call_count }).collect())
    })
    .await
}

fn bad(params: &Params) -> Response {
    let problem = params.problems.first();
    let msg = problem.map(|problem| format!("unable to parse param '{}': {}", problem.parameter, problem.message));
    refuse(StatusCode::BAD_REQUEST, msg.unwrap_or_default())
}

async fn traces(extract::State(state): extract::State<State>, Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let mut params = Params::new(pairs);
    let wanted = params::read(&mut params);
    if !params.problems.is_empty() {
        return bad(&params);
    }
    aside(move || show(&params::find(&state, &wanted), false)).await
}

async fn trace(
    extract::State(state): extract::State<State>,
    id: Result<Path<String>, PathRejection>,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Response {
    let Ok(Path(id)) = id else { return refuse(StatusCode::BAD_REQUEST, NO_TEXT) };
    let id: TraceId = match id.parse() {
        Ok(id) => id,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("{error}")),
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
