//! The client of the benchmark: keeps connections to an API server open and runs commands on them.
//!
//! It reads one command a line and answers each with a line of JSON, so that the benchmark can measure the
//! server before and after. Connections are HTTP/1.1 over TLS and stay open; each request waits for its whole
//! response; nothing is compressed.
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
//! `create`, `get`, `list` and `version` may end with the word `traced`: then each request carries a
//! `traceparent`, sampled.

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
    connect::ServerTarget,
    requests::{BenchRequest, RequestRunner},
    watch::WatchSet,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "usage: kubewake-apiclient --kubeconfig FILE [--connections N]";
/// An event that has not arrived by then is lost.
const EVENT_TIMEOUT: Duration = Duration::from_secs(60);

fn main() -> anyhow::Result<()> {
    let (path, connections) = parse_arguments(std::env::args().skip(1))?;
    let target = ServerTarget::new(credentials::read_credentials(&path)?)?;
    let lines = read_commands();
    // One thread, to leave the other cores to the server.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(target, connections, lines))
}

fn parse_arguments(mut words: impl Iterator<Item = String>) -> anyhow::Result<(PathBuf, usize)> {
    let mut path = None;
    let mut connections = 16;
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match word.as_str() {
            "--kubeconfig" => path = Some(PathBuf::from(value)),
            "--connections" => connections = value.parse()?,
            _ => bail!("unknown argument {word}\n{USAGE}"),
        }
    }
    Ok((path.context(USAGE)?, connections))
}

/// Reads the lines of standard input in a thread of its own, which ends with the process.
fn read_commands() -> mpsc::Receiver<String> {
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

async fn serve(target: ServerTarget, connections: usize, mut lines: mpsc::Receiver<String>) -> anyhow::Result<()> {
    let mut requests = RequestRunner::connect(&target, connections).await?;
    let mut watches = WatchSet::default();
    print(&json!({ "connections": connections }))?;
    while let Some(line) = lines.recv().await {
        let answer = run_command(&target, &mut requests, &mut watches, &line).await;
        print(&answer.with_context(|| format!("{line:?} failed"))?)?;
    }
    Ok(())
}

async fn run_command(
    target: &ServerTarget,
    requests: &mut RequestRunner,
    watches: &mut WatchSet,
    line: &str,
) -> anyhow::Result<Value> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let traced = words.pop_if(|word| *word == "traced").is_some();
    let ask = match words.as_slice() {
        ["create", prefix, _] => BenchRequest::Create { prefix: (*prefix).to_owned() },
        ["get", prefix, objects, _] => BenchRequest::Get { prefix: (*prefix).to_owned(), objects: objects.parse()? },
        ["list", limit, _] => BenchRequest::List { limit: limit.parse()? },
        ["version", _] => BenchRequest::Version,
        ["watch", count] => {
            watches.open(target, requests.revision().await?, count.parse()?).await?;
            requests.forget_created();
            return Ok(json!({ "watchers": watches.len() }));
        }
        ["watched"] => return watches.check(requests.created(), EVENT_TIMEOUT).await,
        ["post", path, file] => return objects::create_from_file(target, path, file).await,
        ["read", path, pointer] => return objects::read_field(target, path, pointer).await,
        ["deploy", file] => return objects::deploy_and_wait(target, file, EVENT_TIMEOUT).await,
        _ => bail!("unknown command"),
    };
    let count = words.last().context("the count is missing")?.parse()?;
    requests.send(ask, count, traced).await
}

fn print(answer: &Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{answer}")?;
    Ok(out.flush()?)
}
