//! `kubewake check`: what is wrong, and how to mend it; before an install and after.
//!
//! - [`line`]: what a check says; [`code`]: all that is looked at, each under a code that stays; [`draw`]: how it is shown;
//! - [`cluster`], [`rights`], [`kinds`], [`operator`], [`webhooks`], [`pipelines`], [`collectors`], [`viewer`], [`probe`]: a section each.
//!
//! *Guaranteed*: nothing is changed but that a span is sent, which `--no-probe` prevents; every line that failed says what to do. What cannot be seen
//! from here is said to be unseen, and never to be well.

mod certificate;
mod cluster;
mod code;
mod collectors;
mod draw;
mod kinds;
mod line;
mod operator;
mod pipelines;
mod probe;
mod rights;
mod viewer;
mod webhooks;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use indicatif::ProgressBar;

use self::line::{Report, Section};
use crate::{
    output::{self, Format, Screen},
    place::{Cluster, ClusterArgs, Viewer, ViewerArgs},
    survey,
};

/// Between two looks of `--wait`.
const PAUSE: Duration = Duration::from_secs(2);
/// Nobody waits longer than a day.
const MAX_WAIT: Duration = Duration::from_secs(86_400);
/// Often enough to look alive.
const TICK: Duration = Duration::from_millis(120);

/// Arguments of `kubewake check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake check --pre                                     before an install: may I, and does the cluster fit?
  kubewake check                                           after it, with a span that is followed to the backend
  kubewake check --wait=2m --no-probe                      after an install, until a pipeline can be applied
  kubewake check --wait                                    until all is well, for five minutes at most
  kubewake check --viewer http://127.0.0.1:16686           the span has to arrive there
  kubewake check --no-probe -o json | jq -r '.sections[].lines[] | select(.result == \"failed\") | .code'

Exit codes: 0 if nothing failed (warnings do not count), 1 if something did, 2 if the arguments are wrong. With --wait, what
is still under way at the end has failed.
docs/troubleshooting.md lists every code with its causes.")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    viewer: ViewerArgs,
    /// Look at what an install needs, and at nothing else
    #[arg(long)]
    pre: bool,
    /// Look again until nothing fails and nothing is under way, for this long at most: 120, 90s, 5m [default: 5m]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, default_missing_value = "5m", value_parser = parse_wait)]
    wait: Option<Duration>,
    /// Send no span
    #[arg(long, conflicts_with_all = ["endpoint", "pre"])]
    no_probe: bool,
    /// Where to send the span, by OTLP/HTTP [default: the Service of the collectors, or through the API server]
    #[arg(long, value_name = "URL", conflicts_with = "pre")]
    endpoint: Option<String>,
    /// How long the span may take to the backend; pipelines that wait for whole traces need more than their decisionWait
    #[arg(long, value_name = "SECONDS", default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..=3600))]
    probe_seconds: u64,
    /// The form of the output; `name` is the codes of what failed
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// What the sections have at hand.
struct Scene<'a> {
    args: &'a Args,
    cluster: Cluster,
    viewer: Viewer,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let viewer = args.viewer.viewer()?;
    let deadline = args.wait.map(|limit| Instant::now() + limit);
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(TICK);
    let report = loop {
        let mut report = look(&args, &viewer, &bar).await;
        match deadline {
            Some(deadline) if report.awaited().next().is_some() && Instant::now() < deadline => {
                bar.set_message(report.awaited().map(|line| line.code.id).collect::<Vec<_>>().join(" "));
                tokio::time::sleep(PAUSE).await;
            }
            Some(_) => {
                report.fail_awaited();
                break report;
            }
            None => break report,
        }
    };
    bar.finish_and_clear();
    let text = match output::document(args.output, &report.document())? {
        Some(document) => document,
        None if args.output == Format::Name => report.failed().map(|line| format!("{}\n", line.code.id)).collect(),
        None => draw::report(&report, &Screen::stdout()),
    };
    output::print(&text)?;
    Ok(if report.failed().next().is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A number of seconds, or a duration such as `90s`, `5m` and `1h30m`, from a second to a day.
fn parse_wait(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let limit = seconds.or_else(|| text.parse::<jiff::SignedDuration>().ok().and_then(|limit| limit.try_into().ok()));
    let limit = limit.ok_or_else(|| format!("{text:?} is no duration such as 120, 90s or 5m"))?;
    let is_allowed = (Duration::from_secs(1)..=MAX_WAIT).contains(&limit);
    is_allowed.then_some(limit).ok_or_else(|| "a wait lasts from a second to a day".to_owned())
}

/// Looks once. Without a cluster there is nothing else to look at.
async fn look(args: &Args, viewer: &Viewer, bar: &ProgressBar) -> Report {
    let mut report = Report::default();
    let begin = |name: &'static str| bar.set_message(name);
    begin("the cluster");
    let (section, cluster) = cluster::look(&args.cluster).await;
    report.sections.push(section);
    let Some(cluster) = cluster else { return report };
    let viewer = viewer.clone().or_of(&cluster.client).await;
    let scene = Scene { args, cluster, viewer };
    if args.pre {
        begin("what an install needs");
        report.sections.push(rights::look(&scene).await);
        report.sections.push(kinds::before(&scene).await);
        return report;
    }
    begin("the operator");
    report.sections.push(kinds::look(&scene).await);
    report.sections.push(operator::look(&scene).await);
    begin("webhooks");
    report.sections.push(webhooks::look(&scene).await);
    begin("pipelines and collectors");
    let (pipelines, errors) = survey::pipelines::all(&scene.cluster.client).await;
    let seen = survey::collectors::all(&scene.cluster.client, &args.cluster.namespace).await;
    report.sections.push(pipelines::look(&pipelines, &errors));
    report.sections.push(collectors::look(&scene, &pipelines, &seen));
    report.sections.push(viewer::look(&scene).await);
    if !args.no_probe {
        begin("a span on its way to the backend");
        report.sections.push(probe::look(&scene, &pipelines).await);
    }
    report.sections.retain(|section: &Section| !section.lines.is_empty());
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
