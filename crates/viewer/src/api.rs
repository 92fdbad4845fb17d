//! The viewer's own JSON API, under `/api/v1`. docs/viewer.md describes it.
//!
//! Ids are lower case hexadecimal, times strings of nanoseconds since 1970, durations numbers of nanoseconds.

pub(crate) mod import;
mod log_stream;
mod objects;
pub(crate) mod params;
mod pipelines;
mod search;
mod services;
mod stream;
mod trace;

use axum::{
    Router,
    extract::{FromRequestParts, Path},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{StatusCode, header, request};
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use self::params::{ParameterProblem, QueryParams};
use crate::{json::Nanos, serve::ViewerState, store::StoreFigures};

pub(crate) fn routes() -> Router<ViewerState> {
    Router::new()
        .route("/services", get(services::services))
        .route("/search", get(search::search))
        .route("/traces/{id}", get(trace::trace))
        .route("/traces/{id}/spans/{span}", get(trace::span))
        .route("/live", get(stream::live))
        .route("/tail", get(stream::tail))
        .route("/tail/logs", get(log_stream::tail))
        .route("/import", post(import::import))
        .route("/objects", get(objects::objects))
        .route("/objects/{kind}/{namespace}/{name}", get(objects::object))
        .route("/pipelines", get(pipelines::pipelines))
        .route("/info", get(services::info))
}

/// Response to a path whose segments are not UTF-8.
pub(crate) const NOT_UTF8_MESSAGE: &str = "the path contains bytes that are not UTF-8";

/// Path segments, which must be UTF-8.
pub(crate) struct PathParts<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParts<T> {
    type Rejection = Response;

    async fn from_request_parts(head: &mut request::Parts, state: &S) -> Result<Self, Response> {
        let parts = Path::from_request_parts(head, state).await;
        parts.map(|Path(parts)| Self(parts)).map_err(|_| error_response(StatusCode::BAD_REQUEST, NOT_UTF8_MESSAGE))
    }
}

#[derive(Serialize)]
pub(crate) struct StoreJson {
    traces: usize,
    spans: usize,
    bytes: usize,
    limit: usize,
    /// Evicted traces and their spans.
    dropped: LostJson,
    /// Traces that were refused as a whole, and spans beyond the limit of their trace.
    refused: LostJson,
    oldest: Option<Nanos>,
}

#[derive(Serialize)]
struct LostJson {
    traces: u64,
    spans: u64,
}

impl From<StoreFigures> for StoreJson {
    fn from(figures: StoreFigures) -> Self {
        let StoreFigures { traces, spans, bytes, limit, oldest, .. } = figures;
        let dropped = LostJson { traces: figures.dropped_traces, spans: figures.dropped_spans };
        let refused = LostJson { traces: figures.refused_traces, spans: figures.refused_spans };
        Self { traces, spans, bytes, limit, dropped, refused, oldest: oldest.map(Nanos) }
    }
}

pub(crate) fn json_response(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => raw_json_response(status, body),
        Err(error) => {
            tracing::error!(%error, "failed to encode a response as JSON");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// A response whose body is JSON already.
pub(crate) fn raw_json_response(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// A 400 response that lists every invalid parameter.
pub(crate) fn parameter_errors_response(problems: &[ParameterProblem]) -> Response {
    json_response(StatusCode::BAD_REQUEST, &serde_json::json!({ "error": "invalid parameters", "problems": problems }))
}

/// A response with an error message.
pub(crate) fn error_response(status: StatusCode, message: &str) -> Response {
    json_response(status, &serde_json::json!({ "error": message }))
}

/// Runs CPU-bound work on a blocking thread, so that other requests are served meanwhile.
pub(crate) async fn run_blocking(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(%error, "a query failed");
            error_response(StatusCode::INTERNAL_SERVER_ERROR, "the query failed; see the log of the viewer")
        }
    }
}
