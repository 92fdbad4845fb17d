//! `kubewake up`: everything, on this machine.
//!
//! ```text
//!   this process     API server, nodes, viewer
//!   pods of its      kubewake-operator ── makes ──> collectors ──> viewer
//!   cluster          kubewake-webhook, head-operator, scheduler-operator
//! ```
//!
//! The components in the cluster are deployed by the manifests of `deploy/` and of the examples, as on any
//! cluster: kubectl lists them, and the node restarts them. The TracePipeline `default` ends at the viewer, and
//! everything in the cluster sends its spans through it; programs outside send to the viewer directly.
//!
//! *Guaranteed.* A stop, even during the start, ends everything in order and leaves no process behind. Several
//! instances run side by side. *Not done*: deleted objects are not restored before the next start.

mod components;
pub(crate) mod install;
pub(crate) mod instance_record;
mod pipeline_events;
mod ports;
pub(crate) mod progress;
mod ready_message;
mod restarts;
mod start;
mod state_directory;

use std::{net::SocketAddr, path::PathBuf};

use anyhow::bail;
use kubewake_config::model::LogLevel;
use kubewake_node::addresses;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use self::{
    components::RunningComponents, ports::ListenAddresses, progress::StartProgress, state_directory::StateDirectory,
};
use crate::{cluster, logging};

/// Arguments of `kubewake up`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake up                          start everything; nothing remains after the end
  kubewake up --data-dir ./data        keep objects and traces for the next start
  kubewake up --no-demo --open         start without samples, and open the page
  kubewake demo head                   in another terminal: change the sample, and print the link of the trace

If a port is in use, the next free one is taken.")]
pub(crate) struct UpArgs {
    /// Directory for objects, traces, kubeconfig and ports [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// File for the administrator's kubeconfig [default: in the data directory, or in the user's state directory]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Do not start the sample operators and the sample Head; `kubewake demo` starts them on request
    #[arg(long)]
    no_demo: bool,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Address of the page [default: 127.0.0.1:16686]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse_local_address)]
    listen: Option<SocketAddr>,
    /// Address for OTLP over gRPC [default: 127.0.0.1:4317]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse_local_address)]
    otlp: Option<SocketAddr>,
    /// Address for OTLP over HTTP [default: 127.0.0.1:4318]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse_local_address)]
    otlp_http: Option<SocketAddr>,
    /// Address of the API server [default: 127.0.0.1:6443]
    #[arg(long, value_name = "ADDR", value_parser = ports::parse_local_address)]
    api: Option<SocketAddr>,
    /// Number of nodes, 15 at most
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=i64::from(addresses::MAX_NODES)))]
    nodes: u8,
    /// A program that pods can use as image, as NAME=PATH; can be repeated
    #[arg(long = "image", value_name = "NAME=PATH", value_parser = cluster::parse_image_entry)]
    images: Vec<String>,
}

impl UpArgs {
    /// Where the parts should listen: where it is said, else where they did before, else at the usual ports.
    fn requested_addresses(&self, before: Option<ListenAddresses>) -> ListenAddresses {
        let usual = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let before = before.unwrap_or(ListenAddresses {
            page: usual(16686),
            api: usual(6443),
            otlp: usual(4317),
            otlp_http: usual(4318),
        });
        ListenAddresses {
            page: self.listen.unwrap_or(before.page),
            api: self.api.unwrap_or(before.api),
            otlp: self.otlp.unwrap_or(before.otlp),
            otlp_http: self.otlp_http.unwrap_or(before.otlp_http),
        }
    }
}

/// The signals that tell it to end.
struct ShutdownSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl ShutdownSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn wait_for_signal(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            // The terminal was closed.
            _ = self.hangup.recv() => {}
        }
    }
}

pub(crate) async fn run(args: UpArgs) -> anyhow::Result<()> {
    // Invalid images are reported before anything is started.
    start::process_images(&args.images)?;
    // Components log errors about each other while they start and stop. Their logs are useful once all of them
    // run.
    let (level, levels) = watch::channel(logging::logs_at_level(LogLevel::Error));
    logging::start(&logging::logs_at_level(LogLevel::Error)).follow_settings(levels);
    cluster::raise_file_limit();
    let mut ends = ShutdownSignals::new()?;
    let progress = StartProgress::new();
    let folder = StateDirectory::acquire(args.data_dir.as_deref())?;
    let mut parts = RunningComponents::default();
    let ended = tokio::select! {
        biased;
        () = ends.wait_for_signal() => Ok(()),
        failed = start::start_and_watch(&args, &folder, &mut parts, progress, &level) => failed,
    };
    level.send_replace(logging::logs_at_level(LogLevel::Error));
    if parts.is_empty() {
        return ended;
    }
    let step = progress.begin_step("stopping");
    tokio::select! {
        stopped = parts.stop() => stopped?,
        () = ends.wait_for_signal() => bail!("stopped immediately after a second signal"),
    }
    step.succeed("all parts have stopped");
    ended
}
