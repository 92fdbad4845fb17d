//! Fetches the status of one collector.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use kubewake_api::render::HEALTH_PORT;
use kubewake_runtime::http_client::{HttpClient, HttpClientError};

use super::report::CollectorStatusReport;

/// A collector builds the response from counters within a millisecond. One that takes longer is too busy to
/// be asked.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

const STATUS_CLIENT: HttpClient = HttpClient { timeout: REQUEST_TIMEOUT, max_response_bytes: MAX_RESPONSE_BYTES };

/// Why a collector's status could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum StatusFetchError {
    /// There is no response.
    #[error(transparent)]
    Request(#[from] HttpClientError),
    /// The response is not a collector's status.
    #[error("failed to parse the response")]
    Parse(#[source] serde_json::Error),
}

/// Fetches the status of the collector in the pod with this address.
///
/// # Errors
/// If there is no response of bounded size in bounded time.
pub async fn fetch_status(pod: IpAddr) -> Result<CollectorStatusReport, StatusFetchError> {
    fetch_status_from(SocketAddr::new(pod, HEALTH_PORT)).await
}

async fn fetch_status_from(address: SocketAddr) -> Result<CollectorStatusReport, StatusFetchError> {
    let body = STATUS_CLIENT.get(&format!("http://{address}/status")).await?;
    serde_json::from_slice(&body).map_err(StatusFetchError::Parse)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// A server that answers any request with these bytes, and then closes.
    async fn somebody(answer: Vec<u8>) -> SocketAddr {
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
    async fn a_collector_is_understood_also_if_it_says_more() {
        let body = r#"{"phase": "ready", "new": [1], "revision": {"hash": "abc", "number": 1}, "refused": null, "pipelines": {}}"#;
        let report = fetch_status_from(somebody(answer(body)).await).await.unwrap();
        assert_eq!(report.revision.unwrap().hash, "abc");
    }

    #[tokio::test]
    async fn whatever_somebody_answers_costs_little() {
        let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(MAX_RESPONSE_BYTES + 1)).into_bytes();
        assert!(
            matches!(
                fetch_status_from(somebody(endless).await).await,
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
                fetch_status_from(somebody(case.clone()).await).await.is_err(),
                "{:?}",
                String::from_utf8_lossy(&case)
            );
        }
    }

    #[tokio::test]
    async fn nobody_is_waited_for_long() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert!(matches!(
            fetch_status_from(silent.local_addr().unwrap()).await,
            Err(StatusFetchError::Request(HttpClientError::Timeout))
        ));
    }
}
