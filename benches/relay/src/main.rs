//! The baseline of the bench: a gRPC relay on the collector's HTTP/2 stack that looks at nothing.
//!
//! It takes unary calls, answers each at once, joins their bodies until there are as many as the collector's batch
//! holds, and sends them on as one message. What the collector costs beyond this is what the collector does. The relay
//! keeps no promise: what it has answered is lost when it or the backend fails.

mod gzip;
mod join;
mod receive;
mod settings;
mod upstream;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, bail};
use tokio::{
    net::TcpListener,
    runtime,
    signal::unix::{SignalKind, signal},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: kubewake-relay --listen ADDR --upstream HOST:PORT [--join N] [--gzip] [--threads N]";

struct Args {
    listen: SocketAddr,
    upstream: String,
    /// How many requests make one.
    join: usize,
    /// Inflate what comes in and deflate what goes out, as whoever joins compressed requests has to.
    gzip: bool,
    /// Threads of the runtime, 0 for none beside the main one. Without it those of the collector: one for each core.
    threads: Option<usize>,
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let (mut listen, mut upstream) = (None, None);
        let (mut join, mut gzip, mut threads) = (82, false, None);
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word.as_str() {
                "--listen" => listen = Some(value()?.parse()?),
                "--upstream" => upstream = Some(value()?),
                "--join" => join = value()?.parse()?,
                "--threads" => threads = Some(value()?.parse()?),
                "--gzip" => gzip = true,
                _ => bail!("{word} is unknown\n{USAGE}"),
            }
        }
        Ok(Self { listen: listen.context(USAGE)?, upstream: upstream.context(USAGE)?, join, gzip, threads })
    }
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse(std::env::args().skip(1))?;
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

async fn run(args: Args) -> anyhow::Result<()> {
    let listener = TcpListener::bind(args.listen).await.with_context(|| format!("cannot listen on {}", args.listen))?;
    let upstream = upstream::Upstream::new(args.upstream, args.gzip);
    let joiner = join::Joiner::new(args.join, args.gzip, upstream);
    let mut terminate = signal(SignalKind::terminate())?;
    println!("ready relay on {}", listener.local_addr()?);
    tokio::select! {
        () = receive::accept(listener, Arc::clone(&joiner), args.gzip) => {}
        _ = terminate.recv() => {}
    }
    let _ = tokio::time::timeout(Duration::from_secs(5), joiner.finish()).await;
    Ok(())
}
