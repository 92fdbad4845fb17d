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
    apply::{DemoClients, apply_operator, apply_sample as show, current_trace_id, wait_for_operator, wait_until_ready},
    sample::DemoSample,
    trace::{CompletedTrace, lookup_trace, wait_for_trace},
};
use crate::{
    kube_client, logging,
    output::{self, OutputFormat},
    up::{
        instance_record::{self, InstanceRecord},
        progress::StartProgress,
    },
};

/// Nobody at a terminal waits longer to learn that a cluster is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of `kubewake demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake up                 first, in another terminal
  kubewake demo head          creates a Head with children, each with a Deployment: one trace until all are ready
  kubewake demo scheduler     changes the configuration of a scheduler, which then places a pod
  kubewake demo head          changes the Head: another trace, with a link to the previous one
  kubewake demo head -o name  prints only the id of the trace, for `kubewake trace --id`")]
pub(crate) struct DemoArgs {
    /// The sample to apply or change
    sample: DemoSample,
    /// Kubeconfig of a running `kubewake up` [default: $KUBECONFIG if it is one, else the latest `kubewake up`]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Output format; `name` prints the id of the trace
    #[arg(long, short, value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
}

/// What was shown, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DemoOutput<'a> {
    object: String,
    change: &'a str,
    trace_id: &'a str,
    facts: &'a str,
    link: &'a str,
}

/// A cluster with a viewer.
struct DemoCluster {
    config: Config,
    /// Unless it is the one that kubectl finds by itself.
    kubeconfig: Option<PathBuf>,
    page: String,
    /// Where it takes OTLP over gRPC.
    otlp: String,
}

pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<()> {
    let _logging = logging::start(&logging::logs_at_level(LogLevel::Warn));
    let found = find_cluster(args.kubeconfig).await?;
    let clients = DemoClients::new(found.config, found.kubeconfig.as_deref())?;
    apply::ensure_pipeline(&clients, &found.otlp).await?;
    let step = StartProgress::new().begin_step(args.sample.operator().1);
    if apply::is_installed(&clients, args.sample).await? {
        apply::apply_definitions(&clients, args.sample).await?;
    } else {
        apply_operator(&clients, args.sample).await?;
    }
    wait_for_operator(&clients, args.sample).await?;
    let applied = show(&clients, args.sample).await?;
    drop(step);
    let title = args.sample.title();
    if args.output == OutputFormat::Table {
        println!("{title} {}", applied.change);
    }
    let step = StartProgress::new().begin_step("waiting for the complete trace");
    let is_ready = wait_until_ready(&clients, args.sample);
    let followed = wait_for_trace(&found.page, &applied.trace_id, args.sample.converge_span_name(), is_ready).await;
    let followed = followed.with_context(|| args.sample.title())?;
    drop(step);
    let facts = &followed.facts;
    let link = &followed.link;
    let shown = DemoOutput { object: title, change: &applied.change, trace_id: &applied.trace_id, facts, link };
    output::print(&match (output::serialize_document(args.output, &shown)?, args.output) {
        (Some(document), _) => document,
        (None, OutputFormat::Name) => format!("{}\n", applied.trace_id),
        (None, _) => format!("  {facts}\n  {link}\n"),
    })
}

async fn find_cluster(kubeconfig: Option<PathBuf>) -> anyhow::Result<DemoCluster> {
    if let Some(path) = kubeconfig {
        let config = kube_client::load_config(Some(&path)).await?;
        return locate_viewer(config, Some(&path)).await.with_context(|| format!("the cluster of {}", path.display()));
    }
    // Errors of a cluster that the user did not name are irrelevant.
    let own = std::env::var_os("KUBECONFIG").map(|_| None);
    let last = InstanceRecord::find_newest().map(|up| Some(up.kubeconfig));
    for file in own.into_iter().chain(last) {
        let Ok(config) = kube_client::load_config(file.as_deref()).await else { continue };
        if let Ok(found) = locate_viewer(config, file.as_deref()).await {
            return Ok(found);
        }
    }
    bail!("no running `kubewake up` found: start one in another terminal, or name its kubeconfig with --kubeconfig")
}

/// Where the viewer of this cluster is.
async fn locate_viewer(config: Config, kubeconfig: Option<&Path>) -> anyhow::Result<DemoCluster> {
    let mut brief = config.clone();
    brief.connect_timeout = Some(CONNECT_TIMEOUT);
    let told = instance_record::fetch_advertised_viewer(&Client::try_from(brief)?)
        .await
        .context("failed to get the address of the viewer")?;
    let (page, otlp) = told
        .and_then(|told| Some((told.page, told.otlp?)))
        .context("not a cluster of `kubewake up`: no viewer is registered")?;
    Ok(DemoCluster { config, kubeconfig: kubeconfig.map(Path::to_owned), page, otlp })
}
