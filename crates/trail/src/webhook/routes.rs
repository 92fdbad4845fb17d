//! The webhook as an axum service.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{Request, StatusCode, header};

use super::{
    Webhook,
    counters::Trouble,
    intake::{Intake, Unread},
};
use crate::context;

/// Where an API server sends its calls.
pub const PATH: &str = "/stamp";
/// As long as the API server waits.
const READ: Duration = Duration::from_secs(2);

/// It serves on, as API servers may still call; but who waits for it to be in force has to wait.
const LOST: &str = "the registration is gone, or says something else: it is written again, ever more slowly where somebody undoes that";

/// What the service knows beside its rules.
#[derive(Debug)]
struct Shared {
    webhook: Arc<Webhook>,
    intake: Intake,
    ready: Arc<AtomicBool>,
}

impl Webhook {
    /// `POST /stamp` for API servers; `/healthz`, `/readyz` (while `ready`, and unless the registration is lost) and `/metrics` for those who look after it.
    pub fn router(self: &Arc<Self>, ready: Arc<AtomicBool>) -> Router {
        routes(Arc::new(Shared { webhook: Arc::clone(self), intake: Intake::new(READ), ready }))
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    let router = Router::new().route(PATH, post(stamp)).route("/healthz", get(async || "ok"));
    router.route("/readyz", get(readyz)).route("/metrics", get(metrics)).with_state(shared)
}

async fn stamp(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response {
    let arrived = SystemTime::now();
    let (head, body) = request.into_parts();
    match shared.intake.read(&head.headers, body).await {
        Ok(held) => {
            let answer = shared.webhook.answer(&head.headers, &held.body, arrived);
            let media = if answer.status == StatusCode::OK { "application/json" } else { "text/plain" };
            (answer.status, [(header::CONTENT_TYPE, media)], answer.body).into_response()
        }
        Err(unread) => {
            shared.webhook.trouble(trouble(&unread), &unread, context::extract(&head.headers).as_ref(), arrived);
            unread.into_response()
        }
    }
}

fn trouble(unread: &Unread) -> Trouble {
    match unread {
        Unread::Media | Unread::Broken(_) => Trouble::NoReview,
        Unread::Long => Trouble::TooLarge,
        Unread::Slow => Trouble::TooSlow,
        Unread::Busy => Trouble::Busy,
    }
}

async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let counters = shared.webhook.counters();
    match (shared.ready.load(Ordering::Relaxed), counters.upkeep().is_lost()) {
        (true, false) => once_ready(&counters.unserved()).into_response(),
        (true, true) => (StatusCode::SERVICE_UNAVAILABLE, LOST).into_response(),
        (false, _) => (StatusCode::SERVICE_UNAVAILABLE, "not registered yet, or ending").into_response(),
    }
}

/// Nothing of this makes it less ready, but who looks wants to know.
fn once_ready(unserved: &[String]) -> String {
    unserved.iter().fold("ok".to_owned(), |text, sentence| format!("{text}\nwarning: {sentence}"))
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], shared.webhook.counters().page()).into_response()
}

#[cfg(test)]
mod tests;
