//! Many requests over few connections, one at a time on each.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::task::{JoinSet, LocalSet};

use crate::connect::{Connection, Target, request};

/// Where everything is created.
pub(crate) const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
/// A ConfigMap, as it is sent.
const SIZE: usize = 2048;

/// Something to be asked many times.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// A new ConfigMap of 2 KiB.
    Create { prefix: String },
    /// One of those that were created before.
    Get { prefix: String, objects: usize },
    /// So many of them.
    List { limit: usize },
    /// What costs the server nothing to know.
    Version,
}

/// Connections, and what was created over them.
pub(crate) struct Requests {
    connections: Vec<Connection>,
    /// The revisions of what was created since the watches began.
    created: Vec<u64>,
}

/// One round, shared by all connections of one thread.
struct Round {
    ask: Ask,
    traced: bool,
    count: usize,
    state: RefCell<Progress>,
}

#[derive(Default)]
struct Progress {
    next: usize,
    latencies: Vec<Duration>,
    bytes: usize,
    created: Vec<u64>,
}

impl Requests {
    /// Opens the connections.
    pub(crate) async fn connect(target: &Target, count: usize) -> anyhow::Result<Self> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(target.connect().await?);
        }
        Ok(Self { connections, created: Vec::new() })
    }

    /// The revisions of what was created since [`Requests::forget`].
    pub(crate) fn created(&self) -> &[u64] {
        &self.created
    }

    /// Begins to note what is created.
    pub(crate) fn forget(&mut self) {
        self.created.clear();
    }

    /// The newest revision of the server.
    pub(crate) async fn revision(&mut self) -> anyhow::Result<u64> {
        let connection = self.connections.first_mut().context("there is no connection")?;
        let empty = request(&format!("{COLLECTION}?limit=1")).body(Full::default())?;
        let (_, list) = exchange(connection, empty).await?;
        revision_of(&list).context("the list has no resourceVersion")
    }

    /// Sends a round of requests, and fails with the first that is not answered as it should be.
    pub(crate) async fn send(&mut self, ask: Ask, count: usize, traced: bool) -> anyhow::Result<Value> {
        let round = Rc::new(Round { ask, traced, count, state: RefCell::default() });
        let start = Instant::now();
        let local = LocalSet::new();
        let mut tasks = JoinSet::new();
        for connection in self.connections.drain(..) {
            tasks.spawn_local_on(Rc::clone(&round).run(connection), &local);
        }
        self.connections =
            local.run_until(async { tasks.join_all().await.into_iter().collect::<anyhow::Result<_>>() }).await?;
        let seconds = start.elapsed().as_secs_f64();
        let mut progress = round.state.take();
        self.created.append(&mut progress.created);
        progress.latencies.sort_unstable();
        let quantile = |share: f64| {
            let at = (progress.latencies.len() as f64 * share) as usize;
            progress.latencies.get(at).map_or(0.0, Duration::as_secs_f64) * 1000.0
        };
        Ok(json!({
            "requests": progress.latencies.len(), "seconds": seconds, "bytes": progress.bytes,
            "p50_ms": quantile(0.5), "p99_ms": quantile(0.99),
        }))
    }
}

impl Round {
    async fn run(self: Rc<Self>, mut connection: Connection) -> anyhow::Result<Connection> {
        while let Some(number) = self.next() {
            let request = self.request(number)?;
            let start = Instant::now();
            let (status, answer) = exchange(&mut connection, request).await?;
            let latency = start.elapsed();
            let wanted = if self.creates() { StatusCode::CREATED } else { StatusCode::OK };
            ensure!(status == wanted, "{:?} was answered with {status}: {answer:?}", self.ask);
            let mut state = self.state.borrow_mut();
            state.latencies.push(latency);
            state.bytes += answer.len();
            if self.creates() {
                state.created.push(revision_of(&answer).context("an object without resourceVersion was created")?);
            }
        }
        Ok(connection)
    }

    fn next(&self) -> Option<usize> {
        let mut state = self.state.borrow_mut();
        let number = state.next;
        state.next += 1;
        (number < self.count).then_some(number)
    }

    fn creates(&self) -> bool {
        matches!(self.ask, Ask::Create { .. })
    }

    fn request(&self, number: usize) -> anyhow::Result<Request<Full<Bytes>>> {
        let path = match &self.ask {
            Ask::Create { .. } => COLLECTION.to_owned(),
            Ask::Get { prefix, objects } => format!("{COLLECTION}/{prefix}-{}", number % objects),
            Ask::List { limit } => format!("{COLLECTION}?limit={limit}"),
            Ask::Version => "/version".to_owned(),
        };
        let mut builder = request(&path);
        if self.traced {
            // Another trace each time, as from as many callers.
            builder = builder.header("traceparent", format!("00-{:032x}-{:016x}-01", number + 1, number + 1));
        }
        Ok(match &self.ask {
            Ask::Create { prefix } => builder
                .method(Method::POST)
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(Full::new(config_map(prefix, number)))?,
            _ => builder.body(Full::default())?,
        })
    }
}

async fn exchange(connection: &mut Connection, request: Request<Full<Bytes>>) -> anyhow::Result<(StatusCode, Bytes)> {
    connection.ready().await?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    // Not joined beyond what is needed to look into it.
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

/// An object as people write it: labels, and a few settings that fill the rest.
fn config_map(prefix: &str, number: usize) -> Bytes {
    let start = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{prefix}-{number}","labels":{{"app":"bench","round":"{prefix}"}}}},"data":{{"#
    );
    let mut text = start;
    let keys = 8;
    for key in 0..keys {
        let left = SIZE.saturating_sub(text.len() + 2) / (keys - key);
        let head = format!(r#""setting-{key}":""#);
        let length = left.saturating_sub(head.len() + 2);
        text.push_str(&head);
        text.extend((0..length).map(|at| char::from(b'a' + ((at * 7 + number) % 26) as u8)));
        text.push_str("\",");
    }
    text.pop();
    text.push_str("}}");
    text.into()
}

/// The first `resourceVersion` in an object, a list or an event. No setting that this client writes holds one.
pub(crate) fn revision_of(json: &[u8]) -> Option<u64> {
    let key = br#""resourceVersion":""#;
    let start = memchr::memmem::find(json, key)? + key.len();
    let digits = json.get(start..)?;
    let end = memchr::memchr(b'"', digits)?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}
