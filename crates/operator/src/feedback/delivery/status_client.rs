//! Fetches the status of one collector.

use std::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use http::{Request, StatusCode, header};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kubewake_api::render::HEALTH_PORT;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use super::report::CollectorStatusReport;

/// A collector builds the response from counters within a millisecond. One that takes longer is too busy to
/// be asked.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const MAX_RESPONSE_BYTES: usize = 4 << 20;

/// Why a collector's status could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum StatusFetchError {
    #[error("the request timed out")]
    Timeout,
    #[error("failed to connect")]
    Connect(#[source] std::io::Error),
    /// The pod does not speak HTTP.
    #[error("the HTTP request failed")]
    Http(#[source] hyper::Error),
    /// The endpoint does not exist, or fails.
    #[error("unexpected HTTP status {0}")]
    Status(StatusCode),
    /// The response broke off, or is too long.
    #[error("failed to read the response")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
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
    timeout(REQUEST_TIMEOUT, send_request(address)).await.map_err(|_| StatusFetchError::Timeout)?
}

async fn send_request(address: SocketAddr) -> Result<CollectorStatusReport, StatusFetchError> {
    let stream = TcpStream::connect(address).await.map_err(StatusFetchError::Connect)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(StatusFetchError::Http)?;
    // The connection is dropped together with the request.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut request = Request::new(Empty::<&[u8]>::new());
    *request.uri_mut() = http::Uri::from_static("/status");
    if let Ok(host) = address.to_string().parse() {
        request.headers_mut().insert(header::HOST, host);
    }
    let (head, body) = sender.send_request(request).await.map_err(StatusFetchError::Http)?.into_parts();
    if head.status != StatusCode::OK {
        return Err(StatusFetchError::Status(head.status));
    }
    let body = Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(StatusFetchError::Read)?.to_bytes();
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
            matches!(fetch_status_from(somebody(endless).await).await, Err(StatusFetchError::Read(_))),
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
        assert!(matches!(fetch_status_from(silent.local_addr().unwrap()).await, Err(StatusFetchError::Timeout)));
    }
}
