//! OTLP/gRPC on bare HTTP/2: a unary call is a prefix of five bytes and a body.

mod call;
mod health;
mod message;

#[cfg(feature = "fuzzing")]
pub(crate) use message::read_arrived;

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use hyper::{Request, body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use kubewake_config::model::GrpcServer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
};

use crate::{
    net::{listener::ShutdownSignal, local_executor::LocalExecutor, poll_on_wake::PollOnWake},
    receiver::{
        body_timeout::TimerPool,
        connection_activity::{CloseReason, ConnectionActivity},
        protocol_server::{AcceptedConnection, ActiveSettings, HANDSHAKE_TIMEOUT},
        submitter::{RequestSubmitter, SenderPeer},
    },
};

/// HTTP/2 window of one call: bytes that it may send before they are read.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// HTTP/2 window of a connection, for all its calls together. It bounds the memory that a connection can use
/// beyond the memory budget.
const CONNECTION_WINDOW_BYTES: u32 = 2 << 20;
/// Frame size limit. Most requests fit in one frame, and can stay in the buffer they were read into. HTTP/2
/// holds a frame outside of the memory budget until it is complete, so that the limit must not be much larger.
const MAX_FRAME_BYTES: u32 = 128 << 10;
/// Concurrent calls of one connection when the settings name no number.
const DEFAULT_MAX_STREAMS: u32 = 1000;

/// State that the calls of a connection share.
struct GrpcConnection {
    peer: SenderPeer,
    active: Arc<ArcSwap<ActiveSettings<GrpcServer>>>,
    submitter: Arc<RequestSubmitter>,
    timers: TimerPool,
    /// `Watch` calls of the connection. Each lasts as long as its client likes and is charged to no budget.
    watches: Arc<Semaphore>,
}

/// Limit of `Watch` calls of one connection. A client watches one service, or each of the three.
const MAX_WATCHES_PER_CONNECTION: usize = 8;

pub(super) async fn serve_connection(
    wire: AcceptedConnection,
    live: Arc<ArcSwap<ActiveSettings<GrpcServer>>>,
    taker: Arc<RequestSubmitter>,
    closing: ShutdownSignal,
) {
    match wire {
        AcceptedConnection::Plain(stream, peer) => {
            // An HTTP/2 client speaks first and at once. A silent one would hold a connection for nothing.
            let spoke = tokio::time::timeout(HANDSHAKE_TIMEOUT, stream.peek(&mut [0])).await;
            if matches!(spoke, Ok(Ok(1))) {
                serve_http2(stream, taker.sender_peer(peer), live, taker, closing).await;
            }
        }
        AcceptedConnection::Tls(stream, peer) => {
            serve_http2(*stream, taker.sender_peer(peer), live, taker, closing).await
        }
    }
}

async fn serve_http2<I>(
    io: I,
    peer: SenderPeer,
    live: Arc<ArcSwap<ActiveSettings<GrpcServer>>>,
    taker: Arc<RequestSubmitter>,
    mut closing: ShutdownSignal,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let settings = live.load().settings.clone();
    let activity = Arc::new(ConnectionActivity::default());
    let served = Arc::new(GrpcConnection {
        peer,
        active: live,
        submitter: taker,
        timers: TimerPool::default(),
        watches: Arc::new(Semaphore::new(MAX_WATCHES_PER_CONNECTION)),
    });
    let busy = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        // Boxed at creation: the future is large, and hyper moves it several times before it is polled.
        Box::pin(call::handle(head, body, served.clone(), busy.begin_call()))
    });
    let streams = LocalExecutor::default();
    let connection = builder(&settings, streams.clone()).serve_connection(TokioIo::new(io), service);
    let mut connection = streams.run(connection);
    let keepalive = settings.keepalive.clone();
    let watched = activity.clone();
    let end = PollOnWake::new(async move {
        tokio::select! {
            () = closing.wait() => CloseReason::Shutdown,
            () = watched.wait_for_expiry(&keepalive) => CloseReason::Expired,
        }
    });
    let why = tokio::select! {
        biased;
        _ = &mut connection => return,
        why = end => why,
    };
    // GOAWAY: calls under way end, new ones go elsewhere.
    connection.connection().graceful_shutdown();
    activity.announce_close(why);
    let grace = settings.keepalive.max_connection_age_grace.unwrap_or(Duration::MAX);
    let _ = tokio::time::timeout(grace, connection).await;
}

fn builder(settings: &GrpcServer, streams: LocalExecutor) -> http2::Builder<LocalExecutor> {
    let mut builder = http2::Builder::new(streams);
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(MAX_FRAME_BYTES)
        // gRPC has no use for this header, which would be in every response.
        .auto_date_header(false)
        .max_concurrent_streams(settings.max_concurrent_streams.unwrap_or(DEFAULT_MAX_STREAMS))
        // Without an interval, TCP keepalive detects peers that are gone, at no cost for each request.
        .keep_alive_interval(settings.keepalive.time)
        // gRPC's default.
        .keep_alive_timeout(settings.keepalive.timeout.unwrap_or(Duration::from_secs(20)));
    builder
}

#[cfg(test)]
mod tests;
