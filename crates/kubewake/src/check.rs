//! x
use std::process::ExitCode;
/// x
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}
pub(crate) async fn run(_: Args) -> anyhow::Result<ExitCode> { Ok(ExitCode::SUCCESS) }
