//! `kubewake collector`: the data plane as a process.

mod swapped;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Subcommand;
use kubewake_collector::{
    engine::Options,
    service::{self, Service},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::logging;

/// Arguments of `kubewake collector`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  kubewake collector --config collector.yaml            run it; SIGHUP or a change of the file reloads
  kubewake collector validate --config collector.yaml   only check the file
  kubewake collector components                         what this build can run"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The configuration: the OpenTelemetry Collector's YAML
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// How long to go on delivering what is held after SIGTERM, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 25)]
    drain_seconds: u64,
    /// Taken for those who swap the binary, without effect
    #[arg(long, value_name = "GATES", hide = true, allow_hyphen_values = true)]
    feature_gates: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks a configuration and reports every error; exits with 0 or 1
    Validate(FileArgs),
    /// Lists the components of this build
    #[command(after_help = "Examples:
  kubewake collector components")]
    Components,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake collector validate --config collector.yaml
  kubewake collector validate --config collector.yaml && systemctl reload kubewake")]
struct FileArgs {
    /// The configuration: the OpenTelemetry Collector's YAML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Taken for those who swap the binary, without effect
    #[arg(long, value_name = "GATES", hide = true, allow_hyphen_values = true)]
    feature_gates: Vec<String>,
}

pub(crate) async fn run(args: Args) -> ExitCode {
    match (args.command, args.config) {
        (Some(Command::Validate(given)), _) => match named(&given.config, &given.feature_gates) {
            Ok(file) => validate(&file),
            Err(code) => code,
        },
        (None, Some(config)) => match named(&config, &args.feature_gates) {
            Ok(file) => {
                let options = Options { drain_limit: Duration::from_secs(args.drain_seconds), ..Options::default() };
                serve(&file, options, say_ready).await
            }
            Err(code) => code,
        },
        // Without a command the parser insists on a file.
        (Some(Command::Components), _) | (None, None) => {
            print!("{}", kubewake_collector::components::listing());
            ExitCode::SUCCESS
        }
    }
}

/// The file that is meant, with what there is to say about how it was given.
fn named(config: &Path, gates: &[String]) -> Result<PathBuf, ExitCode> {
    if let Some(warning) = swapped::gates_warning(gates) {
        eprintln!("warning: {warning}\n");
    }
    swapped::file(config).map_err(|error| {
        eprintln!("error: {error}");
        // As for any other argument that cannot be used.
        ExitCode::from(2)
    })
}

async fn say_ready(service: &Service) {
    let overview = service.engine().overview();
    let listeners = overview.listeners.iter().map(|(id, protocol, at)| format!("{id}/{protocol}={at}"));
    println!("ready {}", listeners.collect::<Vec<_>>().join(" "));
}

fn validate(file: &Path) -> ExitCode {
    match service::check(file) {
        Ok(loaded) => {
            loaded.warnings.iter().for_each(|warning| eprintln!("{warning}\n"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a document until a signal ends it. `ready` is called once, when everything serves.
pub(crate) async fn serve(config: &Path, options: Options, ready: impl AsyncFnOnce(&Service)) -> ExitCode {
    // How log lines look must be known before the first one; whatever else is wrong is told below.
    let settings = service::check(config).map(|loaded| loaded.document.service.telemetry.logs).unwrap_or_default();
    let logs = logging::start(&settings);
    let started = Service::start(config, options).await;
    let (service, warnings) = match started {
        Ok(started) => started,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    warnings.iter().for_each(|warning| eprintln!("{warning}\n"));
    logs.follow(service.logs());
    ready(&service).await;
    match until_stopped(&service).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn until_stopped(service: &Arc<Service>) -> std::io::Result<()> {
    let (mut hangup, mut terminate, mut interrupt) =
        (signal(SignalKind::hangup())?, signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let watched = service.clone();
    let watcher = tokio::spawn(async move { watched.watch().await });
    loop {
        tokio::select! {
            // A refusal is logged, counted and shown by the service.
            _ = hangup.recv() => drop(service.reload().await),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    watcher.abort();
    tracing::info!(
        limit = ?service.engine().drain_limit(),
        "stopping: receivers close, and what is held is delivered; a second signal ends it at once"
    );
    tokio::select! {
        report = service.stop() => {
            // Whoever asks for it later finds nobody: the operator reads it in the status of the pod.
            if let Err(error) = report.leave() {
                tracing::warn!(%error, "cannot leave word of what was lost in the termination message");
            }
            Ok(())
        }
        _ = terminate.recv() => Err(std::io::Error::other("stopped at once by a second signal; what was still held is lost")),
        _ = interrupt.recv() => Err(std::io::Error::other("stopped at once by a second signal; what was still held is lost")),
    }
}
