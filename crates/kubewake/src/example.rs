//! `kubewake example`: the sample operators, which `kubewake up` runs as pods of its cluster.

use clap::Subcommand;
use kubewake_example_head_operator::cli as head_operator;
use kubewake_example_scheduler::cli as scheduler;

/// Arguments of `kubewake example`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExampleArgs {
    #[command(subcommand)]
    which: ExampleCommand,
}

#[derive(Debug, Subcommand)]
enum ExampleCommand {
    /// Operator whose reconciles form one trace
    #[command(subcommand)]
    HeadOperator(head_operator::HeadOperatorCommand),
    /// Scheduler, and the operator of its configuration
    #[command(subcommand)]
    Scheduler(scheduler::SchedulerCommand),
}

pub(crate) async fn run(args: ExampleArgs) -> anyhow::Result<()> {
    match args.which {
        ExampleCommand::HeadOperator(command) => head_operator::run(command).await,
        ExampleCommand::Scheduler(command) => scheduler::run(command).await,
    }
}
