//! The command line of Kubewake.

#[cfg(feature = "apiserver")]
mod apiserver;
#[cfg(feature = "desk")]
mod check;
#[cfg(any(feature = "operator", feature = "webhook"))]
mod client;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "data-plane")]
mod collector;
#[cfg(feature = "desk")]
mod completions;
#[cfg(feature = "desk")]
mod demo;
#[cfg(feature = "desk")]
mod example;
#[cfg(feature = "tools")]
mod load;
mod logging;
#[cfg(feature = "desk")]
mod objects;
#[cfg(feature = "operator")]
mod operator;
#[cfg(feature = "desk")]
mod output;
#[cfg(feature = "desk")]
mod place;
#[cfg(feature = "tools")]
mod sink;
#[cfg(feature = "desk")]
mod status;
#[cfg(feature = "desk")]
mod survey;
#[cfg(feature = "desk")]
mod tail;
#[cfg(feature = "desk")]
mod trace;
#[cfg(feature = "desk")]
mod up;
#[cfg(feature = "viewer")]
mod viewer;
#[cfg(feature = "desk")]
mod web;
#[cfg(feature = "webhook")]
mod webhook;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Kubewake carries a cluster's telemetry to the backend of your choice.
#[derive(Debug, Parser)]
#[command(
    name = "kubewake",
    version,
    propagate_version = true,
    after_help = "Examples:
  kubewake up                                              everything, on this machine
  kubewake operator manifests | kubectl apply -f -         on a cluster
  kubewake check                                           is it well, and what to do if not
  kubewake status                                          what runs, and what flows
  kubewake trace deployment/web                            what happened to it
  kubewake collector --config collector.yaml               in the place of an OpenTelemetry Collector

`kubewake COMMAND --help` has examples of each. Colours and progress are for terminals only; NO_COLOR switches colours off."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs everything on this machine: a cluster, the operator, a collector, sample operators, and the page that shows their traces
    #[cfg(feature = "desk")]
    Up(Box<up::Args>),
    /// Applies a sample to a running `up`, and gives the link of its trace
    #[cfg(feature = "desk")]
    Demo(demo::Args),
    /// Shows how everything is, at a glance
    #[cfg(feature = "desk")]
    Status(status::Args),
    /// Says what is wrong and how to mend it, before and after an install
    #[cfg(feature = "desk")]
    Check(check::Args),
    /// Draws the latest trace of an object
    #[cfg(feature = "desk")]
    Trace(trace::Args),
    /// Shows spans as they arrive
    #[cfg(feature = "desk")]
    Tail(tail::Args),
    /// Serves Kubernetes' API from one process, every request traced
    #[cfg(feature = "apiserver")]
    Apiserver(apiserver::Args),
    /// Runs a Kubernetes on this machine, with pods as local processes
    #[cfg(feature = "cluster")]
    Cluster(cluster::Args),
    /// Receives, buffers and ships traces, logs and metrics
    #[cfg(feature = "data-plane")]
    Collector(collector::Args),
    /// Runs a sample operator
    #[cfg(feature = "desk")]
    #[command(hide = true)]
    Example(Box<example::Args>),
    /// Sends OTLP at a fixed rate or flat out, and says what became of it
    #[cfg(feature = "tools")]
    Load(load::Args),
    /// Makes the collectors that pipelines ask for
    #[cfg(feature = "operator")]
    Operator(operator::Args),
    /// Receives OTLP, counts it, and misbehaves when asked to
    #[cfg(feature = "tools")]
    Sink(sink::Args),
    /// Receives traces and shows them in a browser
    #[cfg(feature = "viewer")]
    Viewer(viewer::Args),
    /// Puts trace context on objects as they are written
    #[cfg(feature = "webhook")]
    Webhook(Box<webhook::Args>),
    /// Prints what a shell needs to complete commands
    #[cfg(feature = "desk")]
    Completions(completions::Args),
}

/// For what blocks: files, mostly. A burst of pods would make hundreds of them otherwise, each with a stack and a heap.
const BLOCKING_THREADS: usize = 16;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = match builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(async {
        match cli.command {
            #[cfg(feature = "desk")]
            Command::Status(args) => answer(status::run(args).await),
            #[cfg(feature = "desk")]
            Command::Check(args) => answer(check::run(args).await),
            #[cfg(feature = "desk")]
            Command::Trace(args) => answer(trace::run(args).await.map(|()| ExitCode::SUCCESS)),
            #[cfg(feature = "desk")]
            Command::Tail(args) => answer(tail::run(args).await),
            #[cfg(feature = "desk")]
            Command::Completions(args) => report(completions::run(&args)),
            #[cfg(feature = "desk")]
            Command::Up(args) => report(up::run(*args).await),
            #[cfg(feature = "apiserver")]
            Command::Apiserver(args) => report(apiserver::run(args).await),
            #[cfg(feature = "cluster")]
            Command::Cluster(args) => report(cluster::run(args).await),
            #[cfg(feature = "data-plane")]
            Command::Collector(args) => collector::run(args).await,
            #[cfg(feature = "desk")]
            Command::Demo(args) => report(demo::run(args).await),
            #[cfg(feature = "desk")]
            Command::Example(args) => report(example::run(*args).await),
            #[cfg(feature = "tools")]
            Command::Load(args) => report(load::run(args).await),
            #[cfg(feature = "operator")]
            Command::Operator(args) => report(operator::run(args).await),
            #[cfg(feature = "tools")]
            Command::Sink(args) => report(sink::run(args).await),
            #[cfg(feature = "viewer")]
            Command::Viewer(args) => report(viewer::run(args).await),
            #[cfg(feature = "webhook")]
            Command::Webhook(args) => webhook::report(webhook::run(*args).await),
        }
    });
    // Whatever still runs in the background does not keep us from ending.
    runtime.shutdown_background();
    code
}

/// Of a command whose exit code says what it found.
#[cfg(feature = "desk")]
fn answer(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        if let Some(code) = misused(&error) {
            return code;
        }
        // It may quote what somebody else answered.
        eprintln!("error: {}", output::text::safe(&kubewake_trail::in_words(error.as_ref())));
        ExitCode::FAILURE
    })
}

#[cfg(any(feature = "apiserver", feature = "operator", feature = "tools", feature = "viewer"))]
fn report(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => misused(&error).unwrap_or_else(|| {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }),
    }
}

/// Arguments that are wrong only together are answered as those that are wrong alone.
#[cfg(any(feature = "apiserver", feature = "operator", feature = "tools", feature = "viewer"))]
fn misused(error: &anyhow::Error) -> Option<ExitCode> {
    let error = error.downcast_ref::<clap::Error>()?;
    // Whoever closed standard error does not want to know.
    let _ = error.print();
    Some(ExitCode::from(2))
}
