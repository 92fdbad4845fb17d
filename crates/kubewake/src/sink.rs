//! `kubewake sink`: receives OTLP, counts it, and misbehaves when asked to.
//!
//! gRPC and HTTP share one port, and so does the control over HTTP: `GET /stats`, `GET /missing`, `GET /traces`, `POST /mode`,
//! `POST /reset`. What it counts as received is exactly what it answered with success.

mod control;
mod count;
mod decompress;
mod items;
pub(crate) mod mode;
mod receive;
pub(crate) mod reply;
mod seen;

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
    count::Counters,
    mode::{Code, Mode},
    reply::Body,
};

/// Arguments of `kubewake sink`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake sink --listen 127.0.0.1:14317
  kubewake sink --listen 127.0.0.1:0 --fail-share 0.3 --fail-code UNAVAILABLE --retry-after 100ms
  curl -X POST 'http://127.0.0.1:14317/mode?hang=true'; curl http://127.0.0.1:14317/stats")]
pub(crate) struct Args {
    /// Where to listen, for gRPC and HTTP alike
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:14317")]
    listen: SocketAddr,
    /// Wait this long before each answer: 50ms, 2s
    #[arg(long, value_name = "DURATION", value_parser = mode::duration, default_value = "0ms")]
    delay: Duration,
    /// The share of requests that fail, 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = mode::share)]
    fail_share: f64,
    /// How they fail: a gRPC code by name, or an HTTP status
    #[arg(long, value_name = "CODE", default_value = "UNAVAILABLE")]
    fail_code: Code,
    /// The retry hint on failures: 100ms, 2s
    #[arg(long, value_name = "DURATION", value_parser = mode::duration)]
    retry_after: Option<Duration>,
    /// Neither read nor answer requests until told otherwise
    #[arg(long)]
    hang: bool,
    /// Refuse everything for good, as malformed
    #[arg(long, conflicts_with_all = ["fail_share", "fail_code"])]
    refuse: bool,
    /// Answer with a partial success that rejects so many items
    #[arg(long, value_name = "N", default_value_t = 0)]
    reject_items: u64,
    /// Append each request to this file: a byte for the signal (t, m, l), its length (u32, big endian), its protobuf
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Count the items of each trace, for GET /traces
    #[arg(long)]
    traces: bool,
}

/// Messages of tens of megabytes should not wait for window updates in the middle.
const STREAM_WINDOW: u32 = 4 << 20;
/// Room for several such streams.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Large frames mean few of them.
const FRAME: u32 = 1 << 20;

/// What all connections share.
#[derive(Debug)]
struct Sink {
    counters: Counters,
    mode: watch::Sender<Mode>,
    connections_open: AtomicU64,
    connections_total: AtomicU64,
    /// Requests that hang right now.
    hanging: AtomicU64,
}

/// Receives until SIGTERM or Ctrl-C.
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    let sink = Arc::new(Sink::new(&args)?);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    println!("ready sink on {}", listener.local_addr()?);
    tokio::select! {
        () = accept(listener, &sink) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    sink.counters.flush().context("cannot write the received requests")
}

async fn accept(listener: TcpListener, sink: &Arc<Sink>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(serve(stream, Arc::clone(sink)));
            }
            // Out of descriptors, or the peer is gone already: the next one may do better.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn serve(stream: TcpStream, sink: Arc<Sink>) {
    sink.connections_total.fetch_add(1, Ordering::Relaxed);
    sink.connections_open.fetch_add(1, Ordering::Relaxed);
    // Without it answers come late, but they come.
    let _ = stream.set_nodelay(true);
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http2()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME);
    let service = service_fn(|request| answer(Arc::clone(&sink), request));
    // A connection that breaks is the sender's to report.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
    sink.connections_open.fetch_sub(1, Ordering::Relaxed);
}

async fn answer(sink: Arc<Sink>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    Ok(match receive::Call::of(&request) {
        Some(call) => receive::receive(&sink, call, request).await,
        None => control::answer(&sink, request).await,
    })
}

impl Sink {
    fn new(args: &Args) -> anyhow::Result<Self> {
        Ok(Self {
            counters: Counters::new(args.out.as_deref(), args.traces)?,
            mode: watch::Sender::new(args.mode()),
            connections_open: AtomicU64::new(0),
            connections_total: AtomicU64::new(0),
            hanging: AtomicU64::new(0),
        })
    }
}

impl Args {
    fn mode(&self) -> Mode {
        Mode {
            hang: self.hang,
            delay: self.delay,
            fail_share: if self.refuse { 1.0 } else { self.fail_share },
            fail_code: if self.refuse { Code::INVALID_ARGUMENT } else { self.fail_code },
            retry_after: self.retry_after,
            reject_items: self.reject_items,
        }
    }
}
