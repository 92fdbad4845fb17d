//! The scheduler and its operator as a program.

use clap::Parser;
use kubewake_example_scheduler::cli::{self, Command};

/// A scheduler, and the operator that owns its configuration, in one trace.
#[derive(Debug, Parser)]
#[command(name = "demo-scheduler", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    cli::run(Cli::parse().command).await
}
