//! A small HTTP/1.1 server for what the collector says of itself.
//!
//! *Guarantees.* Only `GET` and `HEAD` are answered, and no body is read. A client that is slow to send its head is cut
//! off. Memory is bounded for each connection, and the number of connections is too. New routes and certificates
//! come into force without closing the socket. *Does not* know who asks: bind it to an address that only those can reach
//! who may see metrics.

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
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;

use crate::net::listen::{Closing, Door};

/// How long a client may take to send the head of a request, and between requests. Longer than a usual scrape
/// interval, so that Prometheus keeps its connection.
const HEAD_LIMIT: Duration = Duration::from_secs(75);

/// How long a TLS handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// What a connection may use as buffers. The head of a scrape is a few hundred bytes.
const BUFFER: usize = 16 * 1024;

/// Connections at once: far more than scrapers and probes need, and 4 MiB of buffers at worst. Further ones wait.
const MAX_CONNECTIONS: usize = 256;

/// How long connections get to end after [`Server::stop`].
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body; left out for `HEAD`.
    pub body: String,
}

impl Reply {
    /// A good answer.
    pub fn ok(content_type: &'static str, body: String) -> Self {
        Self { status: StatusCode::OK, content_type, body }
    }

    fn text(status: StatusCode) -> Self {
        let body = format!("{}\n", status.canonical_reason().unwrap_or_default());
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// What a server answers.
pub trait Routes: Send + Sync {
    /// The answer to a `GET` of `path` (without its query); `None` if there is nothing.
    fn get(&self, path: &str) -> Option<Reply>;
}

/// What is in force.
struct Live {
    routes: Arc<dyn Routes>,
    tls: Option<Arc<ServerConfig>>,
}

/// A running server. It stops when it is dropped.
pub struct Server {
    door: Door,
    live: Arc<ArcSwap<Live>>,
}

impl Server {
    /// Starts to serve.
    ///
    /// # Errors
    ///
    /// If the socket is not a bound one.
    pub fn start(
        listener: Arc<TcpListener>,
        tls: Option<Arc<ServerConfig>>,
        routes: Arc<dyn Routes>,
    ) -> std::io::Result<Self> {
        let live = Arc::new(ArcSwap::from_pointee(Live { routes, tls }));
        let (current, slots) = (live.clone(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        let door = Door::open(listener, move |stream, _, closing| {
            let (current, slots) = (current.clone(), slots.clone());
            async move {
                // An error means that the server is gone.
                let Ok(_slot) = slots.acquire().await else { return };
                connection(stream, closing, current).await;
            }
        })?;
        Ok(Self { door, live })
    }

    /// Other routes from the next request on, another certificate from the next connection on.
    pub fn reconfigure(&self, tls: Option<Arc<ServerConfig>>, routes: Arc<dyn Routes>) {
        self.live.store(Arc::new(Live { routes, tls }));
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.door.address()
    }

    /// Stops accepting, and waits for the answers under way, for a short time.
    pub async fn stop(self) {
        self.door.close();
        let _ = tokio::time::timeout(STOP_LIMIT, self.door.closed()).await;
    }
}

async fn connection(stream: TcpStream, closing: Closing, live: Arc<ArcSwap<Live>>) {
    let Some(config) = live.load().tls.clone() else { return serve(stream, closing, live).await };
    let handshake = tokio::time::timeout(HANDSHAKE_LIMIT, TlsAcceptor::from(config).accept(stream));
    match handshake.await {
        Ok(Ok(stream)) => serve(stream, closing, live).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut closing: Closing,
    live: Arc<ArcSwap<Live>>,
) {
    let service = service_fn(move |request: Request<_>| {
        let routes = live.load().routes.clone();
        std::future::ready(Ok::<_, Infallible>(answer(&*routes, &request)))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_LIMIT)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        result = connection.as_mut() => result,
        () = closing.wait() => {
            connection.as_mut().graceful_shutdown();
            end(connection).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// What is under way may end, within a limit.
async fn end<E>(connection: impl Future<Output = Result<(), E>>) -> Result<(), E> {
    tokio::time::timeout(STOP_LIMIT, connection).await.unwrap_or(Ok(()))
}

fn answer<B>(routes: &dyn Routes, request: &Request<B>) -> Response<Full<Bytes>> {
    let method = request.method();
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = respond(Reply::text(StatusCode::METHOD_NOT_ALLOWED));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    // The server leaves the body out of an answer to `HEAD`, and keeps its length.
    respond(routes.get(request.uri().path()).unwrap_or_else(|| Reply::text(StatusCode::NOT_FOUND)))
}

fn respond(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = reply.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    response
}
