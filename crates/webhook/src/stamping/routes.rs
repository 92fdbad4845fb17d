//! The webhook as an axum service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime,
};

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{Request, StatusCode, header};
use kubewake_trail::context;

use super::{StampWebhook, counters::CallTrouble, selection::CALL_TIMEOUT};
use crate::body_reader::{BodyReadError, BodyReader};

/// The path to which an API server sends its calls.
pub const PATH: &str = "/stamp";

/// The body of `/readyz` while the registration is lost. Calls are still served, as API servers may still make
/// them.
const LOST_REGISTRATION_MESSAGE: &str = "the webhook registration is missing or was changed: it is written again, with increasing delays if another writer keeps changing it";

/// The shared state of the routes.
#[derive(Debug)]
struct RouterState {
    webhook: Arc<StampWebhook>,
    body_reader: BodyReader,
    ready: Arc<AtomicBool>,
}

impl StampWebhook {
    /// `POST /stamp` for API servers; `/healthz`, `/readyz` (ok while `ready` is set and the registration is in
    /// force) and `/metrics` for operations.
    pub fn router(self: &Arc<Self>, ready: Arc<AtomicBool>) -> Router {
        build_router(Arc::new(RouterState {
            webhook: Arc::clone(self),
            body_reader: BodyReader::new(CALL_TIMEOUT),
            ready,
        }))
    }
}

fn build_router(shared: Arc<RouterState>) -> Router {
    let router = Router::new().route(PATH, post(stamp)).route("/healthz", get(async || "ok"));
    router.route("/readyz", get(readyz)).route("/metrics", get(metrics)).with_state(shared)
}

async fn stamp(State(shared): State<Arc<RouterState>>, request: Request<Body>) -> Response {
    let arrived = SystemTime::now();
    let (head, body) = request.into_parts();
    match shared.body_reader.read(&head.headers, body).await {
        Ok(held) => {
            let answer = shared.webhook.handle_call(&head.headers, &held.body, arrived);
            let media = if answer.status == StatusCode::OK { "application/json" } else { "text/plain" };
            (answer.status, [(header::CONTENT_TYPE, media)], answer.body).into_response()
        }
        Err(unread) => {
            shared.webhook.record_trouble(
                trouble_kind(&unread),
                &unread,
                context::extract(&head.headers).as_ref(),
                arrived,
            );
            unread.into_response()
        }
    }
}

fn trouble_kind(unread: &BodyReadError) -> CallTrouble {
    match unread {
        BodyReadError::UnsupportedMediaType | BodyReadError::ConnectionLost(_) => CallTrouble::NoReview,
        BodyReadError::TooLong => CallTrouble::TooLarge,
        BodyReadError::Timeout => CallTrouble::TooSlow,
        BodyReadError::Busy => CallTrouble::Busy,
    }
}

async fn readyz(State(shared): State<Arc<RouterState>>) -> Response {
    let counters = shared.webhook.counters();
    match (shared.ready.load(Ordering::Relaxed), counters.maintenance().is_lost()) {
        (true, false) => ready_message(&counters.unserved()).into_response(),
        (true, true) => (StatusCode::SERVICE_UNAVAILABLE, LOST_REGISTRATION_MESSAGE).into_response(),
        (false, _) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the webhook is not registered yet, or is shutting down").into_response()
        }
    }
}

/// Unserved resources do not affect readiness; they are shown as warnings.
fn ready_message(unserved: &[String]) -> String {
    unserved.iter().fold("ok".to_owned(), |text, sentence| format!("{text}\nwarning: {sentence}"))
}

async fn metrics(State(shared): State<Arc<RouterState>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], shared.webhook.counters().render_metrics()).into_response()
}

#[cfg(test)]
mod tests;
