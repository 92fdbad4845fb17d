//! `kubewake up`: everything, on this machine.
//!
//! ```text
//!   this process     API server, nodes, viewer
//!   pods of its      kubewake-operator ── makes ──> collectors ──> viewer
//!   cluster          kubewake-webhook, head-operator, scheduler-operator
//! ```
//!
//! What runs in the cluster is deployed there by the manifests of `deploy/` and of the examples, so that it is as on any cluster: kubectl shows
//! it, and the node starts again what ended. The TracePipeline `default` leads to the viewer, and everything in the cluster sends its spans
//! through it; programs outside send to the viewer itself.
//!
//! *Guarantees.* Whenever it is told to end, in the middle of its start, too, everything ends in order, and no process stays. Several run side by
//! side. *Not done*: it does not look after objects that somebody deletes; the next start applies them again.

mod folder;
pub(crate) mod install;
pub(crate) mod notice;
mod parts;
mod pipelines;
mod ports;
pub(crate) mod progress;
mod restarts;
mod screen;
mod start;

use std::{net::SocketAddr, path::PathBuf};

use anyhow::bail;
use kubewake_config::model::LogLevel;
use kubewake_node::addresses;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use self::{folder::Folder, parts::Parts, ports::Ports, progress::Progress};
use crate::{cluster, logging};

/// Arguments of `kubewake up`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake up                          everything, gone when it ends
  kubewake up --data-dir ./data        objects and traces are there again the next time
  kubewake up --no-demo --open         without the samples; opens the page
  kubewake demo head                   in another terminal: a change, and the link of its trace

A port that is busy moves to the next one that is free.")]
pub(crate) struct Args {
    /// Keep objects, traces, kubeconfig and ports here; without it all is gone when it ends
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where to write the administrator's kubeconfig [default: in the data directory, or in the user's state folder]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Without the sample operators and the sample Head; `kubewake demo` brings them when they are wanted
    #[arg(long)]
    no_demo: bool,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Where the page is [default: 127.0.0.1:16686]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse)]
    listen: Option<SocketAddr>,
    /// Where OTLP over gRPC is taken [default: 127.0.0.1:4317]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse)]
    otlp: Option<SocketAddr>,
    /// Where OTLP over HTTP is taken [default: 127.0.0.1:4318]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse)]
    otlp_http: Option<SocketAddr>,
    /// Where the API server listens [default: 127.0.0.1:6443]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse)]
    api: Option<SocketAddr>,
    /// How many nodes, 15 at most
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=i64::from(addresses::NODES)))]
    nodes: u8,
    /// A program that pods can name as their image: NAME=PATH; may be given more than once
    #[arg(long = "image", value_name = "NAME=PATH", value_parser = cluster::image)]
    images: Vec<String>,
}

impl Args {
    /// Where the parts should listen: where it is said, else where they did before, else at the usual ports.
    fn ports(&self, before: Option<Ports>) -> Ports {
        let usual = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let before =
            before.unwrap_or(Ports { page: usual(16686), api: usual(6443), otlp: usual(4317), otlp_http: usual(4318) });
        Ports {
            page: self.listen.unwrap_or(before.page),
            api: self.api.unwrap_or(before.api),
            otlp: self.otlp.unwrap_or(before.otlp),
            otlp_http: self.otlp_http.unwrap_or(before.otlp_http),
        }
    }
}

/// The signals that tell it to end.
struct Ends {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Ends {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            // The terminal is gone.
            _ = self.hangup.recv() => {}
        }
    }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    // Said before anything is started.
    start::images(&args.images)?;
    // While parts come and go, they complain of each other. What they say when all are there is worth reading.
    let (level, levels) = watch::channel(logging::only(LogLevel::Error));
    logging::start(&logging::only(LogLevel::Error)).follow(levels);
    cluster::raise_file_limit();
    let mut ends = Ends::new()?;
    let progress = Progress::new();
    let folder = Folder::take(args.data_dir.as_deref())?;
    let mut parts = Parts::default();
    let ended = tokio::select! {
        biased;
        () = ends.next() => Ok(()),
        failed = start::run(&args, &folder, &mut parts, progress, &level) => failed,
    };
    level.send_replace(logging::only(LogLevel::Error));
    if parts.is_empty() {
        return ended;
    }
    let step = progress.begin("stopping");
    tokio::select! {
        stopped = parts.stop() => stopped?,
        () = ends.next() => bail!("stopped at once by a second signal"),
    }
    step.done("everything has ended");
    ended
}
