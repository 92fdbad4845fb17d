//! `kubewake sink`: receives and counts OTLP, and misbehaves on request.
//!
//! gRPC, HTTP and the control API share one port: `GET /stats`, `GET /missing`, `GET /traces`, `POST /mode`,
//! `POST /reset`. An item counts as received if and only if its request was acknowledged.

mod control;
mod counters;
mod decompress;
mod items;
pub(crate) mod mode;
mod receive;
pub(crate) mod response;
mod seen_items;

use std::{
    convert::Infallible,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use self::{
    counters::SinkCounters,
    mode::{FailureCode, SinkMode},
    response::SinkResponseBody,
};

/// Arguments of `kubewake sink`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake sink --listen 127.0.0.1:14317
  kubewake sink --listen 127.0.0.1:0 --fail-share 0.3 --fail-code UNAVAILABLE --retry-after 100ms
  curl -X POST 'http://127.0.0.1:14317/mode?hang=true'; curl http://127.0.0.1:14317/stats
  curl 'http://127.0.0.1:14317/missing?seed=1&count=1000'   # after kubewake load --seed 1

Endpoints on the same port: GET /stats, GET /traces, GET /missing?seed=N&count=N[&first=N] (which items have not arrived), POST /missing \
(with the lines that load --acked-file writes), GET /mode, POST /mode?FIELD=VALUE, POST /reset.")]
pub(crate) struct SinkArgs {
    /// Address to listen on, for gRPC and HTTP
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:14317")]
    listen: SocketAddr,
    /// Delay of each response: 50ms, 2s
    #[arg(long, value_name = "DURATION", value_parser = mode::parse_duration, default_value = "0ms")]
    delay: Duration,
    /// Share of requests that fail, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = mode::parse_share)]
    fail_share: f64,
    /// Status of failures: the name of a gRPC code, or an HTTP status
    #[arg(long, value_name = "CODE", default_value = "UNAVAILABLE")]
    fail_code: FailureCode,
    /// Retry delay in failures: 100ms, 2s
    #[arg(long, value_name = "DURATION", value_parser = mode::parse_duration)]
    retry_after: Option<Duration>,
    /// Neither read nor answer requests until POST /mode?hang=false
    #[arg(long)]
    hang: bool,
    /// Refuse all requests permanently, as malformed
    #[arg(long, conflicts_with_all = ["fail_share", "fail_code"])]
    refuse: bool,
    /// Respond with a partial success that rejects this number of items
    #[arg(long, value_name = "N", default_value_t = 0)]
    reject_items: u64,
    /// Append each request to this file: a byte for the signal (t, m, l), the length (u32, big endian), the protobuf
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Count the items per trace, for GET /traces
    #[arg(long)]
    traces: bool,
}

/// Messages of tens of megabytes should not wait for window updates in the middle.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Room for several such streams.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Large frames mean few of them.
const MAX_FRAME_BYTES: u32 = 1 << 20;

/// What all connections share.
#[derive(Debug)]
struct SinkServer {
    counters: SinkCounters,
    mode: watch::Sender<SinkMode>,
    connections_open: AtomicU64,
    connections_total: AtomicU64,
    /// Requests that hang right now.
    hanging: AtomicU64,
}

/// Receives until SIGTERM or Ctrl-C.
pub(crate) async fn run(args: SinkArgs) -> anyhow::Result<()> {
    let listener =
        TcpListener::bind(args.listen).await.with_context(|| format!("failed to listen on {}", args.listen))?;
    let sink = Arc::new(SinkServer::new(&args)?);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    println!("ready sink on {}", listener.local_addr()?);
    tokio::select! {
        () = accept(listener, &sink) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    sink.counters.flush().context("failed to write the received requests")
}

async fn accept(listener: TcpListener, sink: &Arc<SinkServer>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(sink)));
            }
            // Too many open files, or the peer has disconnected: the next connection may succeed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, sink: Arc<SinkServer>) {
    sink.connections_total.fetch_add(1, Ordering::Relaxed);
    sink.connections_open.fetch_add(1, Ordering::Relaxed);
    // Without the option responses are delayed, but arrive.
    let _ = stream.set_nodelay(true);
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http2()
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(MAX_FRAME_BYTES);
    let service = service_fn(|request| handle_request(Arc::clone(&sink), request));
    // The sender reports a broken connection.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
    sink.connections_open.fetch_sub(1, Ordering::Relaxed);
}

async fn handle_request(
    sink: Arc<SinkServer>,
    request: Request<Incoming>,
) -> Result<Response<SinkResponseBody>, Infallible> {
    Ok(match receive::ExportCall::from_request(&request) {
        Some(call) => receive::receive(&sink, call, request).await,
        None => control::handle_control_request(&sink, request).await,
    })
}

impl SinkServer {
    fn new(args: &SinkArgs) -> anyhow::Result<Self> {
        Ok(Self {
            counters: SinkCounters::new(args.out.as_deref(), args.traces)?,
            mode: watch::Sender::new(args.initial_mode()),
            connections_open: AtomicU64::new(0),
            connections_total: AtomicU64::new(0),
            hanging: AtomicU64::new(0),
        })
    }
}

impl SinkArgs {
    fn initial_mode(&self) -> SinkMode {
        SinkMode {
            hang: self.hang,
            delay: self.delay,
            fail_share: if self.refuse { 1.0 } else { self.fail_share },
            fail_code: if self.refuse { FailureCode::INVALID_ARGUMENT } else { self.fail_code },
            retry_after: self.retry_after,
            reject_items: self.reject_items,
        }
    }
}
