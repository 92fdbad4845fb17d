//! Reads the bodies of calls, within limits for each and for all together.
//!
//! *Guaranteed*: no call holds more than [`MOST_BYTES`], all of them together no more than [`BUDGET`] KiB, and none is waited for longer than it is told.
//! What is not read has an answer that an API server takes for none, so that its `failurePolicy` decides.

use std::{io, sync::Arc, time::Duration};

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// An object of 3 MiB, which is all that an API server takes, as it was and as it is asked for, and what is said about it.
pub const MOST_BYTES: usize = 7 << 20;
/// What all calls under way may hold together, in KiB: enough for hundreds of usual ones.
pub const BUDGET: usize = 64 << 10;

/// Reads the bodies of calls. A clone shares the room of all.
#[derive(Clone, Debug)]
pub struct Intake {
    budget: Arc<Semaphore>,
    patience: Duration,
}

/// A body that was read. It takes room until it is dropped.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub body: Bytes,
    _room: OwnedSemaphorePermit,
}

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// Another media type.
    #[error("only application/json is read")]
    Media,
    /// Too many bytes.
    #[error("a call may have {MOST_BYTES} bytes")]
    Long,
    /// Too few bytes for too long.
    #[error("the call took too long to arrive")]
    Slow,
    /// No room.
    #[error("too many calls are under way")]
    Busy,
    /// It ended in the middle.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
}

impl Intake {
    /// Waits this long for room and for a body, which should be as long as the API server waits.
    #[must_use]
    pub fn new(patience: Duration) -> Self {
        Self { budget: Arc::new(Semaphore::new(BUDGET)), patience }
    }

    /// Reads a body, once there is room for it.
    pub async fn read(&self, headers: &HeaderMap, body: Body) -> Result<Held, Unread> {
        let announced = body.size_hint().upper();
        let length = announced.map_or(MOST_BYTES, |length| usize::try_from(length).unwrap_or(usize::MAX));
        if length > MOST_BYTES {
            return Err(Unread::Long);
        }
        let kibibytes = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX);
        let end = Instant::now() + self.patience;
        let room = timeout_at(end, Arc::clone(&self.budget).acquire_many_owned(kibibytes));
        let room = room.await.map_err(|_| Unread::Busy)?.map_err(|_| Unread::Busy)?;
        let read = timeout_at(end, Limited::new(body, MOST_BYTES).collect()).await.map_err(|_| Unread::Slow)?;
        match read {
            // Only now, since over HTTP/2 an answer to what was not read may get lost.
            Ok(_) if !is_json(headers) => Err(Unread::Media),
            Ok(body) => Ok(Held { body: body.to_bytes(), _room: room }),
            Err(error) if error.is::<LengthLimitError>() => Err(Unread::Long),
            Err(error) => Err(Unread::Broken(io::Error::other(error))),
        }
    }

    #[cfg(test)]
    pub(super) fn budget(&self) -> &Arc<Semaphore> {
        &self.budget
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    media.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

impl IntoResponse for Unread {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Media => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Long => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Broken(_) => StatusCode::BAD_REQUEST,
        };
        (status, self.to_string()).into_response()
    }
}
