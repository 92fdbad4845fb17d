//! The command line of Kubewake.

#[cfg(feature = "apiserver")]
mod apiserver;
#[cfg(feature = "cli")]
mod check;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "data-plane")]
mod collector;
#[cfg(feature = "cli")]
mod completions;
#[cfg(feature = "cli")]
mod demo;
#[cfg(feature = "cli")]
mod discovery;
#[cfg(feature = "cli")]
mod example;
#[cfg(feature = "cli")]
mod http_client;
#[cfg(feature = "cli")]
mod inventory;
#[cfg(any(feature = "operator", feature = "webhook"))]
mod kube_client;
#[cfg(feature = "tools")]
mod load;
mod logging;
#[cfg(feature = "cli")]
mod manifest_applier;
#[cfg(feature = "operator")]
mod operator;
#[cfg(feature = "cli")]
mod output;
#[cfg(feature = "tools")]
mod sink;
#[cfg(feature = "cli")]
mod status;
#[cfg(feature = "cli")]
mod tail;
#[cfg(feature = "cli")]
mod trace;
#[cfg(feature = "cli")]
mod up;
#[cfg(feature = "viewer")]
mod viewer;
#[cfg(feature = "webhook")]
mod webhook;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Kubewake sends the telemetry of a Kubernetes cluster to the backends of your choice.
#[derive(Debug, Parser)]
#[command(
    name = "kubewake",
    version,
    propagate_version = true,
    after_help = "Examples:
  kubewake up                                              run everything on this machine
  kubewake operator manifests | kubectl apply -f -         install on a cluster
  kubewake check                                           find problems, and how to solve them
  kubewake status                                          show all parts and their throughput
  kubewake trace deployment/web                            show the latest trace of an object
  kubewake collector --config collector.yaml               run instead of an OpenTelemetry Collector

`kubewake COMMAND --help` has examples of each command. Colours and progress appear only on terminals; NO_COLOR disables colours."
)]
struct KubewakeCli {
    #[command(subcommand)]
    command: KubewakeCommand,
}

#[derive(Debug, Subcommand)]
enum KubewakeCommand {
    /// Runs everything on this machine: a cluster, the operator, a collector, sample operators, and a page
    /// that shows their traces
    #[cfg(feature = "cli")]
    Up(Box<up::UpArgs>),
    /// Applies a sample to a running `up`, and prints the link of its trace
    #[cfg(feature = "cli")]
    Demo(demo::DemoArgs),
    /// Shows the state of all parts on one screen
    #[cfg(feature = "cli")]
    Status(status::StatusArgs),
    /// Finds problems and shows how to solve them, before and after an install
    #[cfg(feature = "cli")]
    Check(check::CheckArgs),
    /// Draws the latest trace of an object
    #[cfg(feature = "cli")]
    Trace(trace::TraceArgs),
    /// Shows spans as they arrive
    #[cfg(feature = "cli")]
    Tail(tail::TailArgs),
    /// Runs a Kubernetes API server in one process, with every request traced
    #[cfg(feature = "apiserver")]
    Apiserver(apiserver::ApiServerArgs),
    /// Runs a Kubernetes cluster on this machine, with pods as local processes
    #[cfg(feature = "cluster")]
    Cluster(cluster::EmbeddedClusterArgs),
    /// Receives, buffers and exports traces, logs and metrics
    #[cfg(feature = "data-plane")]
    Collector(collector::CollectorArgs),
    /// Runs a sample operator
    #[cfg(feature = "cli")]
    #[command(hide = true)]
    Example(Box<example::ExampleArgs>),
    /// Sends OTLP at a fixed or unlimited rate, and reports the results
    #[cfg(feature = "tools")]
    Load(load::LoadArgs),
    /// Runs the operator, which manages the collectors of pipeline resources
    #[cfg(feature = "operator")]
    Operator(operator::OperatorCliArgs),
    /// Receives and counts OTLP, with configurable failures
    #[cfg(feature = "tools")]
    Sink(sink::SinkArgs),
    /// Receives traces and shows them in a browser
    #[cfg(feature = "viewer")]
    Viewer(viewer::ViewerRunArgs),
    /// Runs the webhook that adds trace context to objects
    #[cfg(feature = "webhook")]
    Webhook(Box<webhook::WebhookArgs>),
    /// Prints a completion script for a shell
    #[cfg(feature = "cli")]
    Completions(completions::CompletionsArgs),
}

/// For what blocks: files, mostly. A burst of pods would make hundreds of them otherwise, each with a stack and a heap.
const MAX_BLOCKING_THREADS: usize = 16;

fn main() -> ExitCode {
    let cli = KubewakeCli::parse();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = match builder.enable_all().max_blocking_threads(MAX_BLOCKING_THREADS).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: failed to start the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        match cli.command {
            #[cfg(feature = "cli")]
            KubewakeCommand::Status(args) => exit_code_or_report(status::run(args).await),
            #[cfg(feature = "cli")]
            KubewakeCommand::Check(args) => exit_code_or_report(check::run(args).await),
            #[cfg(feature = "cli")]
            KubewakeCommand::Trace(args) => exit_code_or_report(trace::run(args).await.map(|()| ExitCode::SUCCESS)),
            #[cfg(feature = "cli")]
            KubewakeCommand::Tail(args) => exit_code_or_report(tail::run(args).await),
            #[cfg(feature = "cli")]
            KubewakeCommand::Completions(args) => report_result(completions::run(&args)),
            #[cfg(feature = "cli")]
            KubewakeCommand::Up(args) => report_result(up::run(*args).await),
            #[cfg(feature = "apiserver")]
            KubewakeCommand::Apiserver(args) => report_result(apiserver::run(args).await),
            #[cfg(feature = "cluster")]
            KubewakeCommand::Cluster(args) => report_result(cluster::run(args).await),
            #[cfg(feature = "data-plane")]
            KubewakeCommand::Collector(args) => collector::run(args).await,
            #[cfg(feature = "cli")]
            KubewakeCommand::Demo(args) => report_result(demo::run(args).await),
            #[cfg(feature = "cli")]
            KubewakeCommand::Example(args) => report_result(example::run(*args).await),
            #[cfg(feature = "tools")]
            KubewakeCommand::Load(args) => report_result(load::run(args).await),
            #[cfg(feature = "operator")]
            KubewakeCommand::Operator(args) => report_result(operator::run(args).await),
            #[cfg(feature = "tools")]
            KubewakeCommand::Sink(args) => report_result(sink::run(args).await),
            #[cfg(feature = "viewer")]
            KubewakeCommand::Viewer(args) => report_result(viewer::run(args).await),
            #[cfg(feature = "webhook")]
            KubewakeCommand::Webhook(args) => webhook::report_result(webhook::run(*args).await),
        }
    });
    // Background tasks do not delay the exit.
    runtime.shutdown_background();
    code
}

/// Of a command whose exit code says what it found.
#[cfg(feature = "cli")]
fn exit_code_or_report(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        if let Some(code) = report_usage_error(&error) {
            return code;
        }
        // The error may quote a response of another program.
        eprintln!("error: {}", output::text::sanitize(&kubewake_trail::error_chain(error.as_ref())));
        ExitCode::FAILURE
    })
}

#[cfg(any(feature = "apiserver", feature = "operator", feature = "tools", feature = "viewer"))]
fn report_result(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report_usage_error(&error).unwrap_or_else(|| {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }),
    }
}

/// Arguments that are wrong only together are answered as those that are wrong alone.
#[cfg(any(feature = "apiserver", feature = "operator", feature = "tools", feature = "viewer"))]
fn report_usage_error(error: &anyhow::Error) -> Option<ExitCode> {
    let error = error.downcast_ref::<clap::Error>()?;
    // Standard error may be closed.
    let _ = error.print();
    Some(ExitCode::from(2))
}
