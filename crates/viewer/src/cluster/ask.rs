//! Asks one collector how it is: its pod directly, or through the API server where pods cannot be reached from here.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use http::{Request, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde::Deserialize;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

/// Where collectors serve their status.
const PORT: u16 = 13133;
/// It is made from counters, in a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const LONGEST: usize = 4 << 20;

/// What a collector says, as far as it is shown. What it does not say is as if nothing were the matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    /// By id, such as `traces/backend`.
    pub(super) pipelines: BTreeMap<String, PipelineReport>,
    /// Pipelines that its document does not have any more, and that lost something.
    pub(super) ended: Vec<EndedReport>,
}

/// What a pipeline lost that a collector's document does not have any more.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EndedReport {
    pub(super) uid: Option<String>,
    pub(super) carries: Vec<String>,
    pub(super) dropped: BTreeMap<String, u64>,
}

/// How a pipeline is doing there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PipelineReport {
    /// Which one it is of all that have had its id; an old collector does not say.
    pub(super) uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carries data.
    pub(super) carries: Vec<String>,
    pub(super) received: u64,
    pub(super) delivered: u64,
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) failures: u64,
    pub(super) last_error: String,
    pub(super) last_error_code: Option<String>,
    pub(super) exporters: BTreeMap<String, ExporterReport>,
}

/// How full its queue is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ExporterReport {
    pub(super) queue_size: u64,
    pub(super) queue_capacity: u64,
}

/// A pod of a collector.
#[derive(Clone, Debug)]
pub(super) struct Collector {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) address: Option<IpAddr>,
    pub(super) ready: bool,
}

/// What a collector says, if it does.
pub(super) async fn ask(client: &Client, collector: &Collector) -> Option<Report> {
    if let Some(address) = collector.address
        && let Ok(Some(report)) = timeout(PATIENCE / 2, direct(address)).await
    {
        return Some(report);
    }
    let Collector { namespace, name, .. } = collector;
    let request = Request::get(format!("/api/v1/namespaces/{namespace}/pods/{name}:{PORT}/proxy/status"))
        .body(Vec::new())
        .ok()?;
    timeout(PATIENCE, client.request(request)).await.ok()?.ok()
}

async fn direct(address: IpAddr) -> Option<Report> {
    let stream = TcpStream::connect((address, PORT)).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // Dropped with this request, and the connection with it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = Request::get("/status").header(header::HOST, address.to_string()).body(Empty::<&[u8]>::new()).ok()?;
    let answer = sender.send_request(request).await.ok().filter(|answer| answer.status().is_success())?;
    let body = Limited::new(answer.into_body(), LONGEST).collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}
