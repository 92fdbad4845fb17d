//! A small HTTP/1.1 server for metrics and status.
//!
//! *Guarantees.* Only `GET` and `HEAD` are answered, and no body is read. A client that is slow to send its
//! head is cut off. Memory is bounded for each connection, and the number of connections is too. New routes and
//! certificates apply without closing the socket. *Does not* authenticate clients: bind it to an address that
//! only those can reach who may see metrics.

#[cfg(test)]
mod tests;

use std::{convert::Infallible, future::Future, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{
    Method, Request, Response, StatusCode,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
};
use http_body_util::Full;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kubewake_runtime::tls;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};

use crate::net::listener::{self, ConnectionListener, ShutdownSignal};

/// How long a client may take to send the head of a request, and may idle between requests. Longer than a usual
/// scrape interval, so that Prometheus keeps its connection.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(75);

const TLS_HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The buffer of a connection. The head of a scrape is a few hundred bytes.
const CONNECTION_BUFFER_BYTES: usize = 16 * 1024;

/// Concurrent connections: far more than scrapers and probes need, with at most 4 MiB of buffers. Further ones
/// wait.
const MAX_CONNECTIONS: usize = 256;

/// How long connections get to end after [`TelemetryServer::stop`].
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryResponse {
    pub status: StatusCode,
    pub content_type: &'static str,
    /// The body; left out for `HEAD`.
    pub body: String,
}

impl TelemetryResponse {
    pub fn ok(content_type: &'static str, body: String) -> Self {
        Self { status: StatusCode::OK, content_type, body }
    }

    fn text(status: StatusCode) -> Self {
        let body = format!("{}\n", status.canonical_reason().unwrap_or_default());
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }
}

pub trait RouteHandler: Send + Sync {
    /// The response to a `GET` of `path` (without its query); `None` if the path does not exist.
    fn get(&self, path: &str) -> Option<TelemetryResponse>;
}

struct ActiveRoutes {
    routes: Arc<dyn RouteHandler>,
    tls: Option<Arc<ServerConfig>>,
}

/// A running server. It stops when it is dropped.
pub struct TelemetryServer {
    listener: ConnectionListener,
    active_routes: Arc<ArcSwap<ActiveRoutes>>,
}

impl TelemetryServer {
    /// Accepts connections until the server is stopped or dropped.
    ///
    /// # Errors
    ///
    /// If the socket is not a bound one.
    pub fn start(
        listener: Arc<TcpListener>,
        tls: Option<Arc<ServerConfig>>,
        routes: Arc<dyn RouteHandler>,
    ) -> std::io::Result<Self> {
        let live = Arc::new(ArcSwap::from_pointee(ActiveRoutes { routes, tls }));
        let current = live.clone();
        let listener = listener::start_listener(listener, MAX_CONNECTIONS, move |stream, peer, closing| {
            serve_connection(stream, peer, closing, current.clone())
        })?;
        Ok(Self { listener, active_routes: live })
    }

    /// Applies new routes from the next request on, and a new certificate from the next connection on.
    pub fn reconfigure(&self, tls: Option<Arc<ServerConfig>>, routes: Arc<dyn RouteHandler>) {
        self.active_routes.store(Arc::new(ActiveRoutes { routes, tls }));
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Stops accepting, and waits for responses in progress, up to `SHUTDOWN_TIMEOUT`.
    pub async fn stop(self) {
        self.listener.shutdown();
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.listener.wait_closed()).await;
    }
}

async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    closing: ShutdownSignal,
    live: Arc<ArcSwap<ActiveRoutes>>,
) {
    let Some(config) = live.load().tls.clone() else { return serve_http(stream, closing, live).await };
    if let Some(stream) = tls::accept(stream, peer, config, TLS_HANDSHAKE_TIMEOUT).await {
        serve_http(stream, closing, live).await;
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut closing: ShutdownSignal,
    live: Arc<ArcSwap<ActiveRoutes>>,
) {
    let service = service_fn(move |request: Request<_>| {
        let routes = live.load().routes.clone();
        std::future::ready(Ok::<_, Infallible>(handle_request(&*routes, &request)))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST_HEAD_TIMEOUT)
        .max_buf_size(CONNECTION_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        result = connection.as_mut() => result,
        () = closing.wait() => {
            connection.as_mut().graceful_shutdown();
            finish_requests(connection).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Lets the requests in progress end, within a limit.
async fn finish_requests<E>(connection: impl Future<Output = Result<(), E>>) -> Result<(), E> {
    tokio::time::timeout(SHUTDOWN_TIMEOUT, connection).await.unwrap_or(Ok(()))
}

fn handle_request<B>(routes: &dyn RouteHandler, request: &Request<B>) -> Response<Full<Bytes>> {
    let method = request.method();
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = into_response(TelemetryResponse::text(StatusCode::METHOD_NOT_ALLOWED));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    // The server leaves the body out of an answer to `HEAD`, and keeps its length.
    into_response(routes.get(request.uri().path()).unwrap_or_else(|| TelemetryResponse::text(StatusCode::NOT_FOUND)))
}

fn into_response(reply: TelemetryResponse) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = reply.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    response
}
