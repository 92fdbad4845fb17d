//! `kubewake trace`: the latest trace of an object, as a waterfall in the terminal.
//!
//! - [`find`]: which trace is meant; [`live`]: whether the cluster has something newer; [`model`]: a trace as the viewer tells it; [`rows`]: its spans in order, with the gaps between them; [`fold`]: those that only wrap others;
//!   [`whole`]: whether more of it is on its way; [`short`]: kubectl's short names; [`draw`]: the waterfall.
//!
//! *Guaranteed*: whatever is in a trace, every span has a line or is said to be left out, and nothing in it reaches the terminal but text.

mod draw;
mod find;
mod fold;
mod live;
mod model;
mod rows;
mod short;
mod whole;

use std::{
    io::IsTerminal as _,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use serde_json::Value;

pub(crate) use self::model::nanoseconds;
use self::{
    find::Object,
    live::{Live, Newer},
    model::Trace,
};
use crate::{
    output::{self, Format, Screen},
    place::{KubeconfigArgs, ViewerArgs},
    web::Web,
};

/// The largest traces take a second or two.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks of `--follow`.
const PAUSE: Duration = Duration::from_secs(1);
/// The first spans of a change are batched twice on their way, for a second at most each time.
const SOON: Duration = Duration::from_secs(3);
/// Between two looks for them.
const BRIEF: Duration = Duration::from_millis(100);
/// Clears the screen, and begins at its top.
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// Arguments of `kubewake trace`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  kubewake trace deployment/web -n shop
  kubewake trace head/demo --follow                        until it is as it should be
  kubewake trace head/demo --generation 2
  kubewake trace --id 4bf92f3577b34da6a3ce929d0e0e4736 -o json
  kubewake trace head/demo -o name                         the id of the trace

Kinds are written as for kubectl: Deployment, deployment, deployments, deploy. Without --namespace it is looked for in all of them.
Where the viewer's cluster, or the one that is named, has a newer generation, its first spans are waited for: --follow does so until they come. So are those of an object that
the viewer does not know, as it may be new.
Of what happened a moment ago the rest is waited for, too, for some seconds where spans have no parent yet.
A line is a span: who did what, when, and for how long. ⋯ is a time in which nothing was recorded, ✗ an error.")]
pub(crate) struct Args {
    /// The object: KIND/NAME, or KIND NAME
    #[arg(value_name = "KIND/NAME", num_args = 1..=2, required_unless_present = "id", conflicts_with = "id")]
    object: Vec<String>,
    /// The object's namespace
    #[arg(long, short, value_name = "NAMESPACE", conflicts_with = "id")]
    namespace: Option<String>,
    /// A trace by its id
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The trace of this generation of the object [default: the latest]
    #[arg(long, value_name = "N", conflicts_with = "id")]
    generation: Option<i64>,
    /// Show also spans that say nothing which the only one below them does not
    #[arg(long)]
    all: bool,
    /// Look until the object is as it should be, or has failed
    #[arg(long, short, conflicts_with_all = ["id", "generation"])]
    follow: bool,
    #[command(flatten)]
    viewer: ViewerArgs,
    #[command(flatten)]
    reach: KubeconfigArgs,
    /// The form of the output
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    output: Format,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let viewer = args.viewer.find(&args.reach).await?;
    let (web, url) = (Web::new(PATIENCE), viewer.url.as_str());
    let object = args.object()?;
    if let Some(object) = object.as_ref().filter(|_| args.generation.is_none()) {
        let live = Live::find(&args.reach, url).await?;
        if !args.follow || follow(&args, &web, url, object, live.as_ref()).await? {
            catch_up(&args, &web, url, object, live.as_ref()).await;
        }
    }
    let id = match (&args.id, &object) {
        (Some(id), _) => id.clone(),
        (None, Some(object)) => find::trace(&web, url, object, args.generation).await?,
        (None, None) => bail!("name an object as KIND/NAME, or a trace by --id"),
    };
    let trace = match args.output {
        Format::Name => fetch(&web, url, &id).await?,
        _ => whole(&web, url, &id).await?,
    };
    output::print(&shown(&args, url, &trace)?)
}

impl Args {
    fn object(&self) -> anyhow::Result<Option<Object>> {
        let (kind, name) = match self.object.as_slice() {
            [] => return Ok(None),
            [both] => {
                both.split_once('/').ok_or_else(|| misused(&format!("{both:?} is no object: write KIND/NAME")))?
            }
            [kind, name, ..] => (kind.as_str(), name.as_str()),
        };
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            return Err(misused("an object is KIND/NAME, its namespace --namespace NAME"));
        }
        Ok(Some(Object {
            kind: short::kind(kind).to_owned(),
            name: name.to_owned(),
            namespace: self.namespace.clone(),
        }))
    }
}

fn misused(words: &str) -> anyhow::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{words}\n")).into()
}

async fn fetch(web: &Web, url: &str, id: &str) -> anyhow::Result<Value> {
    let what = format!("{url}/api/v1/traces/{}", crate::web::encode(id));
    web.get(&what).await.with_context(|| format!("the viewer at {url} does not give trace {id}"))
}

/// The trace, and of what has just happened as much as comes in a moment.
async fn whole(web: &Web, url: &str, id: &str) -> anyhow::Result<Value> {
    let began = Instant::now();
    loop {
        let trace = fetch(web, url, id).await?;
        if !whole::is_awaited(&trace, SystemTime::now(), began.elapsed()) {
            return Ok(trace);
        }
        tokio::time::sleep(BRIEF).await;
    }
}

fn shown(args: &Args, url: &str, trace: &Value) -> anyhow::Result<String> {
    if let Some(document) = output::document(args.output, trace)? {
        return Ok(document);
    }
    let trace: Trace = serde_json::from_value(trace.clone()).context("the viewer's answer is no trace")?;
    Ok(match args.output {
        Format::Name => format!("{}\n", output::text::safe(&trace.trace_id)),
        _ => draw::waterfall(&trace, url, !args.all, &Screen::stdout()),
    })
}

/// A change that was made a moment ago may not have come to the viewer: its first spans are waited for, and if they do not come that is said.
async fn catch_up(args: &Args, web: &Web, url: &str, object: &Object, live: Option<&Live>) {
    let began = Instant::now();
    // Where there is a cluster it may have been made there a moment ago.
    while live.is_some() && began.elapsed() < SOON && find::is_unknown(web, url, object).await {
        tokio::time::sleep(BRIEF).await;
    }
    while let Some(newer) = missing(web, url, object, live).await {
        if began.elapsed() > SOON {
            let advice = if args.follow { "" } else { "; --follow waits for it" };
            return eprintln!("{}{advice}", newer.missed(url));
        }
        tokio::time::sleep(BRIEF).await;
    }
}

/// What the cluster has that the viewer has not.
async fn missing(web: &Web, url: &str, object: &Object, live: Option<&Live>) -> Option<Newer> {
    // Whatever is wrong is said when the trace itself is asked for.
    let (known, latest) = find::latest(web, url, object).await.ok()??;
    match latest.is_untold() {
        true => Some(Newer::untold(&known, &latest)),
        false => live?.newer(&known, &latest).await,
    }
}

/// Waits until the object's last generation is as it should be, or has failed; says whether it is, as somebody may not want to wait any longer. A terminal
/// sees how it comes about.
async fn follow(args: &Args, web: &Web, url: &str, object: &Object, live: Option<&Live>) -> anyhow::Result<bool> {
    let shows = args.output == Format::Table && std::io::stdout().is_terminal();
    let (mut last, mut said) = (String::new(), None);
    let mut say = |newer: Newer| {
        if said.as_ref() != Some(&newer) {
            eprintln!("{}", newer.awaited(url));
            said = Some(newer);
        }
    };
    loop {
        match find::latest(web, url, object).await? {
            Some((known, latest)) if latest.is_over() => {
                let Some(live) = live else { return Ok(true) };
                let Some(newer) = live.newer(&known, &latest).await else { return Ok(true) };
                say(newer);
            }
            Some((known, latest)) if latest.is_untold() => say(Newer::untold(&known, &latest)),
            Some((_, latest)) if shows => {
                if let Some(id) = latest.trace_id {
                    let drawn = shown(args, url, &fetch(web, url, &id).await?)?;
                    if drawn != last && !output::print_on(&format!("{CLEAR}{drawn}"))? {
                        return Ok(false);
                    }
                    last = drawn;
                }
            }
            _ => {}
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = tokio::signal::ctrl_c() => return Ok(false),
        }
    }
}
