//! The operator as a program.

use std::process::ExitCode;

use clap::Parser;
use kubewake_example_head_operator::cli::{self, Command};
use kubewake_trail::in_words;

/// An operator whose work is one trace.
#[derive(Debug, Parser)]
#[command(name = "head-operator", version)]
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
