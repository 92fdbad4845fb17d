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
    net::{in_task::InTask, listen::Closing, rarely::Rarely},
    receiver::{
        activity::{Activity, End},
        intake::{Peer, Taker},
        port::{HANDSHAKE_LIMIT, Live, Wire},
        timers::Timers,
    },
};

/// What one call may send ahead of our reading it.
const STREAM_WINDOW: u32 = 1 << 20;
/// What all calls of a connection together may send ahead. It bounds what a connection can make us hold beyond the
/// memory budget.
const CONNECTION_WINDOW: u32 = 2 << 20;
/// Frames of up to this size: most requests are one frame then, and can stay where they were read. HTTP/2 holds a frame
/// outside of the memory budget until it is complete, so that it must not be much larger.
const MAX_FRAME: u32 = 128 << 10;
/// Calls of one connection at the same time when the settings name no number.
const DEFAULT_STREAMS: u32 = 1000;

/// What the calls of a connection share.
struct Served {
    peer: Peer,
    live: Arc<ArcSwap<Live<GrpcServer>>>,
    taker: Arc<Taker>,
    timers: Timers,
    /// `Watch` calls of the connection: each lasts as long as its client likes, in no budget.
    watches: Arc<Semaphore>,
}

/// `Watch` calls of one connection. A client watches one service, or each of the three.
const MAX_WATCHES_PER_CONNECTION: usize = 8;

pub(super) async fn connection(wire: Wire, live: Arc<ArcSwap<Live<GrpcServer>>>, taker: Arc<Taker>, closing: Closing) {
    match wire {
        Wire::Plain(stream, peer) => {
            // A client of HTTP/2 speaks first and at once. One that does not would hold a connection for nothing.
            let spoke = tokio::time::timeout(HANDSHAKE_LIMIT, stream.peek(&mut [0])).await;
            if matches!(spoke, Ok(Ok(1))) {
                serve(stream, taker.peer(peer), live, taker, closing).await;
            }
        }
        Wire::Tls(stream, peer) => serve(*stream, taker.peer(peer), live, taker, closing).await,
    }
}

async fn serve<I>(io: I, peer: Peer, live: Arc<ArcSwap<Live<GrpcServer>>>, taker: Arc<Taker>, mut closing: Closing)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let settings = live.load().settings.clone();
    let activity = Arc::new(Activity::default());
    let served = Arc::new(Served {
        peer,
        live,
        taker,
        timers: Timers::default(),
        watches: Arc::new(Semaphore::new(MAX_WATCHES_PER_CONNECTION)),
    });
    let busy = activity.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let (head, body) = request.into_parts();
        // Boxed where it is made: it is large, and hyper moves it several times before it is polled.
        Box::pin(call::handle(head, body, served.clone(), busy.begin()))
    });
    let streams = InTask::default();
    let connection = builder(&settings, streams.clone()).serve_connection(TokioIo::new(io), service);
    let mut connection = streams.run(connection);
    let (keepalive, watched) = (settings.keepalive.clone(), activity.clone());
    let end = Rarely::new(async move {
        tokio::select! {
            () = closing.wait() => End::Closing,
            () = watched.lifetime(&keepalive) => End::Expired,
        }
    });
    let why = tokio::select! {
        biased;
        _ = &mut connection => return,
        why = end => why,
    };
    // GOAWAY: calls under way end, new ones go elsewhere.
    connection.connection().graceful_shutdown();
    activity.end(why);
    let grace = settings.keepalive.max_connection_age_grace.unwrap_or(Duration::MAX);
    let _ = tokio::time::timeout(grace, connection).await;
}

fn builder(settings: &GrpcServer, streams: InTask) -> http2::Builder<InTask> {
    let mut builder = http2::Builder::new(streams);
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME)
        // A header that gRPC has no use for, in every answer.
        .auto_date_header(false)
        .max_concurrent_streams(settings.max_concurrent_streams.unwrap_or(DEFAULT_STREAMS))
        // Without it TCP's own keepalive finds out about peers that are gone, at no cost for each request.
        .keep_alive_interval(settings.keepalive.time)
        // gRPC's default.
        .keep_alive_timeout(settings.keepalive.timeout.unwrap_or(Duration::from_secs(20)));
    builder
}

#[cfg(test)]
mod tests;
