//! `kubewake operator`: what it takes to install the operator.

mod manifests;
mod tracing_config;

use clap::Subcommand;

/// Arguments of `kubewake operator`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints all that a cluster needs: the kinds, the operator, and what it may do
    Manifests(manifests::Args),
    /// Prints the file that makes a kube-apiserver send its spans to the pipelines
    TracingConfig(tracing_config::Args),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Manifests(args) => manifests::run(&args),
        Command::TracingConfig(args) => tracing_config::run(&args).await,
    }
}
