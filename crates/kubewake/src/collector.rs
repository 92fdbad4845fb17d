//! `kubewake collector`: the data plane as a process.

mod file_root;
mod otelcol_compat;
mod state_directory;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use clap::Subcommand;
use kubewake_collector::{
    engine::EngineOptions,
    service::{self, CollectorService, TERMINATION_LOG},
};
use kubewake_config::ConfigSources as _;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};

use self::{file_root::FileRoot, state_directory::StateArgs};
use crate::logging;

/// Arguments of `kubewake collector`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  kubewake collector --config collector.yaml            run a file; SIGHUP or a change of the file reloads it
  kubewake collector validate --config collector.yaml   only check the file
  kubewake collector components                         list the components of this build"
)]
pub(crate) struct CollectorArgs {
    #[command(subcommand)]
    command: Option<CollectorCommand>,
    /// Configuration file, in the OpenTelemetry Collector's YAML
    #[arg(long, value_name = "FILE", required = true)]
    config: Option<PathBuf>,
    /// Time limit for the delivery of held data after SIGTERM, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = EngineOptions::DEFAULT_DRAIN_LIMIT.as_secs())]
    drain_seconds: u64,
    /// Accepted for compatibility with the OpenTelemetry Collector, without effect
    #[arg(long, value_name = "GATES", hide = true, allow_hyphen_values = true)]
    feature_gates: Vec<String>,
}

#[derive(Debug, Subcommand)]
enum CollectorCommand {
    /// Checks a configuration and reports every error; exits with 0 or 1
    Validate(FileArgs),
    /// Lists the components of this build
    #[command(after_help = "Examples:
  kubewake collector components")]
    Components,
    /// Gives the directory with the positions of a collector on a node to its user
    #[command(hide = true)]
    PrepareState(StateArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake collector validate --config collector.yaml
  kubewake collector validate --config collector.yaml && systemctl reload kubewake")]
struct FileArgs {
    /// Configuration file, in the OpenTelemetry Collector's YAML
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Accepted for compatibility with the OpenTelemetry Collector, without effect
    #[arg(long, value_name = "GATES", hide = true, allow_hyphen_values = true)]
    feature_gates: Vec<String>,
}

pub(crate) async fn run(args: CollectorArgs) -> ExitCode {
    match (args.command, args.config) {
        (Some(CollectorCommand::Validate(given)), _) => {
            match resolve_config_path(&given.config, &given.feature_gates) {
                Ok(file) => validate(&file, &FileRoot::from_env()),
                Err(code) => code,
            }
        }
        (None, Some(config)) => match resolve_config_path(&config, &args.feature_gates) {
            Ok(file) => {
                let options =
                    EngineOptions { drain_limit: Duration::from_secs(args.drain_seconds), ..EngineOptions::default() };
                serve(&file, options, print_ready).await
            }
            Err(code) => code,
        },
        (Some(CollectorCommand::PrepareState(given)), _) => {
            match state_directory::prepare(&given, &FileRoot::from_env()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("error: {error:#}");
                    ExitCode::FAILURE
                }
            }
        }
        // Without a command the parser requires a file.
        (Some(CollectorCommand::Components), _) | (None, None) => {
            print!("{}", kubewake_collector::components::list_components());
            ExitCode::SUCCESS
        }
    }
}

/// The file that is meant, with what there is to say about how it was given.
fn resolve_config_path(config: &Path, gates: &[String]) -> Result<PathBuf, ExitCode> {
    if let Some(warning) = otelcol_compat::gates_warning(gates) {
        eprintln!("warning: {warning}\n");
    }
    otelcol_compat::config_path(config).map_err(|error| {
        eprintln!("error: {error}");
        // The exit code of any other invalid argument.
        ExitCode::from(2)
    })
}

async fn print_ready(service: &CollectorService) {
    let overview = service.engine().overview();
    let listeners = overview.listeners.iter().map(|(id, protocol, at)| format!("{id}/{protocol}={at}"));
    println!("ready {}", listeners.collect::<Vec<_>>().join(" "));
}

fn validate(file: &Path, root: &FileRoot) -> ExitCode {
    match service::check(&root.locate(file), root) {
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
pub(crate) async fn serve(
    config: &Path,
    options: EngineOptions,
    ready: impl AsyncFnOnce(&CollectorService),
) -> ExitCode {
    let root = Arc::new(FileRoot::from_env());
    let config = &root.locate(config);
    // The log format must be known before the first line; other errors of the configuration are reported below.
    let settings =
        service::check(config, &*root).map(|loaded| loaded.document.service.telemetry.logs).unwrap_or_default();
    let logs = logging::start(&settings);
    let started = CollectorService::start(config, root.clone(), options).await;
    let (service, warnings) = match started {
        Ok(started) => started,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    warnings.iter().for_each(|warning| eprintln!("{warning}\n"));
    logs.follow_settings(service.logs());
    ready(&service).await;
    match wait_for_shutdown(&service, &root.locate(Path::new(TERMINATION_LOG))).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn wait_for_shutdown(service: &Arc<CollectorService>, termination_log: &Path) -> std::io::Result<()> {
    let (mut hangup, mut terminate, mut interrupt) =
        (signal(SignalKind::hangup())?, signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let watched = service.clone();
    let watcher = tokio::spawn(async move { watched.watch().await });
    // Reloads run beside the signals, because a name server may hold up a reload.
    let mut reloads = JoinSet::new();
    loop {
        tokio::select! {
            _ = hangup.recv() => {
                let service = service.clone();
                // The service logs, counts and exposes a refused configuration.
                reloads.spawn(async move { drop(service.reload().await) });
            }
            Some(_) = reloads.join_next() => {}
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    watcher.abort();
    reloads.abort_all();
    tracing::info!(
        limit = ?service.engine().drain_limit(),
        "stopping: receivers close and held data is delivered; a second signal stops the collector immediately"
    );
    tokio::select! {
        report = service.stop() => {
            // The endpoint is gone by then: the operator reads the final status from the pod's termination
            // message.
            if let Err(error) = report.write_to(termination_log) {
                tracing::warn!(%error, "failed to write the lost data to the termination message");
            }
            Ok(())
        }
        _ = terminate.recv() => Err(std::io::Error::other("stopped immediately after a second signal; data that was not delivered is lost")),
        _ = interrupt.recv() => Err(std::io::Error::other("stopped immediately after a second signal; data that was not delivered is lost")),
    }
}
