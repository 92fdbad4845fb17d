//! A connection, of HTTP/1.1 or HTTP/2.

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
    net::listen::Closing,
    receiver::{
        activity::{Activity, End},
        calls::is_grpc,
        intake::{Peer, Taker},
        port::{HANDSHAKE_LIMIT, Live, Wire},
    },
};

/// What one stream may send ahead of our reading it.
const STREAM_WINDOW: u32 = 1 << 20;
/// What all streams of a connection together may send ahead.
const CONNECTION_WINDOW: u32 = 2 << 20;
/// Streams of one connection at the same time when the settings name no number. A program has one, and a stream keeps
/// what it said of its sender.
const DEFAULT_STREAMS: u32 = 100;
/// About how much headers may take.
const MAX_HEADERS: usize = 64 << 10;
/// How long an HTTP/1.1 client may take to send headers, and be idle between requests.
const HEADER_LIMIT: Duration = Duration::from_secs(60);

/// What the calls of a connection share.
pub(super) struct Served {
    pub(super) peer: Peer,
    pub(super) live: Arc<ArcSwap<Live<OpenCensusReceiver>>>,
    pub(super) taker: Arc<Taker>,
    /// Streams that wait for memory or room. What they do not read holds up the other streams of the connection.
    pub(super) waiting: AtomicUsize,
}

pub(super) async fn serve(
    wire: Wire,
    live: Arc<ArcSwap<Live<OpenCensusReceiver>>>,
    taker: Arc<Taker>,
    closing: Closing,
) {
    let served = |peer| Served { peer: taker.peer(peer), live, taker, waiting: AtomicUsize::new(0) };
    match wire {
        Wire::Plain(stream, peer) => {
            // A client speaks first and at once. One that does not would hold a connection for nothing.
            let spoke = tokio::time::timeout(HANDSHAKE_LIMIT, stream.peek(&mut [0])).await;
            if matches!(spoke, Ok(Ok(1))) {
                run(stream, served(peer), closing).await;
            }
        }
        Wire::Tls(stream, peer) => run(*stream, served(peer), closing).await,
    }
}

pub(super) async fn run(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    served: Served,
    mut closing: Closing,
) {
    let settings = served.live.load().settings.server.clone();
    let (served, activity) = (Arc::new(served), Arc::new(Activity::default()));
    let busy = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (served, busy) = (served.clone(), busy.begin());
        async move {
            Ok::<_, Infallible>(match is_grpc(request.headers()) {
                true => stream::handle(request, &served, busy).await,
                false => json::handle(request, &served).await,
            })
        }
    });
    let builder = builder(&settings);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let why = tokio::select! {
        _ = connection.as_mut() => return,
        () = closing.wait() => End::Closing,
        () = activity.lifetime(&settings.keepalive) => End::Expired,
    };
    connection.as_mut().graceful_shutdown();
    activity.end(why);
    let grace = settings.keepalive.max_connection_age_grace.unwrap_or(Duration::MAX);
    let _ = tokio::time::timeout(grace, connection).await;
}

fn builder(settings: &GrpcServer) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).max_buf_size(MAX_HEADERS).header_read_timeout(HEADER_LIMIT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(settings.max_concurrent_streams.unwrap_or(DEFAULT_STREAMS))
        // Streams are idle for long; without a ping nobody would find out about a peer that is gone.
        .keep_alive_interval(settings.keepalive.time.or(Some(HEADER_LIMIT)))
        .keep_alive_timeout(settings.keepalive.timeout.unwrap_or(Duration::from_secs(20)));
    builder
}
