//! Reads the bodies of calls, with limits for each body and for all bodies together.
//!
//! *Guaranteed*: no body exceeds [`MAX_BODY_BYTES`], all bodies together never exceed [`BODY_BUDGET_KIB`] KiB,
//! and no read takes longer than the given timeout. A call whose body is not read gets a response that the API
//! server treats as a failure, so that its `failurePolicy` applies.

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

/// Room for the old and the new object, 3 MiB each (the limit of an API server), and for the rest of the
/// review.
pub const MAX_BODY_BYTES: usize = 7 << 20;
/// The limit for the bodies of all calls in flight, in KiB: enough for hundreds of usual ones.
pub const BODY_BUDGET_KIB: usize = 64 << 10;

/// Reads the bodies of calls. Clones share the budget.
#[derive(Clone, Debug)]
pub struct BodyReader {
    budget: Arc<Semaphore>,
    timeout: Duration,
}

/// A body that was read. It occupies its share of the budget until it is dropped.
#[derive(Debug)]
pub struct HeldBody {
    /// The body.
    pub body: Bytes,
    _permit: OwnedSemaphorePermit,
}

/// The reason why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum BodyReadError {
    /// The content type is not JSON.
    #[error("unsupported content type: only application/json is accepted")]
    UnsupportedMediaType,
    /// The body exceeds [`MAX_BODY_BYTES`].
    #[error("the request body exceeds {MAX_BODY_BYTES} bytes")]
    TooLong,
    /// The body did not arrive in time.
    #[error("timed out reading the request body")]
    Timeout,
    /// The budget was exhausted for too long.
    #[error("too many requests in flight")]
    Busy,
    /// The connection ended within the body.
    #[error("failed to read the request body")]
    ConnectionLost(#[source] io::Error),
}

impl BodyReader {
    /// Creates a reader with this timeout for budget and body; it should be the API server's own timeout.
    #[must_use]
    pub fn new(timeout: Duration) -> Self {
        Self { budget: Arc::new(Semaphore::new(BODY_BUDGET_KIB)), timeout }
    }

    /// Waits for budget, then reads a body.
    pub async fn read(&self, headers: &HeaderMap, body: Body) -> Result<HeldBody, BodyReadError> {
        let announced = body.size_hint().upper();
        let length = announced.map_or(MAX_BODY_BYTES, |length| usize::try_from(length).unwrap_or(usize::MAX));
        if length > MAX_BODY_BYTES {
            return Err(BodyReadError::TooLong);
        }
        let kibibytes = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX);
        let end = Instant::now() + self.timeout;
        let permit = timeout_at(end, Arc::clone(&self.budget).acquire_many_owned(kibibytes));
        let permit = permit.await.map_err(|_| BodyReadError::Busy)?.map_err(|_| BodyReadError::Busy)?;
        let read =
            timeout_at(end, Limited::new(body, MAX_BODY_BYTES).collect()).await.map_err(|_| BodyReadError::Timeout)?;
        match read {
            // Checked after the body was read: over HTTP/2 an early response may get lost.
            Ok(_) if !is_json(headers) => Err(BodyReadError::UnsupportedMediaType),
            Ok(body) => Ok(HeldBody { body: body.to_bytes(), _permit: permit }),
            Err(error) if error.is::<LengthLimitError>() => Err(BodyReadError::TooLong),
            Err(error) => Err(BodyReadError::ConnectionLost(io::Error::other(error))),
        }
    }

    #[cfg(test)]
    pub(crate) fn budget(&self) -> &Arc<Semaphore> {
        &self.budget
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    media.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

impl IntoResponse for BodyReadError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Timeout => StatusCode::REQUEST_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectionLost(_) => StatusCode::BAD_REQUEST,
        };
        (status, self.to_string()).into_response()
    }
}
