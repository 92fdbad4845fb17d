//! The client of the bench: keeps connections to an API server and does on them what it is told.
//!
//! It reads one command a line and answers each with a line of JSON, so that whoever measures the server can look at it before
//! and after. Connections are HTTP/1.1 over TLS and stay open; each request waits for its whole answer; nothing is compressed.
//!
//! ```text
//! create PREFIX COUNT            new ConfigMaps PREFIX-0, PREFIX-1, …
//! get PREFIX OBJECTS COUNT       COUNT reads of these objects, in turn
//! list LIMIT COUNT               lists of so many ConfigMaps
//! version COUNT                  the least that can be asked
//! watch COUNT                    opens watches of ConfigMaps, each on a connection of its own
//! watched                        waits until each has seen what was created since, and checks the order
//! post PATH FILE                 creates the object that the file holds
//! read PATH POINTER              a field of an object
//! deploy FILE                    creates a Deployment in `default`, and waits until it is ready
//! ```
//!
//! `create`, `get`, `list` and `version` may end with the word `traced`: then each request carries a `traceparent`, sampled.

mod connect;
mod credentials;
mod objects;
mod requests;
mod watch;

use std::{io::Write as _, path::PathBuf, time::Duration};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::{
    connect::Target,
    requests::{Ask, Requests},
    watch::Watches,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: kubewake-apiclient --kubeconfig FILE [--connections N]";
/// Whoever has not seen an event by then will not see it.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let (path, connections) = arguments(std::env::args().skip(1))?;
    let target = Target::new(credentials::read(&path)?)?;
    let lines = commands();
    // One thread: what the client uses, the server lacks.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(target, connections, lines))
}

fn arguments(mut words: impl Iterator<Item = String>) -> anyhow::Result<(PathBuf, usize)> {
    let (mut path, mut connections) = (None, 16);
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--kubeconfig" => path = Some(PathBuf::from(value)),
            "--connections" => connections = value.parse()?,
            _ => bail!("{word} is unknown\n{USAGE}"),
        }
    }
    Ok((path.context(USAGE)?, connections))
}

/// The lines of standard input, read on a thread of their own, which ends with the process.
fn commands() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

async fn serve(target: Target, connections: usize, mut lines: mpsc::Receiver<String>) -> anyhow::Result<()> {
    let mut requests = Requests::connect(&target, connections).await?;
    let mut watches = Watches::default();
    print(&json!({ "connections": connections }))?;
    while let Some(line) = lines.recv().await {
        let answer = command(&target, &mut requests, &mut watches, &line).await;
        print(&answer.with_context(|| format!("{line:?} failed"))?)?;
    }
    Ok(())
}

async fn command(target: &Target, requests: &mut Requests, watches: &mut Watches, line: &str) -> anyhow::Result<Value> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let traced = words.pop_if(|word| *word == "traced").is_some();
    let ask = match words.as_slice() {
        ["create", prefix, _] => Ask::Create { prefix: (*prefix).to_owned() },
        ["get", prefix, objects, _] => Ask::Get { prefix: (*prefix).to_owned(), objects: objects.parse()? },
        ["list", limit, _] => Ask::List { limit: limit.parse()? },
        ["version", _] => Ask::Version,
        ["watch", count] => {
            watches.open(target, requests.revision().await?, count.parse()?).await?;
            requests.forget();
            return Ok(json!({ "watchers": watches.len() }));
        }
        ["watched"] => return watches.check(requests.created(), PATIENCE).await,
        ["post", path, file] => return objects::post(target, path, file).await,
        ["read", path, pointer] => return objects::read(target, path, pointer).await,
        ["deploy", file] => return objects::deploy(target, file, PATIENCE).await,
        _ => bail!("the command is unknown"),
    };
    let count = words.last().context("no count")?.parse()?;
    requests.send(ask, count, traced).await
}

fn print(answer: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}
