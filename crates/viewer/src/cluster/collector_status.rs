//! Reads the status of one collector: from its pod directly, or through the API server where pods cannot be
//! reached.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use http::Request;
use kube::Client;
use kubewake_runtime::http_client::HttpClient;
use serde::Deserialize;
use tokio::time::timeout;

/// Port on which collectors serve their status.
const STATUS_PORT: u16 = 13133;
/// The status is computed from counters, in a millisecond.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const MAX_STATUS_BYTES: usize = 4 << 20;

/// For direct requests, which a pod answers at once or not at all.
const STATUS_CLIENT: HttpClient = HttpClient { timeout: Duration::from_secs(1), max_response_bytes: MAX_STATUS_BYTES };

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
        && let Some(report) = fetch_from_address(address).await
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
    let address = SocketAddr::new(address, STATUS_PORT);
    let body = STATUS_CLIENT.get(&format!("http://{address}/status")).await.ok()?;
    serde_json::from_slice(&body).ok()
}
