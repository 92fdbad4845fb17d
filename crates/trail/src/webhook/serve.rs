//! An axum service over TLS, with limits for whoever connects.
//!
//! *Guaranteed*: connections, their handshakes and their headers are bounded in number, time and bytes. A stop takes no new connection, lets requests under way end
//! within [`DRAIN`], and ends the rest.
//!
//! *Not done*: limits on bodies, which are the service's; it knows what is in them.

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

/// An API server has a few connections to a webhook, and a cluster a few API servers.
const CONNECTIONS: usize = 256;
/// A client that is slower than this to shake hands is none.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Headers come in one go from every real client.
const HEADERS: Duration = Duration::from_secs(5);
/// All headers of a request. An API server sends a few hundred bytes.
const HEADER_BYTES: u32 = 16 << 10;
/// Calls at the same time on one connection: as many as a Go server takes.
const STREAMS: u32 = 250;
/// What a connection may send before anybody reads it; with [`CONNECTIONS`] of them 64 MiB. hyper's own choice is four times as much.
const WINDOW: u32 = 256 << 10;
/// A client that has gone without a word is missed after this time.
const PING: Duration = Duration::from_secs(30);
/// No call takes longer than the two seconds that the API server waits.
const DRAIN: Duration = Duration::from_secs(3);
/// After an error of accept, such as too many open files, a moment to recover.
const PAUSE: Duration = Duration::from_millis(50);

/// A listening server. It stops when it is told to or dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Begins to serve on a socket that is bound already.
    pub fn start(listener: TcpListener, tls: Arc<ServerConfig>, router: Router) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(accept(listener, TlsAcceptor::from(tls), router, stopped));
        Ok(Self { address, stop, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, lets requests under way end within a limit, and ends the rest.
    pub async fn stop(self) {
        // Without a receiver it has ended already.
        let _ = self.stop.send(true);
        let mut task = self.task;
        if timeout(DRAIN, &mut task).await.is_err() {
            task.abort();
        }
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, router: Router, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // One too many is closed at once.
                Ok(_) if connections.len() >= CONNECTIONS => tracing::debug!("too many connections"),
                Ok((stream, _)) => drop(connections.spawn(connect(stream, tls.clone(), router.clone(), stopped.clone()))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
            _ = stopped.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn connect(stream: TcpStream, tls: TlsAcceptor, router: Router, mut stopped: watch::Receiver<bool>) {
    // Answers are written whole, so that waiting for more only delays them.
    let _ = stream.set_nodelay(true);
    let handshake = tokio::select! {
        handshake = timeout(HANDSHAKE, tls.accept(stream)) => handshake,
        // Who has asked for nothing yet is not waited for.
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    match handshake {
        Ok(Ok(stream)) => serve(stream, router, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

async fn serve(stream: TlsStream<TcpStream>, router: Router, stopped: watch::Receiver<bool>) {
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = router.clone().call(request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let stream = TokioIo::new(stream);
    if http2 {
        let mut builder = conn::http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).max_concurrent_streams(STREAMS).max_header_list_size(HEADER_BYTES);
        builder.initial_connection_window_size(WINDOW).initial_stream_window_size(WINDOW);
        builder.keep_alive_interval(PING).keep_alive_timeout(PING);
        let connection = builder.serve_connection(stream, service);
        run(connection, |connection| connection.graceful_shutdown(), stopped).await;
    } else {
        let mut builder = conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEADERS).max_buf_size(HEADER_BYTES as usize);
        let connection = builder.serve_connection(stream, service);
        run(connection, |connection| connection.graceful_shutdown(), stopped).await;
    }
}

async fn run<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    shut_down: impl Fn(Pin<&mut C>),
    mut stopped: watch::Receiver<bool>,
) {
    let mut connection = std::pin::pin!(connection);
    let stopping = tokio::select! {
        // A client that goes away is no event.
        _ = connection.as_mut() => return,
        stopping = stopped.wait_for(|stopped| *stopped) => stopping.is_ok(),
    };
    // If the server itself is gone, so is everything that would answer.
    if stopping {
        shut_down(connection.as_mut());
        let _ = connection.await;
    }
}
