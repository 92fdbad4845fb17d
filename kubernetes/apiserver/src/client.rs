//! HTTP clients for webhooks and for the collector that receives the server's spans.
//!
//! A client connects to the one address that it was created for; the authority of a request may differ from it.
//! Connections are pooled and responses are bounded.

mod dial;
mod server_verifier;

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_util::{
    client::legacy,
    rt::{TokioExecutor, TokioTimer},
};

pub use self::dial::{AddressConnector, DialAddress, TlsClientConfig, TlsConfigError};

/// Resolves the addresses of Services.
pub trait ServiceAddressResolver: fmt::Debug + Send + Sync {
    /// The address behind a port of a Service. The error is a message for users.
    fn resolve(&self, namespace: &str, name: &str, port: u16) -> Result<DialAddress, String>;
}

/// How long an idle connection is kept: the value of Go's client.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// The interval of HTTP/2 keep-alive pings, and the time to wait for their answer: the values of Go's client.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A client for one destination; clones share its connections.
#[derive(Clone, Debug)]
pub struct HttpClient {
    inner: legacy::Client<AddressConnector, Full<Bytes>>,
    max_response_bytes: usize,
}

/// A response whose body was read to its end.
#[derive(Debug)]
pub struct BufferedResponse {
    pub head: http::response::Parts,
    pub body: Bytes,
    pub trailers: Option<HeaderMap>,
}

#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    /// The connection failed or broke.
    #[error("{}", innermost_error(.0))]
    Request(#[from] legacy::Error),
    #[error("failed to read the response: {0}")]
    Body(String),
    /// The response exceeds the client's limit.
    #[error("the response is longer than {0} bytes")]
    TooLong(usize),
}

impl HttpClient {
    /// Creates a client. `http2` is for servers that are known to speak nothing else, as gRPC does.
    pub fn new(connector: AddressConnector, http2: bool, max_response_bytes: usize) -> Self {
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE_TIMEOUT).http2_only(http2);
        // Keep-alive pings detect a dead connection while a request waits for its response.
        builder
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
            .http2_keep_alive_timeout(KEEP_ALIVE_INTERVAL);
        Self { inner: builder.build(connector), max_response_bytes }
    }

    /// Sends a request and reads the whole response.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<BufferedResponse, HttpClientError> {
        let response: Response<_> = self.inner.request(request).await?;
        let (head, body) = response.into_parts();
        let collected = Limited::new(body, self.max_response_bytes).collect().await.map_err(|error| {
            match error.downcast_ref::<LengthLimitError>() {
                Some(_) => HttpClientError::TooLong(self.max_response_bytes),
                None => HttpClientError::Body(error.to_string()),
            }
        })?;
        let trailers = collected.trailers().cloned();
        Ok(BufferedResponse { head, body: collected.to_bytes(), trailers })
    }
}

/// The innermost cause, which is the most helpful one.
fn innermost_error(error: &legacy::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}
