//! OTLP/HTTP.

mod request;

use std::{convert::Infallible, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use hyper::{Request, body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kubewake_config::model::HttpServer;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{
    net::listen::Closing,
    receiver::{
        intake::{Peer, Taker},
        port::{Live, Wire},
        timers::Timers,
    },
};

/// About how much headers may take; what is well beyond it is answered with 431. (hyper rounds it up to its buffers.)
const MAX_HEADERS: usize = 64 << 10;
/// What one HTTP/2 request may send ahead of our reading it.
const STREAM_WINDOW: u32 = 1 << 20;
/// What all requests of an HTTP/2 connection may send ahead.
const CONNECTION_WINDOW: u32 = 2 << 20;

/// What the requests of a connection share.
struct Context {
    peer: Peer,
    live: Arc<ArcSwap<Live<HttpServer>>>,
    taker: Arc<Taker>,
    timers: Timers,
}

pub(super) async fn connection(wire: Wire, live: Arc<ArcSwap<Live<HttpServer>>>, taker: Arc<Taker>, closing: Closing) {
    let context = |peer| Context { peer: taker.peer(peer), live, taker, timers: Timers::default() };
    match wire {
        Wire::Plain(stream, peer) => serve_http1(stream, context(peer), closing).await,
        Wire::Tls(stream, peer) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
            serve_http2(*stream, context(peer), closing).await;
        }
        Wire::Tls(stream, peer) => serve_http1(*stream, context(peer), closing).await,
    }
}

async fn serve_http1(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, context: Context, mut closing: Closing) {
    let settings = context.live.load().settings.clone();
    let context = Arc::new(context);
    let service = service_fn(move |request: Request<Incoming>| {
        let context = context.clone();
        async move {
            let live = context.live.load_full();
            Ok::<_, Infallible>(request::handle(request, &context, &live).await)
        }
    });
    let connection = conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .max_buf_size(MAX_HEADERS)
        // Between two requests a connection waits for a header, so that this is the idle limit too.
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

async fn serve_http2(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, context: Context, mut closing: Closing) {
    let context = Arc::new(context);
    let service = service_fn(move |request: Request<Incoming>| {
        let context = context.clone();
        async move {
            let live = context.live.load_full();
            Ok::<_, Infallible>(request::handle(request, &context, &live).await)
        }
    });
    let connection = conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
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
