//! One HTTP/1.1 or HTTP/2 connection of the `opencensus` receiver.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use arc_swap::ArcSwap;
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use kubewake_config::model::{GrpcServer, OpenCensusReceiver};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{json, stream};
use crate::{
    net::listener::ShutdownSignal,
    receiver::{
        connection_activity::{CloseReason, ConnectionActivity},
        grpc_calls::is_grpc,
        protocol_server::{AcceptedConnection, ActiveSettings, HANDSHAKE_TIMEOUT},
        submitter::{RequestSubmitter, SenderPeer},
    },
};

/// HTTP/2 window of one stream: bytes that it may send before they are read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// HTTP/2 window of a connection, for all its streams together.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;
/// Concurrent streams of one connection when the settings name no number. A program has one; each stream keeps
/// the node and resource that it sent first.
const DEFAULT_MAX_STREAMS: u32 = 100;
/// Approximate limit of a request's headers.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// Limit of the time to send headers, and of the idle time between requests, for HTTP/1.1 clients.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);

/// State that the calls of a connection share.
pub(super) struct OpenCensusConnection {
    pub(super) peer: SenderPeer,
    pub(super) active: Arc<ArcSwap<ActiveSettings<OpenCensusReceiver>>>,
    pub(super) submitter: Arc<RequestSubmitter>,
    /// Streams that wait for memory or room. Data that they do not read holds up other streams.
    pub(super) paused_streams: AtomicUsize,
}

pub(super) async fn serve_connection(
    wire: AcceptedConnection,
    live: Arc<ArcSwap<ActiveSettings<OpenCensusReceiver>>>,
    taker: Arc<RequestSubmitter>,
    closing: ShutdownSignal,
) {
    let served = |peer| OpenCensusConnection {
        peer: taker.sender_peer(peer),
        active: live,
        submitter: taker,
        paused_streams: AtomicUsize::new(0),
    };
    match wire {
        AcceptedConnection::Plain(stream, peer) => {
            // The client speaks first and at once. A silent one would hold a connection for nothing.
            let spoke = tokio::time::timeout(HANDSHAKE_TIMEOUT, stream.peek(&mut [0])).await;
            if matches!(spoke, Ok(Ok(1))) {
                serve_http(stream, served(peer), closing).await;
            }
        }
        AcceptedConnection::Tls(stream, peer) => serve_http(*stream, served(peer), closing).await,
    }
}

pub(super) async fn serve_http(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    served: OpenCensusConnection,
    mut closing: ShutdownSignal,
) {
    let settings = served.active.load().settings.server.clone();
    let served = Arc::new(served);
    let activity = Arc::new(ConnectionActivity::default());
    let busy = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let served = served.clone();
        let busy = busy.begin_call();
        async move {
            Ok::<_, Infallible>(if is_grpc(request.headers()) {
                stream::handle(request, &served, busy).await
            } else {
                json::handle(request, &served).await
            })
        }
    });
    let builder = builder(&settings);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let why = tokio::select! {
        _ = connection.as_mut() => return,
        () = closing.wait() => CloseReason::Shutdown,
        () = activity.wait_for_expiry(&settings.keepalive) => CloseReason::Expired,
    };
    connection.as_mut().graceful_shutdown();
    activity.announce_close(why);
    let grace = settings.keepalive.max_connection_age_grace.unwrap_or(Duration::MAX);
    let _ = tokio::time::timeout(grace, connection).await;
}

fn builder(settings: &GrpcServer) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).max_buf_size(MAX_HEADER_BYTES).header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(settings.max_concurrent_streams.unwrap_or(DEFAULT_MAX_STREAMS))
        // Streams are idle for long; only a ping detects a peer that is gone.
        .keep_alive_interval(settings.keepalive.time.or(Some(HEADER_TIMEOUT)))
        .keep_alive_timeout(settings.keepalive.timeout.unwrap_or(Duration::from_secs(20)));
    builder
}
