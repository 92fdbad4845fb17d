//! The scheduler and its operator as a program.

use std::process::ExitCode;

use clap::Parser;
use kubewake_example_scheduler::cli::{self, SchedulerCommand};
use kubewake_trail::error_chain;

/// A scheduler, and the operator that owns its configuration, in one trace.
#[derive(Debug, Parser)]
#[command(name = "demo-scheduler", version, propagate_version = true)]
struct SchedulerCli {
    #[command(subcommand)]
    command: SchedulerCommand,
}

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(SchedulerCli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error_chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
