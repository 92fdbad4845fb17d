//! Fetches the status of a collector.
//!
//! *Guaranteed*: a response takes bounded time and memory. *Assumed*: programs in the cluster reach pods by their
//! address. [`fetch_status_of`] is for programs that may be outside: where the address does not respond, it goes
//! through the API server.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use http::Request;
use kube::Client;
use kubewake_runtime::http_client::{HttpClient, HttpClientError};
use kubewake_status::{CollectorStatus, STATUS_PATH, STATUS_PORT};
use tokio::time::timeout;

/// A collector builds the response from counters within a millisecond. One that takes longer is too busy to
/// be asked, or cannot be reached.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

const STATUS_CLIENT: HttpClient = HttpClient { timeout: REQUEST_TIMEOUT, max_response_bytes: MAX_RESPONSE_BYTES };

/// The pod of a collector.
#[derive(Clone, Copy, Debug)]
pub struct CollectorPod<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
    pub address: Option<IpAddr>,
}

/// Why a collector's status could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum StatusFetchError {
    /// There is no response.
    #[error(transparent)]
    Request(#[from] HttpClientError),
    /// The response is not a collector's status.
    #[error("failed to parse the response")]
    Parse(#[source] serde_json::Error),
    #[error("the pod has no address")]
    NoAddress,
    /// Neither way led to a status.
    #[error("{pod}: {direct}; failed to reach the pod through the API server: {proxied}")]
    Unreachable { pod: String, direct: Box<StatusFetchError>, proxied: ProxyError },
}

/// Why the proxy of the API server did not help.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("the request timed out")]
    Timeout,
    #[error("failed to build the request")]
    Request(#[from] http::Error),
    #[error(transparent)]
    Api(#[from] kube::Error),
}

/// Fetches the status of the collector in the pod with this address.
///
/// # Errors
/// If there is no response of bounded size in bounded time.
pub async fn fetch_status(pod: IpAddr) -> Result<CollectorStatus, StatusFetchError> {
    fetch_status_from(SocketAddr::new(pod, STATUS_PORT)).await
}

/// Fetches the status of a collector at the address of its pod, or else through the API server.
///
/// # Errors
/// If neither way led to a response in bounded time.
pub async fn fetch_status_of(client: &Client, pod: CollectorPod<'_>) -> Result<CollectorStatus, StatusFetchError> {
    let direct = match pod.address {
        Some(address) => match fetch_status(address).await {
            Ok(status) => return Ok(status),
            Err(error) => error,
        },
        None => StatusFetchError::NoAddress,
    };
    let proxied = fetch_through_api_server(client, pod).await;
    proxied.map_err(|proxied| StatusFetchError::Unreachable {
        pod: pod.name.to_owned(),
        direct: Box::new(direct),
        proxied,
    })
}

async fn fetch_through_api_server(client: &Client, pod: CollectorPod<'_>) -> Result<CollectorStatus, ProxyError> {
    let CollectorPod { namespace, name, .. } = pod;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}:{STATUS_PORT}/proxy{STATUS_PATH}");
    let request = Request::get(path).body(Vec::new())?;
    Ok(timeout(REQUEST_TIMEOUT, client.request(request)).await.map_err(|_| ProxyError::Timeout)??)
}

async fn fetch_status_from(address: SocketAddr) -> Result<CollectorStatus, StatusFetchError> {
    let body = STATUS_CLIENT.get(&format!("http://{address}{STATUS_PATH}")).await?;
    serde_json::from_slice(&body).map_err(StatusFetchError::Parse)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Starts a server that answers one request with these bytes, and then closes.
    async fn start_server(answer: Vec<u8>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&answer).await;
        });
        address
    }

    fn answer(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    #[tokio::test]
    async fn status_with_unknown_fields_is_read() {
        let body = r#"{"phase": "ready", "new": [1], "revision": {"hash": "abc", "number": 1}, "refused": null, "pipelines": {}}"#;
        let report = fetch_status_from(start_server(answer(body)).await).await.unwrap();
        assert_eq!(report.revision.unwrap().hash, "abc");
    }

    #[tokio::test]
    async fn response_that_is_no_status_is_an_error() {
        let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(MAX_RESPONSE_BYTES + 1)).into_bytes();
        assert!(
            matches!(
                fetch_status_from(start_server(endless).await).await,
                Err(StatusFetchError::Request(HttpClientError::Read(_)))
            ),
            "it is too long"
        );
        let cases = [
            answer("no"),
            answer("{\"pipelines\": 1}"),
            answer(""),
            b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(),
            b"\x16\x03".to_vec(),
        ];
        for case in cases {
            assert!(
                fetch_status_from(start_server(case.clone()).await).await.is_err(),
                "{:?}",
                String::from_utf8_lossy(&case)
            );
        }
    }

    #[tokio::test]
    async fn silent_server_is_not_waited_for() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert!(matches!(
            fetch_status_from(silent.local_addr().unwrap()).await,
            Err(StatusFetchError::Request(HttpClientError::Timeout))
        ));
    }
}
