//! `kubewake demo`: a sample is applied, and its trace followed until it is whole.
//!
//! It works on the cluster of a running `kubewake up`, and on no other: who has no viewer of ours is left alone.

mod apply;
mod sample;
mod trace;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use kube::{Client, Config};
use kubewake_config::model::LogLevel;
use serde::Serialize;

pub(crate) use self::{
    apply::{Clients, current, install, is_ready, ready, run as show},
    sample::Sample,
    trace::{Followed, follow, known},
};
use crate::{
    client, logging,
    output::{self, Format},
    up::{
        notice::{self, Notice},
        progress::Progress,
    },
};

/// Nobody at a terminal waits longer to learn that a cluster is not there.
const CONNECT: Duration = Duration::from_secs(5);

/// Arguments of `kubewake demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake up                 in another terminal
  kubewake demo head          a Head with children, each with a Deployment: one trace until all are ready
  kubewake demo scheduler     a scheduler gets another configuration, and a pod is decided by it
  kubewake demo head          the same again, with a change: another trace, with a link to the one before
  kubewake demo head -o name  the id of its trace, for `kubewake trace --id`")]
pub(crate) struct Args {
    /// What to show
    sample: Sample,
    /// The cluster of a running `kubewake up` [default: $KUBECONFIG if it is one, or the one that was started last]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The form of the output; `name` is the id of the trace
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// What was shown, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    object: String,
    change: &'a str,
    trace_id: &'a str,
    facts: &'a str,
    link: &'a str,
}

/// A cluster with a viewer.
struct Found {
    config: Config,
    /// Unless it is the one that kubectl finds by itself.
    kubeconfig: Option<PathBuf>,
    page: String,
    /// Where it takes OTLP over gRPC.
    otlp: String,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let _logging = logging::start(&logging::only(LogLevel::Warn));
    let found = find(args.kubeconfig).await?;
    let clients = Clients::new(found.config, found.kubeconfig.as_deref())?;
    apply::has_pipeline(&clients, &found.otlp).await?;
    let step = Progress::new().begin(args.sample.operator().1);
    if apply::is_installed(&clients, args.sample).await? {
        apply::define(&clients, args.sample).await?;
    } else {
        install(&clients, args.sample).await?;
    }
    ready(&clients, args.sample).await?;
    let applied = show(&clients, args.sample).await?;
    drop(step);
    let title = args.sample.title();
    if args.output == Format::Table {
        println!("{title} {}", applied.what);
    }
    let step = Progress::new().begin("until its trace is whole");
    let is_ready = is_ready(&clients, args.sample);
    let followed = follow(&found.page, &applied.trace, args.sample.converge(), is_ready).await;
    let followed = followed.with_context(|| args.sample.title())?;
    drop(step);
    let (facts, link) = (&followed.facts, &followed.link);
    let shown = Shown { object: title, change: &applied.what, trace_id: &applied.trace, facts, link };
    output::print(&match (output::document(args.output, &shown)?, args.output) {
        (Some(document), _) => document,
        (None, Format::Name) => format!("{}\n", applied.trace),
        (None, _) => format!("  {facts}\n  {link}\n"),
    })
}

async fn find(kubeconfig: Option<PathBuf>) -> anyhow::Result<Found> {
    if let Some(path) = kubeconfig {
        let config = client::config(Some(&path)).await?;
        return viewer(config, Some(&path)).await.with_context(|| format!("the cluster of {}", path.display()));
    }
    // Whatever is wrong with another cluster is no business of ours.
    let own = std::env::var_os("KUBECONFIG").map(|_| None);
    let last = Notice::find().map(|up| Some(up.kubeconfig));
    for file in own.into_iter().chain(last) {
        let Ok(config) = client::config(file.as_deref()).await else { continue };
        if let Ok(found) = viewer(config, file.as_deref()).await {
            return Ok(found);
        }
    }
    bail!("no running `kubewake up` is found: start one in another terminal, or name its kubeconfig by --kubeconfig")
}

/// Where the viewer of this cluster is.
async fn viewer(config: Config, kubeconfig: Option<&Path>) -> anyhow::Result<Found> {
    let mut brief = config.clone();
    brief.connect_timeout = Some(CONNECT);
    let told = notice::told(&Client::try_from(brief)?).await.context("it does not answer")?;
    let (page, otlp) = told
        .and_then(|told| Some((told.page, told.otlp?)))
        .context("it is none of `kubewake up`: there is no viewer")?;
    Ok(Found { config, kubeconfig: kubeconfig.map(Path::to_owned), page, otlp })
}
