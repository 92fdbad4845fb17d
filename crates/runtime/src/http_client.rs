//! One HTTP request, bounded in time and memory, on a connection of its own.
//!
//! *Guaranteed*: the response arrives before the deadline and within the limit of its length, or there is an
//! error. An error contains neither headers nor the body of the request, so that a credential that was sent is in
//! no message. The connection is closed when the response is read or dropped.
//!
//! *Not done*: pools, HTTP/2, redirects, proxies. Clients that send many requests to one address keep pools of
//! their own, because a connection for each request would cost them more than the request: the exporters of the
//! collector (`collector/net/connect.rs`), the load generator, and the API server's client for webhooks
//! (`kubernetes/apiserver/client`). `kubewake-trail` depends on no crate of this workspace. TLS is the caller's:
//! [`send_request`] takes any stream.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header, response::Parts, uri::Scheme};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::{
    body::{Body, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

#[cfg(test)]
mod tests;

/// The limit of the head of a response. Servers send a few hundred bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The limit of the body of an error response, which is only shown.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

type BoxedError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum HttpClientError {
    #[error("the request timed out")]
    Timeout,
    /// The URL or a header is invalid. The reason repeats neither.
    #[error("invalid request: {0}")]
    Request(String),
    #[error("failed to connect")]
    Connect(#[source] io::Error),
    /// The server does not speak HTTP, or the connection broke.
    #[error("the HTTP request failed")]
    Http(#[source] hyper::Error),
    #[error("unexpected HTTP status {status}")]
    Status {
        status: StatusCode,
        /// The beginning of the response; empty if it could not be read.
        body: Bytes,
    },
    #[error("failed to read the response")]
    Read(#[source] ResponseReadError),
}

/// Why the body of a response could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ResponseReadError {
    #[error("length limit exceeded")]
    TooLong,
    #[error(transparent)]
    Broken(BoxedError),
}

/// A client without state: its limits.
#[derive(Clone, Copy, Debug)]
pub struct HttpClient {
    /// From the beginning of the connection to the end of the response.
    pub timeout: Duration,
    pub max_response_bytes: usize,
}

impl HttpClient {
    /// Gets a URL and returns the body of a successful response.
    ///
    /// # Errors
    /// If there is no successful response of bounded size in bounded time.
    pub async fn get(&self, url: &str) -> Result<Bytes, HttpClientError> {
        self.send(Request::get(url).body(Full::default())).await
    }

    /// Sends a request and returns the body of a successful response.
    ///
    /// # Errors
    /// If there is no successful response of bounded size in bounded time.
    pub async fn send(&self, request: http::Result<Request<Full<Bytes>>>) -> Result<Bytes, HttpClientError> {
        let response = async {
            let response = open(request).await?;
            response.read_body(self.max_response_bytes).await.map_err(HttpClientError::Read)
        };
        timeout(self.timeout, response).await.map_err(|_| HttpClientError::Timeout)?
    }

    /// Sends a request whose successful response is a stream. The timeout ends with the head of the response.
    ///
    /// # Errors
    /// If there is no head of a successful response in bounded time.
    pub async fn open_stream(
        &self,
        request: http::Result<Request<Full<Bytes>>>,
    ) -> Result<OpenResponse, HttpClientError> {
        timeout(self.timeout, open(request)).await.map_err(|_| HttpClientError::Timeout)?
    }
}

/// Connects and sends a request. Every status but a success is an error.
async fn open(request: http::Result<Request<Full<Bytes>>>) -> Result<OpenResponse, HttpClientError> {
    let mut request = request.map_err(|error| HttpClientError::Request(error.to_string()))?;
    let (host, port) = take_address(&mut request)?;
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(HttpClientError::Connect)?;
    // Requests are written as a whole, so that waiting for more data only delays them.
    let _ = stream.set_nodelay(true);
    let response = send_request(stream, request).await.map_err(HttpClientError::Http)?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = response.read_body(MAX_ERROR_BODY_BYTES).await.unwrap_or_default();
    Err(HttpClientError::Status { status, body })
}

/// Names the server in a header instead of in the URL, as HTTP/1.1 asks for, and returns its address.
fn take_address<B>(request: &mut Request<B>) -> Result<(String, u16), HttpClientError> {
    let invalid = |reason: &str| HttpClientError::Request(reason.to_owned());
    let url = request.uri();
    if url.scheme() != Some(&Scheme::HTTP) {
        return Err(invalid("the URL does not begin with http://"));
    }
    let authority = url.authority().ok_or_else(|| invalid("the URL names no host"))?.clone();
    let path = url.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    *request.uri_mut() = path.parse::<Uri>().map_err(|error| invalid(&error.to_string()))?;
    let port = authority.port_u16();
    let host = authority.host();
    let shown = port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let shown = HeaderValue::try_from(shown).map_err(|error| invalid(&error.to_string()))?;
    request.headers_mut().entry(header::HOST).or_insert(shown);
    Ok((host.trim_matches(['[', ']']).to_owned(), port.unwrap_or(80)))
}

/// A response whose body has not been read yet. Its connection ends with it.
#[derive(Debug)]
pub struct OpenResponse {
    head: Parts,
    body: Incoming,
    /// The task that drives the connection, which is aborted on drop.
    _connection: JoinSet<()>,
}

/// Sends a request on a connection, and waits for the head of the response. The caller sets a time limit, and
/// the `Host` header.
///
/// # Errors
/// If the server closes the connection, or does not speak HTTP.
pub async fn send_request<S, B>(stream: S, request: Request<B>) -> hyper::Result<OpenResponse>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxedError>,
{
    let handshake = http1::Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    let mut driver = JoinSet::new();
    driver.spawn(async {
        // An error reaches whoever waits for the response.
        let _ = connection.await;
    });
    let (head, body) = sender.send_request(request).await?.into_parts();
    Ok(OpenResponse { head, body, _connection: driver })
}

impl OpenResponse {
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Reads the rest of the body.
    ///
    /// # Errors
    /// If it breaks off, or is longer than the limit.
    pub async fn read_body(self, max_bytes: usize) -> Result<Bytes, ResponseReadError> {
        match Limited::new(self.body, max_bytes).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => Err(ResponseReadError::TooLong),
            Err(error) => Err(ResponseReadError::Broken(error)),
        }
    }

    /// The next piece of the body; none at its end.
    pub async fn next_chunk(&mut self) -> Option<hyper::Result<Bytes>> {
        loop {
            match self.body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => return Some(Ok(data)),
                    // Trailers are not data.
                    Err(_) => continue,
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
