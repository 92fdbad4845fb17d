//! OTLP over HTTP/1.1 and HTTP/2.

mod request;

use std::{convert::Infallible, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use hyper::{Request, body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kubewake_config::model::HttpServer;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    net::listener::ShutdownSignal,
    receiver::{
        body_timeout::TimerPool,
        protocol_server::{AcceptedConnection, ActiveSettings},
        submitter::{RequestSubmitter, SenderPeer},
    },
};

/// Approximate limit of a request's headers; larger ones get status 431. (hyper rounds it up to its buffers.)
const MAX_HEADER_BYTES: usize = 64 << 10;
/// HTTP/2 window of one request: bytes that it may send before they are read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// HTTP/2 window of a connection, for all its requests together.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;

/// State that the requests of a connection share.
struct HttpConnection {
    peer: SenderPeer,
    active: Arc<ArcSwap<ActiveSettings<HttpServer>>>,
    submitter: Arc<RequestSubmitter>,
    timers: TimerPool,
}

pub(super) async fn serve_connection(
    wire: AcceptedConnection,
    live: Arc<ArcSwap<ActiveSettings<HttpServer>>>,
    taker: Arc<RequestSubmitter>,
    closing: ShutdownSignal,
) {
    let context = |peer| HttpConnection {
        peer: taker.sender_peer(peer),
        active: live,
        submitter: taker,
        timers: TimerPool::default(),
    };
    match wire {
        AcceptedConnection::Plain(stream, peer) => serve_http1(stream, context(peer), closing).await,
        AcceptedConnection::Tls(stream, peer) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
            serve_http2(*stream, context(peer), closing).await;
        }
        AcceptedConnection::Tls(stream, peer) => serve_http1(*stream, context(peer), closing).await,
    }
}

async fn serve_http1(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    context: HttpConnection,
    mut closing: ShutdownSignal,
) {
    let settings = context.active.load().settings.clone();
    let context = Arc::new(context);
    let service = service_fn(move |request: Request<Incoming>| {
        let context = context.clone();
        async move {
            let live = context.active.load_full();
            Ok::<_, Infallible>(request::handle(request, &context, &live).await)
        }
    });
    let connection = conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .max_buf_size(MAX_HEADER_BYTES)
        // Between two requests the connection waits for a header, so that this is the idle limit too.
        .header_read_timeout(idle_limit(&settings))
        .keep_alive(settings.keep_alives_enabled)
        .serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = closing.wait() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn serve_http2(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    context: HttpConnection,
    mut closing: ShutdownSignal,
) {
    let context = Arc::new(context);
    let service = service_fn(move |request: Request<Incoming>| {
        let context = context.clone();
        async move {
            let live = context.active.load_full();
            Ok::<_, Infallible>(request::handle(request, &context, &live).await)
        }
    });
    let connection = conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .keep_alive_interval(Duration::from_secs(60))
        .serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = closing.wait() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

fn idle_limit(settings: &HttpServer) -> Option<Duration> {
    match (settings.read_header_timeout, settings.idle_timeout) {
        (Some(header), Some(idle)) => Some(header.max(idle)),
        (header, idle) => header.or(idle),
    }
}

#[cfg(test)]
mod tests;
