//! Reads the status of one collector: from its pod directly, or through the API server where pods cannot be
//! reached.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use http::Request;
use kube::Client;
use kubewake_runtime::http_client::HttpClient;
use kubewake_status::{CollectorStatus, STATUS_PATH, STATUS_PORT};
use tokio::time::timeout;

/// The status is computed from counters, in a millisecond.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const MAX_STATUS_BYTES: usize = 4 << 20;

/// For direct requests, which a pod answers at once or not at all.
const STATUS_CLIENT: HttpClient = HttpClient { timeout: Duration::from_secs(1), max_response_bytes: MAX_STATUS_BYTES };

#[derive(Clone, Debug)]
pub(super) struct CollectorPodAddress {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) address: Option<IpAddr>,
    pub(super) ready: bool,
}

/// Fetches the status of a collector; none if it does not respond.
pub(super) async fn fetch_status(client: &Client, collector: &CollectorPodAddress) -> Option<CollectorStatus> {
    if let Some(address) = collector.address
        && let Some(report) = fetch_from_address(address).await
    {
        return Some(report);
    }
    let CollectorPodAddress { namespace, name, .. } = collector;
    let request = Request::get(format!("/api/v1/namespaces/{namespace}/pods/{name}:{STATUS_PORT}/proxy{STATUS_PATH}"))
        .body(Vec::new())
        .ok()?;
    timeout(REQUEST_TIMEOUT, client.request(request)).await.ok()?.ok()
}

async fn fetch_from_address(address: IpAddr) -> Option<CollectorStatus> {
    let address = SocketAddr::new(address, STATUS_PORT);
    let body = STATUS_CLIENT.get(&format!("http://{address}{STATUS_PATH}")).await.ok()?;
    serde_json::from_slice(&body).ok()
}
