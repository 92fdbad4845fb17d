//! Serves an axum service over TLS, with limits for clients.
//!
//! *Guaranteed*: connections, their handshakes and their headers are bounded in number, time and bytes. A stop
//! accepts no new connection, lets requests in flight finish within `DRAIN_TIMEOUT`, and aborts the rest.
//!
//! *Not done*: limits on bodies; the service sets them, as it knows the content.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kubewake_runtime::{
    listener::{ConnectionListener, DropPolicy, FullPolicy, ListenerOptions, ShutdownSignal, serve_until_shutdown},
    tls,
};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::server::TlsStream;
use tower::Service as _;

/// An API server opens a few connections to a webhook, and a cluster has a few API servers.
const MAX_CONNECTIONS: usize = 256;
/// A client that takes longer for its handshake is dropped.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Real clients send their headers at once.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The limit for all headers of a request. An API server sends a few hundred bytes.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Concurrent calls on one connection: the default of a Go server.
const MAX_STREAMS_PER_CONNECTION: u32 = 250;
/// The flow control window of a connection; 64 MiB with [`MAX_CONNECTIONS`] of them. hyper's default is four
/// times as large.
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// The time after which a silent client is pinged.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
/// No call takes longer than the two seconds that the API server waits.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(3);

/// A running server. It stops on [`WebhookServer::stop`] or when it is dropped.
#[derive(Debug)]
pub struct WebhookServer(ConnectionListener);

impl WebhookServer {
    /// Starts to serve on a bound listener.
    pub fn start(listener: TcpListener, tls: Arc<ServerConfig>, router: Router) -> io::Result<Self> {
        let options = ListenerOptions {
            max_connections: MAX_CONNECTIONS,
            when_full: FullPolicy::Close,
            when_dropped: DropPolicy::Abort,
        };
        let listener = ConnectionListener::start(Arc::new(listener), options, move |stream, peer, closing| {
            serve_tls_connection(stream, peer, Arc::clone(&tls), router.clone(), closing)
        });
        listener.map(Self)
    }

    /// The local address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Accepts no more connections, lets requests in flight finish within a time limit, and aborts the rest.
    pub async fn stop(self) {
        self.0.drain(DRAIN_TIMEOUT).await;
    }
}

async fn serve_tls_connection(
    stream: TcpStream,
    peer: SocketAddr,
    config: Arc<ServerConfig>,
    router: Router,
    mut closing: ShutdownSignal,
) {
    let accepted = tokio::select! {
        accepted = tls::accept(stream, peer, config, HANDSHAKE_TIMEOUT) => accepted,
        // A stop does not wait for clients that have not sent a request.
        () = closing.wait() => return,
    };
    if let Some(stream) = accepted {
        serve_http(stream, router, closing).await;
    }
}

async fn serve_http(stream: TlsStream<TcpStream>, router: Router, mut closing: ShutdownSignal) {
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = router.clone().call(request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let stream = TokioIo::new(stream);
    if http2 {
        let mut builder = conn::http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
            .max_header_list_size(MAX_HEADER_BYTES);
        builder
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .initial_stream_window_size(CONNECTION_WINDOW_BYTES);
        builder.keep_alive_interval(KEEP_ALIVE_INTERVAL).keep_alive_timeout(KEEP_ALIVE_INTERVAL);
        let connection = builder.serve_connection(stream, service);
        // A client that disconnects is not worth a log line.
        let _ = serve_until_shutdown(connection, |connection| connection.graceful_shutdown(), &mut closing).await;
    } else {
        let mut builder = conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_READ_TIMEOUT)
            .max_buf_size(MAX_HEADER_BYTES as usize);
        let connection = builder.serve_connection(stream, service);
        // A client that disconnects is not worth a log line.
        let _ = serve_until_shutdown(connection, |connection| connection.graceful_shutdown(), &mut closing).await;
    }
}
