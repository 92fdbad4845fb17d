//! `kubewake check`: finds problems and suggests remedies, before and after an installation.
//!
//! - [`report`]: the results of checks; [`codes`]: all checks, each with a stable code; [`render`]: the report
//!   as text;
//! - [`cluster`], [`permissions`], [`definitions`], [`operator`], [`webhooks`], [`pipelines`], [`collectors`],
//!   [`viewer`], [`probe`]: one section each.
//!
//! *Guaranteed*: a check changes nothing except that it sends a probe span, which `--no-probe` prevents; every
//! failed line suggests a remedy. State that cannot be read is reported as unknown, and never as passed.

mod certificate;
mod cluster;
mod codes;
mod collectors;
mod definitions;
mod operator;
mod permissions;
mod pipelines;
mod probe;
mod render;
mod report;
mod viewer;
mod webhooks;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;

use self::report::{CheckReport, CheckSection};
use crate::{
    discovery::{ClusterArgs, ClusterConnection, ViewerArgs, ViewerLocation},
    inventory,
    output::{self, OutputFormat, TerminalLayout},
};

/// Between two looks of `--wait`.
const RECHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Nobody waits longer than a day.
const MAX_WAIT: Duration = Duration::from_secs(86_400);
/// Often enough to look alive.
const SPINNER_INTERVAL: Duration = Duration::from_millis(120);

/// Arguments of `kubewake check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake check --pre                                     before an install: permissions and the cluster's version
  kubewake check                                           after an install, with a span that is followed to the backend
  kubewake check --wait=2m --no-probe                      after an install, wait until a pipeline can be applied
  kubewake check --wait                                    wait until all checks pass, at most five minutes
  kubewake check --viewer http://127.0.0.1:16686           expect the span in this viewer
  kubewake check --no-probe -o json | jq -r '.sections[].lines[] | select(.result == \"failed\") | .code'

Exit codes: 0 if no check failed (warnings do not count), 1 if one failed, 2 if the arguments are invalid. With --wait, a
check that is still in progress at the timeout has failed.
docs/troubleshooting.md lists every code with its causes.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    viewer: ViewerArgs,
    /// Check only the requirements of an install
    #[arg(long)]
    pre: bool,
    /// Repeat the checks until none fails or is in progress, at most for this time: 120, 90s, 5m [default: 5m]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "5m", value_parser = parse_wait)]
    wait: Option<Duration>,
    /// Do not send a span
    #[arg(long, conflicts_with_all = ["endpoint", "pre"])]
    no_probe: bool,
    /// The OTLP/HTTP endpoint for the span [default: the Service of the collectors, or through the API server]
    #[arg(long, value_name = "URL", conflicts_with = "pre")]
    endpoint: Option<String>,
    /// Time limit for the arrival of the span at the backend; pipelines that sample whole traces need more than their
    /// decisionWait
    #[arg(long, value_name = "SECONDS", default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..=3600))]
    probe_seconds: u64,
    /// Output format; `name` prints the codes of failed checks
    #[arg(long, short, value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
}

/// What the sections have at hand.
struct CheckContext<'a> {
    args: &'a CheckArgs,
    cluster: ClusterConnection,
    viewer: ViewerLocation,
}

pub(crate) async fn run(args: CheckArgs) -> anyhow::Result<ExitCode> {
    let viewer = args.viewer.configured_viewer()?;
    let deadline = args.wait.map(|limit| Instant::now() + limit);
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(SPINNER_INTERVAL);
    let report = loop {
        let mut report = run_checks(&args, &viewer, &bar).await;
        match deadline {
            Some(deadline) if report.pending_lines().next().is_some() && Instant::now() < deadline => {
                bar.set_message(report.pending_lines().map(|line| line.code.id).collect::<Vec<_>>().join(" "));
                tokio::time::sleep(RECHECK_INTERVAL).await;
            }
            Some(_) => {
                report.fail_pending();
                break report;
            }
            None => break report,
        }
    };
    bar.finish_and_clear();
    let text = match output::serialize_document(args.output, &report.to_document())? {
        Some(document) => document,
        None if args.output == OutputFormat::Name => {
            report.failed_lines().map(|line| format!("{}\n", line.code.id)).collect()
        }
        None => render::render_report(&report, &TerminalLayout::stdout()),
    };
    output::print(&text)?;
    Ok(if report.failed_lines().next().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A number of seconds, or a duration such as `90s`, `5m` and `1h30m`, from a second to a day.
fn parse_wait(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let limit = seconds.or_else(|| text.parse::<jiff::SignedDuration>().ok().and_then(|limit| limit.try_into().ok()));
    let limit = limit.ok_or_else(|| format!("invalid duration {text:?}: write for example 120, 90s or 5m"))?;
    let is_allowed = (Duration::from_secs(1)..=MAX_WAIT).contains(&limit);
    is_allowed.then_some(limit).ok_or_else(|| "the duration must be between a second and a day".to_owned())
}

/// Looks once. Without a cluster there is nothing else to look at.
async fn run_checks(args: &CheckArgs, viewer: &ViewerLocation, bar: &ProgressBar) -> CheckReport {
    let mut report = CheckReport::default();
    let begin = |name: &'static str| bar.set_message(name);
    begin("the cluster");
    let (section, cluster) = cluster::check(&args.cluster).await;
    report.sections.push(section);
    let Some(cluster) = cluster else { return report };
    let viewer = viewer.clone().or_discover(&cluster.client).await;
    let scene = CheckContext { args, cluster, viewer };
    if args.pre {
        begin("requirements of an install");
        report.sections.push(permissions::check(&scene).await);
        report.sections.push(definitions::check_before_install(&scene).await);
        return report;
    }
    begin("the operator");
    report.sections.push(definitions::check(&scene).await);
    report.sections.push(operator::check(&scene).await);
    begin("webhooks");
    report.sections.push(webhooks::check(&scene).await);
    begin("pipelines and collectors");
    let (pipelines, errors) = inventory::pipelines::list_pipelines(&scene.cluster.client).await;
    let seen = inventory::collectors::list_collectors(&scene.cluster.client, &args.cluster.namespace).await;
    report.sections.push(pipelines::check(&pipelines, &errors));
    report.sections.push(collectors::check(&scene, &pipelines, &seen));
    report.sections.push(viewer::check(&scene).await);
    if !args.no_probe {
        begin("sending a span to the backend");
        report.sections.push(probe::check(&scene, &pipelines).await);
    }
    report.sections.retain(|section: &CheckSection| !section.lines.is_empty());
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_is_seconds_or_a_duration_of_a_day_at_most() {
        let read = |text| parse_wait(text).map(|limit| limit.as_secs());
        assert_eq!(["120", "90s", "5m", "1h30m"].map(read), [Ok(120), Ok(90), Ok(300), Ok(5400)]);
        for wrong in ["", "0", "-5s", "25h", "soon", "18446744073709551615"] {
            assert!(parse_wait(wrong).is_err(), "{wrong}");
        }
    }
}
