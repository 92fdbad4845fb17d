//! Connections to the page, with limits on each client.
//!
//! *Guaranteed.* The number of connections is bounded, and so are the headers of a request in bytes and in
//! time. That time starts at the end of the previous response, so that idle connections end, too. After a stop
//! no connection is accepted, and responses in flight may complete for as long as the caller waits. *Not done.*
//! Limits on bodies, which are the handlers', and HTTP/2, which browsers speak over TLS only.

use std::{convert::Infallible, io, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kubewake_runtime::listener::{
    ConnectionListener, DropPolicy, FullPolicy, ListenerOptions, ShutdownSignal, serve_until_shutdown,
};
use tokio::net::{TcpListener, TcpStream};
use tower_service::Service as _;

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

/// Starts to serve on a bound socket. When the listener is dropped, its connections end at once.
pub(super) fn start(listener: TcpListener, router: Router, bounds: ServerLimits) -> io::Result<ConnectionListener> {
    let options = ListenerOptions {
        max_connections: bounds.connections,
        when_full: FullPolicy::Close,
        when_dropped: DropPolicy::Abort,
    };
    ConnectionListener::start(Arc::new(listener), options, move |stream, _, closing| {
        serve_connection(stream, router.clone(), bounds, closing)
    })
}

async fn serve_connection(stream: TcpStream, router: Router, bounds: ServerLimits, mut closing: ShutdownSignal) {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = router.clone().call(request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await.unwrap_or_else(|never| match never {})) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(bounds.headers).max_buf_size(MAX_HEADER_BYTES);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    // Clients may disconnect at any time.
    let _ = serve_until_shutdown(connection, |connection| connection.graceful_shutdown(), &mut closing).await;
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// An upper bound for everything here, on any machine.
    const TIME_LIMIT: Duration = Duration::from_secs(30);

    async fn served(bounds: ServerLimits) -> ConnectionListener {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        start(listener, Router::new().route("/", get(async || "here")), bounds).unwrap()
    }

    async fn rest(stream: &mut TcpStream) -> String {
        let mut answer = Vec::new();
        // A reset is an end, too.
        let _ = tokio::time::timeout(TIME_LIMIT, stream.read_to_end(&mut answer)).await.expect("the connection ends");
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn headers_that_drip_and_connections_that_are_silent_end() {
        let served = served(ServerLimits { headers: Duration::from_millis(100), ..ServerLimits::default() }).await;
        let mut silent = TcpStream::connect(served.address()).await.unwrap();
        let (mut reads, mut writes) = TcpStream::connect(served.address()).await.unwrap().into_split();
        let drip = tokio::spawn(async move {
            let _ = writes.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").await;
            while writes.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let _ = tokio::time::timeout(TIME_LIMIT, reads.read_to_end(&mut Vec::new())).await.expect("it ends");
        assert_eq!(rest(&mut silent).await, "");
        tokio::time::timeout(TIME_LIMIT, drip).await.expect("nothing more is taken").unwrap();
    }

    #[tokio::test]
    async fn one_connection_too_many_is_closed_and_the_others_are_served() {
        let served = served(ServerLimits { connections: 1, ..ServerLimits::default() }).await;
        let mut first = TcpStream::connect(served.address()).await.unwrap();
        let mut second = TcpStream::connect(served.address()).await.unwrap();
        assert_eq!(rest(&mut second).await, "");
        first.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        assert!(rest(&mut first).await.ends_with("here"));
    }

    #[tokio::test]
    async fn a_stop_does_not_wait_for_those_who_ask_nothing() {
        let served = served(ServerLimits { headers: TIME_LIMIT * 10, ..ServerLimits::default() }).await;
        let mut idle = TcpStream::connect(served.address()).await.unwrap();
        idle.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        idle.readable().await.unwrap();
        served.shutdown();
        tokio::time::timeout(TIME_LIMIT, served.wait_closed()).await.expect("it stops");
        assert!(rest(&mut idle).await.ends_with("here"));
    }
}
