//! Serves an axum service over TLS, with limits for clients.
//!
//! *Guaranteed*: connections, their handshakes and their headers are bounded in number, time and bytes. A stop
//! accepts no new connection, lets requests in flight finish within [`DRAIN_TIMEOUT`], and aborts the rest.
//!
//! *Not done*: limits on bodies; the service sets them, as it knows the content.

use std::{convert::Infallible, future::Future, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
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
/// The delay after a failed accept, such as with too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// A running server. It stops on [`WebhookServer::stop`] or when it is dropped.
#[derive(Debug)]
pub struct WebhookServer {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl WebhookServer {
    /// Starts to serve on a bound listener.
    pub fn start(listener: TcpListener, tls: Arc<ServerConfig>, router: Router) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept_connections(listener, TlsAcceptor::from(tls), router, stopped));
        Ok(Self { address, stop, task })
    }

    /// The local address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts no more connections, lets requests in flight finish within a time limit, and aborts the rest.
    pub async fn stop(self) {
        // Without a receiver the server has ended already.
        let _ = self.stop.send(true);
        let mut task = self.task;
        if timeout(DRAIN_TIMEOUT, &mut task).await.is_err() {
            task.abort();
        }
    }
}

async fn accept_connections(
    listener: TcpListener,
    tls: TlsAcceptor,
    router: Router,
    mut stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // A connection beyond the limit is closed at once.
                Ok(_) if connections.len() >= MAX_CONNECTIONS => tracing::debug!("connection closed: too many connections"),
                Ok((stream, _)) => drop(connections.spawn(serve_tls_connection(stream, tls.clone(), router.clone(), stopped.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve_tls_connection(stream: TcpStream, tls: TlsAcceptor, router: Router, mut stopped: watch::Receiver<bool>) {
    // Responses are written as a whole, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let handshake = tokio::select! {
        handshake = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)) => handshake,
        // A stop does not wait for clients that have not sent a request.
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    match handshake {
        Ok(Ok(stream)) => serve_http(stream, router, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake timed out"),
    }
}

async fn serve_http(stream: TlsStream<TcpStream>, router: Router, stopped: watch::Receiver<bool>) {
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
        run_until_stopped(connection, |connection| connection.graceful_shutdown(), stopped).await;
    } else {
        let mut builder = conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_READ_TIMEOUT)
            .max_buf_size(MAX_HEADER_BYTES as usize);
        let connection = builder.serve_connection(stream, service);
        run_until_stopped(connection, |connection| connection.graceful_shutdown(), stopped).await;
    }
}

async fn run_until_stopped<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    shut_down: impl Fn(Pin<&mut C>),
    mut stopped: watch::Receiver<bool>,
) {
    let mut connection = std::pin::pin!(connection);
    let stopping = tokio::select! {
        // A client that disconnects is not worth a log line.
        _ = connection.as_mut() => return,
        stopping = stopped.wait_for(|stopped| *stopped) => stopping.is_ok(),
    };
    // Without a sender the server itself is gone.
    if stopping {
        shut_down(connection.as_mut());
        let _ = connection.await;
    }
}
