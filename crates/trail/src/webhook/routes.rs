//! The webhook as an axum service, with limits on what it reads.

use std::{
    io,
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
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use super::{Webhook, counters::Trouble};
use crate::context;

/// Where an API server sends its calls.
pub const PATH: &str = "/stamp";
/// An object of 3 MiB, which is all that an API server takes, as it was and as it is asked for, and what is said about it.
const MOST_BYTES: usize = 7 << 20;
/// What all calls under way may hold together, in KiB: enough for hundreds of usual ones.
const BUDGET: usize = 64 << 10;
/// As long as the API server waits.
const READ: Duration = Duration::from_secs(2);

/// What the service knows beside its rules.
#[derive(Debug)]
struct Shared {
    webhook: Arc<Webhook>,
    budget: Arc<Semaphore>,
    ready: Arc<AtomicBool>,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("only application/json is read")]
    Media,
    #[error("a call may have {MOST_BYTES} bytes")]
    Long,
    #[error("the call took longer than {READ:?} to arrive")]
    Slow,
    #[error("too many calls are under way")]
    Busy,
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}

impl Webhook {
    /// `POST /stamp` for API servers; `/healthz`, `/readyz` (while `ready`) and `/metrics` for those who look after it.
    pub fn router(self: &Arc<Self>, ready: Arc<AtomicBool>) -> Router {
        let budget = Arc::new(Semaphore::new(BUDGET));
        let shared = Arc::new(Shared { webhook: Arc::clone(self), budget, ready });
        routes(shared)
    }
}

fn routes(shared: Arc<Shared>) -> Router {
    let router = Router::new().route(PATH, post(stamp)).route("/healthz", get(async || "ok"));
    router.route("/readyz", get(readyz)).route("/metrics", get(metrics)).with_state(shared)
}

async fn stamp(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response {
    let arrived = SystemTime::now();
    let (head, body) = request.into_parts();
    match read(&shared, &head.headers, body).await {
        Ok((body, _held)) => {
            let answer = shared.webhook.answer(&head.headers, &body, arrived);
            let media = if answer.status == StatusCode::OK { "application/json" } else { "text/plain" };
            (answer.status, [(header::CONTENT_TYPE, media)], answer.body).into_response()
        }
        Err(unread) => {
            shared.webhook.trouble(unread.trouble(), &unread, context::extract(&head.headers).as_ref(), arrived);
            (unread.status(), unread.to_string()).into_response()
        }
    }
}

/// Reads a body, once there is room for it.
async fn read(shared: &Shared, headers: &HeaderMap, body: Body) -> Result<(Bytes, OwnedSemaphorePermit), Unread> {
    let length = body.size_hint().upper().map_or(MOST_BYTES, |length| usize::try_from(length).unwrap_or(usize::MAX));
    if length > MOST_BYTES {
        return Err(Unread::Long);
    }
    let kibibytes = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX);
    let end = Instant::now() + READ;
    let room = timeout_at(end, Arc::clone(&shared.budget).acquire_many_owned(kibibytes));
    let room = room.await.map_err(|_| Unread::Busy)?.map_err(|_| Unread::Busy)?;
    let read = timeout_at(end, Limited::new(body, MOST_BYTES).collect()).await.map_err(|_| Unread::Slow)?;
    match read {
        // Only now, since over HTTP/2 an answer to what was not read may get lost.
        Ok(_) if !is_json(headers) => Err(Unread::Media),
        Ok(body) => Ok((body.to_bytes(), room)),
        Err(error) if error.is::<LengthLimitError>() => Err(Unread::Long),
        Err(error) => Err(Unread::Broken(io::Error::other(error))),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    media.split(';').next().map(str::trim) == Some("application/json")
}

impl Unread {
    fn status(&self) -> StatusCode {
        match self {
            Self::Media => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Long => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        }
    }

    fn trouble(&self) -> Trouble {
        match self {
            Self::Media | Self::Broken(_) => Trouble::NoReview,
            Self::Long => Trouble::TooLarge,
            Self::Slow => Trouble::TooSlow,
            Self::Busy => Trouble::Busy,
        }
    }
}

async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    match shared.ready.load(Ordering::Relaxed) {
        true => "ok".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not registered yet, or ending").into_response(),
    }
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], shared.webhook.counters().page()).into_response()
}

#[cfg(test)]
mod tests;
