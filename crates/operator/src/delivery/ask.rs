//! Asks one collector how it is.

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

use super::report::Report;

/// It is made from counters, in a millisecond. One that takes longer is too busy to be asked.
const PATIENCE: Duration = Duration::from_secs(2);
/// A pipeline takes about a kilobyte; this is enough for thousands.
const LONGEST: usize = 4 << 20;

/// Why a collector did not say how it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It took too long.
    #[error("it does not answer in time")]
    Late,
    /// Nobody is there.
    #[error("it cannot be reached")]
    Connect(#[source] std::io::Error),
    /// It does not speak HTTP.
    #[error("it does not answer")]
    Http(#[source] hyper::Error),
    /// It has no such page.
    #[error("it answers {0}")]
    Status(StatusCode),
    /// The answer broke off, or is too long.
    #[error("its answer cannot be read")]
    Read(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer is not what was asked for.
    #[error("its answer cannot be understood")]
    Parse(#[source] serde_json::Error),
}

/// What the collector in the pod of this address says.
///
/// # Errors
/// If there is no answer of bounded size in bounded time.
pub async fn ask(pod: IpAddr) -> Result<Report, Error> {
    ask_at(SocketAddr::new(pod, HEALTH_PORT)).await
}

async fn ask_at(address: SocketAddr) -> Result<Report, Error> {
    timeout(PATIENCE, get(address)).await.map_err(|_| Error::Late)?
}

async fn get(address: SocketAddr) -> Result<Report, Error> {
    let stream = TcpStream::connect(address).await.map_err(Error::Connect)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::Http)?;
    // Dropped with this request, and the connection with it.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let mut request = Request::new(Empty::<&[u8]>::new());
    *request.uri_mut() = http::Uri::from_static("/status");
    if let Ok(host) = address.to_string().parse() {
        request.headers_mut().insert(header::HOST, host);
    }
    let (head, body) = sender.send_request(request).await.map_err(Error::Http)?.into_parts();
    if head.status != StatusCode::OK {
        return Err(Error::Status(head.status));
    }
    let body = Limited::new(body, LONGEST).collect().await.map_err(Error::Read)?.to_bytes();
    serde_json::from_slice(&body).map_err(Error::Parse)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Somebody who answers everything with these bytes, and then goes.
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
        let report = ask_at(somebody(answer(body)).await).await.unwrap();
        assert_eq!(report.revision.unwrap().hash, "abc");
    }

    #[tokio::test]
    async fn whatever_somebody_answers_costs_little() {
        let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", " ".repeat(LONGEST + 1)).into_bytes();
        assert!(matches!(ask_at(somebody(endless).await).await, Err(Error::Read(_))), "it is too long");
        let cases = [
            answer("no"),
            answer("{\"pipelines\": 1}"),
            answer(""),
            b"HTTP/1.1 404 Not Found\r\n\r\n".to_vec(),
            b"\x16\x03".to_vec(),
        ];
        for case in cases {
            assert!(ask_at(somebody(case.clone()).await).await.is_err(), "{:?}", String::from_utf8_lossy(&case));
        }
    }

    #[tokio::test]
    async fn nobody_is_waited_for_long() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        assert!(matches!(ask_at(silent.local_addr().unwrap()).await, Err(Error::Late)));
    }
}
