//! The operator as a program.

use std::process::ExitCode;

use clap::Parser;
use kubewake_example_head_operator::cli::{self, HeadOperatorCommand};
use kubewake_trail::error_chain;

/// An operator whose work is one trace.
#[derive(Debug, Parser)]
#[command(name = "head-operator", version)]
struct HeadOperatorCli {
    #[command(subcommand)]
    command: HeadOperatorCommand,
}

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(HeadOperatorCli::parse().command).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", error_chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}
