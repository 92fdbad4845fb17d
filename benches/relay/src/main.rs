//! The baseline of the benchmark: a gRPC relay on the collector's HTTP/2 stack that inspects nothing.
//!
//! With `--logs` it is the baseline of a log agent instead, a reader that looks at no line: `log_reader.rs`.
//!
//! It accepts unary calls, answers each at once, joins their bodies until there are as many as in a batch of
//! the collector, and sends them on as one message. The collector's cost beyond this is the cost of its
//! features. The relay keeps no promise: acknowledged data is lost when it or the backend fails.

mod gzip;
mod log_reader;
mod message_joiner;
mod receive;
mod settings;
mod upstream;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use tokio::{
    net::TcpListener,
    runtime,
    signal::unix::{SignalKind, signal},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: kubewake-relay --listen ADDR --upstream HOST:PORT [--join N] [--gzip] [--threads N]
       kubewake-relay --logs FOLDER --record-bytes N --upstream HOST:PORT [--threads N]";

struct RelayArgs {
    source: RelaySource,
    upstream: String,
    /// Number of requests that are joined into one.
    join: usize,
    /// Inflate incoming messages and compress outgoing ones, as joining compressed requests requires.
    gzip: bool,
    /// Worker threads of the runtime, 0 for the main thread alone. The default is the collector's: one for each
    /// core.
    threads: Option<usize>,
}

enum RelaySource {
    /// Calls to this address.
    Calls(SocketAddr),
    /// The files below a folder, for each line of which a record of this size is sent.
    Logs { folder: PathBuf, record_bytes: usize },
}

impl RelayArgs {
    fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let (mut listen, mut logs, mut record_bytes) = (None, None, None);
        let mut upstream = None;
        let mut join = 82;
        let mut gzip = false;
        let mut threads = None;
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--listen" => listen = Some(value()?.parse()?),
                "--logs" => logs = Some(PathBuf::from(value()?)),
                "--record-bytes" => record_bytes = Some(value()?.parse()?),
                "--upstream" => upstream = Some(value()?),
                "--join" => join = value()?.parse()?,
                "--threads" => threads = Some(value()?.parse()?),
                "--gzip" => gzip = true,
                _ => bail!("unknown argument {word}\n{USAGE}"),
            }
        }
        let source = match logs {
            Some(folder) => RelaySource::Logs { folder, record_bytes: record_bytes.context(USAGE)? },
            None => RelaySource::Calls(listen.context(USAGE)?),
        };
        Ok(Self { source, upstream: upstream.context(USAGE)?, join, gzip, threads })
    }
}

fn main() -> anyhow::Result<()> {
    let args = RelayArgs::parse(std::env::args().skip(1))?;
    let mut builder = match args.threads {
        Some(0) => runtime::Builder::new_current_thread(),
        _ => runtime::Builder::new_multi_thread(),
    };
    if let Some(threads) = args.threads.filter(|threads| *threads > 0) {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_all().build()?;
    runtime.block_on(run(args))
}

async fn run(args: RelayArgs) -> anyhow::Result<()> {
    match args.source {
        RelaySource::Calls(address) => {
            let upstream = upstream::Upstream::new(args.upstream, args.gzip, upstream::TRACES_PATH);
            relay_calls(address, args.join, args.gzip, upstream).await
        }
        RelaySource::Logs { folder, record_bytes } => {
            let upstream = upstream::Upstream::new(args.upstream, false, upstream::LOGS_PATH);
            let mut terminate = signal(SignalKind::terminate())?;
            println!("ready reader");
            log_reader::read_folder(&folder, record_bytes, upstream).await?;
            // Its CPU time is read before it ends.
            terminate.recv().await;
            Ok(())
        }
    }
}

async fn relay_calls(address: SocketAddr, join: usize, gzip: bool, upstream: upstream::Upstream) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await.with_context(|| format!("failed to listen on {address}"))?;
    let joiner = message_joiner::MessageJoiner::new(join, gzip, upstream);
    let mut terminate = signal(SignalKind::terminate())?;
    println!("ready relay on {}", listener.local_addr()?);
    tokio::select! {
        () = receive::accept(listener, Arc::clone(&joiner), gzip) => {}
        _ = terminate.recv() => {}
    }
    let _ = tokio::time::timeout(Duration::from_secs(5), joiner.finish()).await;
    Ok(())
}
