//! `kubewake example`: the sample operators, which `kubewake up` runs as pods of its cluster.

use clap::Subcommand;
use kubewake_example_head_operator::cli as head_operator;
use kubewake_example_scheduler::cli as scheduler;

/// Arguments of `kubewake example`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// An operator whose work is one trace
    #[command(subcommand)]
    HeadOperator(head_operator::Command),
    /// A scheduler, and the operator that owns its configuration
    #[command(subcommand)]
    Scheduler(scheduler::Command),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    match args.which {
        Which::HeadOperator(command) => head_operator::run(command).await,
        Which::Scheduler(command) => scheduler::run(command).await,
    }
}
