//! Connections to the page, with limits on each client.
//!
//! *Guaranteed.* The number of connections is bounded, and so are the headers of a request in bytes and in
//! time. That time starts at the end of the previous response, so that idle connections end, too. After a stop
//! no connection is accepted, and responses in flight may complete for as long as the caller waits. *Not done.*
//! Limits on bodies, which are the handlers', and HTTP/2, which browsers speak over TLS only.

use std::{convert::Infallible, pin::pin, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tower_service::Service as _;

/// Delay after an error of `accept`, such as too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);
/// Size of all headers of a request. Filters are in the address, and can be long.
const MAX_HEADER_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct ServerLimits {
    /// Concurrent connections. A browser opens six, and a page with live updates holds one.
    pub(super) connections: usize,
    /// How long the headers of a request may take.
    pub(super) headers: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self { connections: 512, headers: Duration::from_secs(30) }
    }
}

/// Serves until `stopping` is signalled, and then until responses in flight have completed.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: ServerLimits,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // Connections beyond the limit are closed at once.
                Ok(_) if connections.len() >= bounds.connections => tracing::debug!("connection closed: too many connections"),
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, router.clone(), bounds, stopping.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = connections.join_next() => {}
            // An error means that the viewer was dropped, which is a stop, too.
            _ = stopping.changed() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve_connection(
    stream: TcpStream,
    router: Router,
    bounds: ServerLimits,
    mut stopping: watch::Receiver<bool>,
) {
    // Events are small, and delaying them saves nothing.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = router.clone().call(request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.headers).max_buf_size(MAX_HEADER_BYTES);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // Clients may disconnect at any time.
        _ = connection.as_mut() => return,
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// An upper bound for everything here, on any machine.
    const PATIENCE: Duration = Duration::from_secs(30);

    struct Served {
        at: std::net::SocketAddr,
        stopping: watch::Sender<bool>,
        task: tokio::task::JoinHandle<()>,
    }

    async fn served(bounds: ServerLimits) -> Served {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (stopping, stopped) = watch::channel(false);
        let router = Router::new().route("/", get(async || "here"));
        Served { at, stopping, task: tokio::spawn(serve(listener, router, bounds, stopped)) }
    }

    async fn rest(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        // A reset is an end, too.
        let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.expect("the connection ends");
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn headers_that_drip_and_connections_that_are_silent_end() {
        let served = served(ServerLimits { headers: Duration::from_millis(100), ..ServerLimits::default() }).await;
        let mut silent = TcpStream::connect(served.at).await.unwrap();
        let (mut reads, mut writes) = TcpStream::connect(served.at).await.unwrap().into_split();
        let drip = tokio::spawn(async move {
            let _ = writes.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").await;
            while writes.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let _ = tokio::time::timeout(PATIENCE, reads.read_to_end(&mut Vec::new())).await.expect("it ends");
        assert_eq!(rest(&mut silent).await, "");
        tokio::time::timeout(PATIENCE, drip).await.expect("nothing more is taken").unwrap();
    }

    #[tokio::test]
    async fn one_connection_too_many_is_closed_and_the_others_are_served() {
        let served = served(ServerLimits { connections: 1, ..ServerLimits::default() }).await;
        let mut first = TcpStream::connect(served.at).await.unwrap();
        let mut second = TcpStream::connect(served.at).await.unwrap();
        assert_eq!(rest(&mut second).await, "");
        first.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        assert!(rest(&mut first).await.ends_with("here"));
    }

    #[tokio::test]
    async fn a_stop_does_not_wait_for_those_who_ask_nothing() {
        let served = served(ServerLimits { headers: PATIENCE * 10, ..ServerLimits::default() }).await;
        let mut idle = TcpStream::connect(served.at).await.unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        idle.readable().await.unwrap();
        served.stopping.send_replace(true);
        tokio::time::timeout(PATIENCE, served.task).await.expect("it stops").unwrap();
        assert!(rest(&mut idle).await.ends_with("here"));
    }
}
