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

use crate::connect::{ApiConnection, ServerTarget, request_builder};

/// The path of the collection in which all objects are created.
pub(crate) const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
/// Size of a ConfigMap.
const CONFIG_MAP_BYTES: usize = 2048;

/// A request that is sent many times.
#[derive(Clone, Debug)]
pub(crate) enum BenchRequest {
    /// A new ConfigMap of 2 KiB.
    Create {
        prefix: String,
    },
    /// Reads one of the created objects.
    Get {
        prefix: String,
        objects: usize,
    },
    List {
        limit: usize,
    },
    /// `/version`, which costs the server nothing.
    Version,
}

/// Connections, and the objects created over them.
pub(crate) struct RequestRunner {
    connections: Vec<ApiConnection>,
    /// The revisions of the objects created since the watches began.
    created: Vec<u64>,
}

/// One round, shared by all connections of one thread.
struct RequestRound {
    ask: BenchRequest,
    traced: bool,
    count: usize,
    state: RefCell<RoundProgress>,
}

#[derive(Default)]
struct RoundProgress {
    next: usize,
    latencies: Vec<Duration>,
    bytes: usize,
    created: Vec<u64>,
}

impl RequestRunner {
    pub(crate) async fn connect(target: &ServerTarget, count: usize) -> anyhow::Result<Self> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(target.connect().await?);
        }
        Ok(Self { connections, created: Vec::new() })
    }

    /// The revisions of the objects created since [`RequestRunner::forget_created`].
    pub(crate) fn created(&self) -> &[u64] {
        &self.created
    }

    /// Begins a new list of created objects.
    pub(crate) fn forget_created(&mut self) {
        self.created.clear();
    }

    /// The server's newest revision.
    pub(crate) async fn revision(&mut self) -> anyhow::Result<u64> {
        let connection = self.connections.first_mut().context("no connection is open")?;
        let empty = request_builder(&format!("{COLLECTION}?limit=1")).body(Full::default())?;
        let (_, list) = exchange(connection, empty).await?;
        parse_revision(&list).context("the list has no resourceVersion")
    }

    /// Sends a round of requests, and fails with the first unexpected response.
    pub(crate) async fn send(&mut self, ask: BenchRequest, count: usize, traced: bool) -> anyhow::Result<Value> {
        let round = Rc::new(RequestRound { ask, traced, count, state: RefCell::default() });
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

impl RequestRound {
    async fn run(self: Rc<Self>, mut connection: ApiConnection) -> anyhow::Result<ApiConnection> {
        while let Some(number) = self.next() {
            let request = self.request(number)?;
            let start = Instant::now();
            let (status, answer) = exchange(&mut connection, request).await?;
            let latency = start.elapsed();
            let wanted = if self.creates() { StatusCode::CREATED } else { StatusCode::OK };
            ensure!(status == wanted, "request {:?} failed with status {status}: {answer:?}", self.ask);
            let mut state = self.state.borrow_mut();
            state.latencies.push(latency);
            state.bytes += answer.len();
            if self.creates() {
                state.created.push(parse_revision(&answer).context("the created object has no resourceVersion")?);
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
        matches!(self.ask, BenchRequest::Create { .. })
    }

    fn request(&self, number: usize) -> anyhow::Result<Request<Full<Bytes>>> {
        let path = match &self.ask {
            BenchRequest::Create { .. } => COLLECTION.to_owned(),
            BenchRequest::Get { prefix, objects } => format!("{COLLECTION}/{prefix}-{}", number % objects),
            BenchRequest::List { limit } => format!("{COLLECTION}?limit={limit}"),
            BenchRequest::Version => "/version".to_owned(),
        };
        let mut builder = request_builder(&path);
        if self.traced {
            // A trace of its own for each request, as from as many callers.
            builder = builder.header("traceparent", format!("00-{:032x}-{:016x}-01", number + 1, number + 1));
        }
        Ok(match &self.ask {
            BenchRequest::Create { prefix } => builder
                .method(Method::POST)
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(Full::new(config_map(prefix, number)))?,
            _ => builder.body(Full::default())?,
        })
    }
}

async fn exchange(
    connection: &mut ApiConnection,
    request: Request<Full<Bytes>>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    connection.ready().await?;
    let response = connection.send_request(request).await?;
    let status = response.status();
    // Joined only as far as needed to parse it.
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

/// A realistic object: labels, and a few settings that fill the rest.
fn config_map(prefix: &str, number: usize) -> Bytes {
    let start = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{prefix}-{number}","labels":{{"app":"bench","round":"{prefix}"}}}},"data":{{"#
    );
    let mut text = start;
    let keys = 8;
    for key in 0..keys {
        let left = CONFIG_MAP_BYTES.saturating_sub(text.len() + 2) / (keys - key);
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
pub(crate) fn parse_revision(json: &[u8]) -> Option<u64> {
    let key = br#""resourceVersion":""#;
    let start = memchr::memmem::find(json, key)? + key.len();
    let digits = json.get(start..)?;
    let end = memchr::memchr(b'"', digits)?;
    std::str::from_utf8(digits.get(..end)?).ok()?.parse().ok()
}
