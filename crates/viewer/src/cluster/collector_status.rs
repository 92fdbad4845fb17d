//! Reads the status of one collector: from its pod directly, or through the API server where pods cannot be
//! reached.

use std::{net::IpAddr, time::Duration};

use http::{Request, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::Client;
use kubewake_status::{CollectorStatus, STATUS_PATH, STATUS_PORT};
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

/// The status is computed from counters, in a millisecond.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const MAX_STATUS_BYTES: usize = 4 << 20;

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
        && let Ok(Some(report)) = timeout(REQUEST_TIMEOUT / 2, fetch_from_address(address)).await
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
    let stream = TcpStream::connect((address, STATUS_PORT)).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // Aborted with this request, which closes the connection.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let request =
        Request::get(STATUS_PATH).header(header::HOST, address.to_string()).body(Empty::<&[u8]>::new()).ok()?;
    let answer = sender.send_request(request).await.ok().filter(|answer| answer.status().is_success())?;
    let body = Limited::new(answer.into_body(), MAX_STATUS_BYTES).collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}
