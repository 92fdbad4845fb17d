//! Reads the status of one collector: from its pod directly, or through the API server where pods cannot be
//! reached.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use http::{Request, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::Client;
use serde::Deserialize;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

/// Port on which collectors serve their status.
const STATUS_PORT: u16 = 13133;
/// The status is computed from counters, in a millisecond.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const MAX_STATUS_BYTES: usize = 4 << 20;

/// The parts of a collector's status that are shown. An absent field means that nothing is wrong.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct CollectorCounts {
    /// By id, such as `traces/backend`.
    pub(super) pipelines: BTreeMap<String, PipelineCounts>,
    /// Pipelines that are no longer configured and lost data.
    pub(super) ended: Vec<EndedPipelineCounts>,
}

/// Losses of a pipeline that is no longer configured in the collector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EndedPipelineCounts {
    pub(super) uid: Option<String>,
    pub(super) carries: Vec<String>,
    pub(super) dropped: BTreeMap<String, u64>,
}

/// Counters of a pipeline in one collector.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PipelineCounts {
    /// Uid of the pipeline, which tells it from earlier ones with the same id. Old collectors do not report it.
    pub(super) uid: Option<String>,
    /// Uids of the pipelines in other collectors for which this one carries data.
    pub(super) carries: Vec<String>,
    pub(super) received: u64,
    pub(super) delivered: u64,
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) failures: u64,
    pub(super) last_error: String,
    pub(super) last_error_code: Option<String>,
    pub(super) exporters: BTreeMap<String, QueueCounts>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct QueueCounts {
    pub(super) queue_size: u64,
    pub(super) queue_capacity: u64,
}

#[derive(Clone, Debug)]
pub(super) struct CollectorPodAddress {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) address: Option<IpAddr>,
    pub(super) ready: bool,
}

/// Fetches the status of a collector; none if it does not respond.
pub(super) async fn fetch_counts(client: &Client, collector: &CollectorPodAddress) -> Option<CollectorCounts> {
    if let Some(address) = collector.address
        && let Ok(Some(report)) = timeout(REQUEST_TIMEOUT / 2, fetch_from_address(address)).await
    {
        return Some(report);
    }
    let CollectorPodAddress { namespace, name, .. } = collector;
    let request = Request::get(format!("/api/v1/namespaces/{namespace}/pods/{name}:{STATUS_PORT}/proxy/status"))
        .body(Vec::new())
        .ok()?;
    timeout(REQUEST_TIMEOUT, client.request(request)).await.ok()?.ok()
}

async fn fetch_from_address(address: IpAddr) -> Option<CollectorCounts> {
    let stream = TcpStream::connect((address, STATUS_PORT)).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // Aborted with this request, which closes the connection.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request = Request::get("/status").header(header::HOST, address.to_string()).body(Empty::<&[u8]>::new()).ok()?;
    let answer = sender.send_request(request).await.ok().filter(|answer| answer.status().is_success())?;
    let body = Limited::new(answer.into_body(), MAX_STATUS_BYTES).collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}
