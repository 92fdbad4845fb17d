//! The scheduler and its operator as a program.

use std::process::ExitCode;

use clap::Parser;
use kubewake_example_scheduler::cli::{self, Command};
use kubewake_trail::in_words;

/// A scheduler, and the operator that owns its configuration, in one trace.
#[derive(Debug, Parser)]
#[command(name = "demo-scheduler", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(Cli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", in_words(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
