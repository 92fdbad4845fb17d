//! Our own JSON, under `/api/v1`. docs/viewer.md describes it.
//!
//! Ids are lower case hexadecimal, times strings of nanoseconds since 1970, durations numbers of nanoseconds.

pub(crate) mod import;
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

pub(crate) use self::params::{Params, Problem};
use crate::{json::Nanos, serve::State, store::Figures};

/// The routes below `/api/v1`.
pub(crate) fn routes() -> Router<State> {
    Router::new()
        .route("/services", get(services::services))
        .route("/search", get(search::search))
        .route("/traces/{id}", get(trace::trace))
        .route("/traces/{id}/spans/{span}", get(trace::span))
        .route("/live", get(stream::live))
        .route("/tail", get(stream::tail))
        .route("/import", post(import::import))
        .route("/objects", get(objects::objects))
        .route("/objects/{kind}/{namespace}/{name}", get(objects::object))
        .route("/pipelines", get(pipelines::pipelines))
        .route("/info", get(services::info))
}

/// The answer to an address whose parts are no UTF-8.
pub(crate) const NO_TEXT: &str = "the address holds something that is not UTF-8";

/// Parts of an address, which must be text.
pub(crate) struct Parts<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Parts<T> {
    type Rejection = Response;

    async fn from_request_parts(head: &mut request::Parts, state: &S) -> Result<Self, Response> {
        let parts = Path::from_request_parts(head, state).await;
        parts.map(|Path(parts)| Self(parts)).map_err(|_| refuse(StatusCode::BAD_REQUEST, NO_TEXT))
    }
}

/// What the store holds.
#[derive(Serialize)]
pub(crate) struct StoreJson {
    traces: usize,
    spans: usize,
    bytes: usize,
    limit: usize,
    /// Traces that had to make room, and their spans.
    dropped: Lost,
    /// Traces of which nothing fits, and spans that were too many for theirs.
    refused: Lost,
    oldest: Option<Nanos>,
}

#[derive(Serialize)]
struct Lost {
    traces: u64,
    spans: u64,
}

impl From<Figures> for StoreJson {
    fn from(figures: Figures) -> Self {
        let Figures { traces, spans, bytes, limit, oldest, .. } = figures;
        let dropped = Lost { traces: figures.dropped_traces, spans: figures.dropped_spans };
        let refused = Lost { traces: figures.refused_traces, spans: figures.refused_spans };
        Self { traces, spans, bytes, limit, dropped, refused, oldest: oldest.map(Nanos) }
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => raw_json(status, body),
        Err(error) => {
            tracing::error!(%error, "an answer could not be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// An answer that is JSON already.
pub(crate) fn raw_json(status: StatusCode, body: Vec<u8>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// An answer that says what is wrong with the question.
pub(crate) fn bad_parameters(problems: &[Problem]) -> Response {
    json(StatusCode::BAD_REQUEST, &serde_json::json!({ "error": "bad parameters", "problems": problems }))
}

/// An answer that says why there is none.
pub(crate) fn refuse(status: StatusCode, message: &str) -> Response {
    json(status, &serde_json::json!({ "error": message }))
}

/// Does what takes long where it keeps nobody else from being served.
pub(crate) async fn aside(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(work).await {
        Ok(response) => response,
        Err(error) => {
            tracing::error!(%error, "a query failed");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, "the query failed; the log says why")
        }
    }
}
