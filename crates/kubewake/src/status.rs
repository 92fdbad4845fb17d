//! `kubewake status`: everything at a glance.
//!
//! *Guaranteed*: what can be seen is shown, also if other parts cannot; what cannot is said with its reason.
//! Nothing is changed.

mod gather;
mod model;
mod render;

use std::process::ExitCode;

use crate::{
    discovery::{ClusterArgs, ViewerArgs},
    output::{self, OutputFormat, TerminalLayout},
};

/// Arguments of `kubewake status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake status
  kubewake status --kubeconfig ./kubeconfig -o json
  kubewake status -o name
  kubewake status > /dev/null && echo no problems

Exit codes: 0 without problems, 1 with problems or if the cluster is not reachable, 2 if the arguments are invalid.
Absent optional parts (webhook, viewer, Telemetry) are no problem. `kubewake check` shows how to solve problems.
RECEIVED, SENT and DROPPED count spans, log records and data points since the collectors started or the pipeline was
created. DROPPED includes data that terminated collectors lost. SENT can be less where a pipeline samples or filters.")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    viewer: ViewerArgs,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
}

pub(crate) async fn run(args: StatusArgs) -> anyhow::Result<ExitCode> {
    let status = gather::gather_status(&args.cluster, &args.viewer).await?;
    let text = match output::serialize_document(args.output, &status)? {
        Some(document) => document,
        None if args.output == OutputFormat::Name => {
            // Names do not show problems, so that these go to standard error.
            status.problems.iter().for_each(|problem| eprintln!("{}", output::text::sanitize(problem)));
            render::render_names(&status)
        }
        None => render::render_status(&status, &TerminalLayout::stdout()),
    };
    output::print(&text)?;
    Ok(if status.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
