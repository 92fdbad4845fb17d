//! `kubewake trace`: the latest trace of an object, as a waterfall in the terminal.
//!
//! - [`lookup`]: looks up the trace of an object; [`live_cluster`]: checks whether the cluster has a newer
//!   generation;
//! - [`model`]: a trace in the viewer's response; [`completeness`]: whether more of its spans are expected;
//! - [`rows`]: spans in tree order, with gaps; [`fold`]: spans that only wrap another one;
//! - [`kind_aliases`]: kubectl's short names; [`render`]: the waterfall.
//!
//! *Guaranteed*: whatever a trace contains, every span has a line or is reported as folded, and only sanitized
//! text reaches the terminal.

mod completeness;
mod fold;
mod kind_aliases;
mod live_cluster;
mod lookup;
mod model;
mod render;
mod rows;

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use serde_json::Value;

pub(crate) use self::model::nanoseconds;
use self::{
    live_cluster::{LiveCluster, NewerGeneration},
    lookup::ObjectQuery,
    model::TraceDocument,
};
use crate::{
    discovery::{KubeconfigArgs, ViewerArgs},
    http_client::JsonHttpClient,
    output::{self, OutputFormat, TerminalLayout},
};

/// The largest traces take a second or two.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two looks of `--follow`.
const FOLLOW_INTERVAL: Duration = Duration::from_secs(1);
/// The first spans of a change are batched twice on their way, for a second at most each time.
const FIRST_SPAN_TIMEOUT: Duration = Duration::from_secs(3);
/// Between two looks for them.
const FIRST_SPAN_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Clears the screen, and begins at its top.
const CLEAR_SCREEN: &str = "\u{1b}[2J\u{1b}[H";

/// Arguments of `kubewake trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake trace deployment/web -n shop
  kubewake trace head/demo --follow                        until the object has converged
  kubewake trace head/demo --generation 2
  kubewake trace --id 4bf92f3577b34da6a3ce929d0e0e4736 -o json
  kubewake trace head/demo -o name                         only the id of the trace

Kinds are written as for kubectl: Deployment, deployment, deployments, deploy. Without --namespace the command searches all
namespaces. If the viewer's cluster, or the named one, has a newer generation of the object, or the viewer does not know the
object, the command waits a few seconds for the first spans. With --follow it waits until they arrive. It also waits some
seconds for the missing parents of spans that arrived recently.
Each line is a span: service, operation, start and duration. ⋯ marks a time without recorded spans, ✗ an error.")]
pub(crate) struct TraceArgs {
    /// The object, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required_unless_present = "id", conflicts_with = "id")]
    object: Vec<String>,
    /// Namespace of the object
    #[arg(long, short, value_name = "NAMESPACE", conflicts_with = "id")]
    namespace: Option<String>,
    /// Id of a trace, instead of an object
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Show the trace of this generation of the object [default: the latest]
    #[arg(long, value_name = "N", conflicts_with = "id")]
    generation: Option<i64>,
    /// Show also spans that add nothing to their only child
    #[arg(long)]
    all: bool,
    /// Wait until the object has converged or failed
    #[arg(long, short, conflicts_with_all = ["id", "generation"])]
    follow: bool,
    #[command(flatten)]
    viewer: ViewerArgs,
    #[command(flatten)]
    kubeconfig_args: KubeconfigArgs,
    /// Output format
    #[arg(long, short, value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
}

pub(crate) async fn run(args: TraceArgs) -> anyhow::Result<()> {
    let viewer = args.viewer.discover_viewer(&args.kubeconfig_args).await?;
    let web = JsonHttpClient::new(REQUEST_TIMEOUT);
    let url = viewer.url.as_str();
    let object = args.requested_object()?;
    if let Some(object) = object.as_ref().filter(|_| args.generation.is_none()) {
        let live = LiveCluster::find_cluster(&args.kubeconfig_args, url).await?;
        if !args.follow || follow_trace(&args, &web, url, object, live.as_ref()).await? {
            wait_for_first_spans(&args, &web, url, object, live.as_ref()).await;
        }
    }
    let id = match (&args.id, &object) {
        (Some(id), _) => id.clone(),
        (None, Some(object)) => lookup::find_trace_id(&web, url, object, args.generation).await?,
        (None, None) => bail!("an object (KIND/NAME) or a trace (--id) is required"),
    };
    let trace = match args.output {
        OutputFormat::Name => fetch_trace(&web, url, &id).await?,
        _ => fetch_complete(&web, url, &id).await?,
    };
    output::print(&render_trace(&args, url, &trace)?)
}

impl TraceArgs {
    fn requested_object(&self) -> anyhow::Result<Option<ObjectQuery>> {
        let (kind, name) = match self.object.as_slice() {
            [] => return Ok(None),
            [both] => {
                both.split_once('/').ok_or_else(|| usage_error(&format!("invalid object {both:?}: write KIND/NAME")))?
            }
            [kind, name, ..] => (kind.as_str(), name.as_str()),
        };
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            return Err(usage_error("invalid object: write KIND/NAME, and the namespace as --namespace NAME"));
        }
        Ok(Some(ObjectQuery {
            kind: kind_aliases::expand_kind(kind).to_owned(),
            name: name.to_owned(),
            namespace: self.namespace.clone(),
        }))
    }
}

fn usage_error(words: &str) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{words}\n")).into()
}

async fn fetch_trace(web: &JsonHttpClient, url: &str, id: &str) -> anyhow::Result<Value> {
    let what = format!("{url}/api/v1/traces/{}", crate::http_client::percent_encode(id));
    web.get(&what).await.with_context(|| format!("failed to get trace {id} from the viewer at {url}"))
}

/// The trace, and of what has just happened as much as comes in a moment.
async fn fetch_complete(web: &JsonHttpClient, url: &str, id: &str) -> anyhow::Result<Value> {
    let began = Instant::now();
    loop {
        let trace = fetch_trace(web, url, id).await?;
        if !completeness::is_incomplete(&trace, SystemTime::now(), began.elapsed()) {
            return Ok(trace);
        }
        tokio::time::sleep(FIRST_SPAN_POLL_INTERVAL).await;
    }
}

fn render_trace(args: &TraceArgs, url: &str, trace: &Value) -> anyhow::Result<String> {
    if let Some(document) = output::serialize_document(args.output, trace)? {
        return Ok(document);
    }
    let trace: TraceDocument =
        serde_json::from_value(trace.clone()).context("failed to decode the trace from the viewer")?;
    Ok(match args.output {
        OutputFormat::Name => format!("{}\n", output::text::sanitize(&trace.trace_id)),
        _ => render::render_waterfall(&trace, url, !args.all, &TerminalLayout::stdout()),
    })
}

/// A change that was made a moment ago may not have come to the viewer: its first spans are waited for, and if
/// they do not come that is said.
async fn wait_for_first_spans(
    args: &TraceArgs,
    web: &JsonHttpClient,
    url: &str,
    object: &ObjectQuery,
    live: Option<&LiveCluster>,
) {
    let began = Instant::now();
    // The object may have been created in the cluster a moment ago.
    while live.is_some() && began.elapsed() < FIRST_SPAN_TIMEOUT && lookup::is_unknown_object(web, url, object).await {
        tokio::time::sleep(FIRST_SPAN_POLL_INTERVAL).await;
    }
    while let Some(newer) = find_newer(web, url, object, live).await {
        if began.elapsed() > FIRST_SPAN_TIMEOUT {
            let advice = if args.follow { "" } else { "; --follow waits for them" };
            return eprintln!("{}{advice}", newer.timeout_message(url));
        }
        tokio::time::sleep(FIRST_SPAN_POLL_INTERVAL).await;
    }
}

/// What the cluster has that the viewer has not.
async fn find_newer(
    web: &JsonHttpClient,
    url: &str,
    object: &ObjectQuery,
    live: Option<&LiveCluster>,
) -> Option<NewerGeneration> {
    // Errors are reported when the trace itself is looked up.
    let (known, latest) = lookup::find_latest_generation(web, url, object).await.ok()??;
    if latest.lacks_trace() {
        Some(NewerGeneration::from_untraced(&known, &latest))
    } else {
        live?.find_newer(&known, &latest).await
    }
}

/// Waits until the object's last generation is as it should be, or has failed; says whether it is, as somebody
/// may not want to wait any longer. A terminal sees how it comes about.
async fn follow_trace(
    args: &TraceArgs,
    web: &JsonHttpClient,
    url: &str,
    object: &ObjectQuery,
    live: Option<&LiveCluster>,
) -> anyhow::Result<bool> {
    let shows = args.output == OutputFormat::Table && std::io::stdout().is_terminal();
    let mut last = String::new();
    let mut said = None;
    let mut say = |newer: NewerGeneration| {
        if said.as_ref() != Some(&newer) {
            eprintln!("{}", newer.waiting_message(url));
            said = Some(newer);
        }
    };
    loop {
        match lookup::find_latest_generation(web, url, object).await? {
            Some((known, latest)) if latest.is_finished() => {
                let Some(live) = live else { return Ok(true) };
                let Some(newer) = live.find_newer(&known, &latest).await else { return Ok(true) };
                say(newer);
            }
            Some((known, latest)) if latest.lacks_trace() => say(NewerGeneration::from_untraced(&known, &latest)),
            Some((_, latest)) if shows => {
                if let Some(id) = latest.trace_id {
                    let drawn = render_trace(args, url, &fetch_trace(web, url, &id).await?)?;
                    if drawn != last && !output::print_if_open(&format!("{CLEAR_SCREEN}{drawn}"))? {
                        return Ok(false);
                    }
                    last = drawn;
                }
            }
            _ => {}
        }
        tokio::select! {
            () = tokio::time::sleep(FOLLOW_INTERVAL) => {}
            _ = tokio::signal::ctrl_c() => return Ok(false),
        }
    }
}
