//! HTTP to others: webhooks and the collector that takes the server's spans.
//!
//! A client talks to the one address that it was made for; the authority of a request may name something else. Connections are
//! pooled and answers are bounded.

mod dial;
mod verify;

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};

pub use self::dial::{Address, Connector, Trust, TrustError};

/// Knows the addresses of Services.
pub trait Services: fmt::Debug + Send + Sync {
    /// The address behind a port of a Service. The error is for people.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<Address, String>;
}

/// As long as Go's client keeps a connection that nobody uses.
const IDLE: Duration = Duration::from_secs(90);
/// As often as Go's client asks whether a silent HTTP/2 connection is alive, and as long as it waits for the answer.
const PING: Duration = Duration::from_secs(15);

/// A client for one destination; clones share its connections.
#[derive(Clone, Debug)]
pub struct Client {
    inner: legacy::Client<Connector, Full<Bytes>>,
    limit: usize,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    /// Its status and headers.
    pub head: http::response::Parts,
    /// Its body.
    pub body: Bytes,
    /// What came after the body.
    pub trailers: Option<HeaderMap>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection, or it broke.
    #[error("{}", reason(.0))]
    Request(#[from] legacy::Error),
    /// The answer broke off.
    #[error("the answer broke off: {0}")]
    Body(String),
    /// The answer is longer than anybody would send.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
}

impl Client {
    /// A client; `http2` where the other side is known to speak nothing else, as gRPC does.
    pub fn new(connector: Connector, http2: bool, limit: usize) -> Self {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).http2_only(http2);
        // A connection whose other side is gone without a word is found out while somebody waits for an answer on it.
        builder.timer(TokioTimer::new()).http2_keep_alive_interval(PING).http2_keep_alive_timeout(PING);
        Self { inner: builder.build(connector), limit }
    }

    /// Sends a request and reads the answer.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Answer, Error> {
        let response: Response<_> = self.inner.request(request).await?;
        let (head, body) = response.into_parts();
        let collected = Limited::new(body, self.limit).collect().await.map_err(|error| {
            match error.downcast_ref::<LengthLimitError>() {
                Some(_) => Error::TooLong(self.limit),
                None => Error::Body(error.to_string()),
            }
        })?;
        let trailers = collected.trailers().cloned();
        Ok(Answer { head, body: collected.to_bytes(), trailers })
    }
}

/// The innermost reason, which is the one that helps.
fn reason(error: &legacy::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
