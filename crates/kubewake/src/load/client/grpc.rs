//! OTLP/gRPC on a plain HTTP/2 connection: a prefix of 5 bytes, the message, and a status in the trailers.

use std::{error::Error, sync::Arc};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Version, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::TokioExecutor;
use tokio::sync::Mutex;

use super::{ExportResponse, LoadTarget, ResponseCode};

/// Connections that a request may be tried on. A connection that ends gracefully turns away a few requests,
/// which the next one accepts; a receiver that turns everything away must not be retried for ever.
const MAX_CONNECTIONS: usize = 8;

/// A connection that is opened on first use, and again after it has ended.
#[derive(Debug)]
pub(crate) struct GrpcChannel {
    target: Arc<LoadTarget>,
    state: Mutex<ChannelState>,
}

#[derive(Debug, Default)]
struct ChannelState {
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Counts the connections, so that only the one that failed is retired.
    number: u64,
}

impl GrpcChannel {
    pub(crate) fn new(target: Arc<LoadTarget>) -> Self {
        Self { target, state: Mutex::default() }
    }

    pub(super) fn target(&self) -> &LoadTarget {
        &self.target
    }

    /// Sends a request, again on another connection if the receiver did not process it.
    pub(super) async fn send(&self, body: Bytes) -> ExportResponse {
        for _ in 0..MAX_CONNECTIONS {
            let Ok((number, mut sender)) = self.sender().await else {
                return ExportResponse::from_connection_failure(ResponseCode::Connect);
            };
            let Ok(request) = self.request(body.clone()) else {
                return ExportResponse::from_connection_failure(ResponseCode::Transport);
            };
            match sender.send_request(request).await {
                Ok(response) => {
                    return read_response(response)
                        .await
                        .unwrap_or(ExportResponse::from_connection_failure(ResponseCode::Transport));
                }
                Err(error) if was_unprocessed(&error) => self.retire_connection(number).await,
                Err(_) => return ExportResponse::from_connection_failure(ResponseCode::Transport),
            }
        }
        ExportResponse::from_connection_failure(ResponseCode::Transport)
    }

    async fn sender(&self) -> anyhow::Result<(u64, SendRequest<Full<Bytes>>)> {
        let mut kept = self.state.lock().await;
        if let Some(sender) = kept.sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok((kept.number, sender.clone()));
        }
        let io = self.target.connect().await?;
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new()).handshake(io).await?;
        self.target.spawn_connection(connection);
        sender.ready().await?;
        kept.number += 1;
        kept.sender = Some(sender.clone());
        Ok((kept.number, sender))
    }

    /// Sends no further requests on this connection; requests in flight may complete.
    async fn retire_connection(&self, number: u64) {
        let mut kept = self.state.lock().await;
        if kept.number == number {
            kept.sender = None;
        }
    }

    fn request(&self, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.target.uri.clone())
            .version(Version::HTTP_2)
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers");
        let request = if self.target.gzip { request.header("grpc-encoding", "gzip") } else { request };
        request.body(Full::new(body))
    }
}

/// Whether the receiver did not process the request, according to a GOAWAY without an error or to
/// REFUSED_STREAM, or the request was never sent. hyper exposes these reasons as text only, which h2 defines.
fn was_unprocessed(error: &hyper::Error) -> bool {
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    let words = ["connection error received: not a result of an error", "refused stream before processing"];
    error.is_canceled() || words.iter().any(|words| said.contains(words))
}

async fn read_response(response: Response<Incoming>) -> Option<ExportResponse> {
    let (head, body) = response.into_parts();
    if !head.status.is_success() {
        return Some(ExportResponse::from_http(head.status, &head.headers, &[]));
    }
    let collected = body.collect().await.ok()?;
    let trailers = collected.trailers().filter(|trailers| trailers.contains_key("grpc-status"));
    let status: &HeaderMap = trailers.unwrap_or(&head.headers);
    let status = status.clone();
    let message = collected.to_bytes();
    Some(ExportResponse::from_grpc(&status, message.get(5..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use http_body_util::Full;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use kubewake_otlp::Signal;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpListener, TcpStream},
    };

    use super::*;
    use crate::load::response::ResponseDisposition;

    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    /// GOAWAY with last stream 0 and NO_ERROR.
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    /// RST_STREAM for stream 1 with REFUSED_STREAM.
    const REFUSED: [u8; 13] = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7];

    /// Waits for a request, turns it away, and waits until the client closes the connection.
    async fn turn_away(mut stream: TcpStream, with: &[u8]) {
        let mut read = Vec::new();
        // The body is the last part of the request.
        while !read.ends_with(b"body") {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
        stream.write_all(&[&SETTINGS, with].concat()).await.unwrap();
        while stream.read(&mut [0; 64]).await.is_ok_and(|read| read > 0) {}
    }

    async fn take(stream: TcpStream) {
        let service = service_fn(|_| async {
            let answer = Response::builder().header("grpc-status", "0").body(Full::new(Bytes::new()));
            Ok::<_, Infallible>(answer.unwrap())
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
    }

    /// The response to a request whose first connection ends this way, and the number of connections.
    async fn meets(end: &'static [u8]) -> (ExportResponse, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (first, _) = listener.accept().await.unwrap();
            tokio::spawn(turn_away(first, end));
            let (second, _) = listener.accept().await.unwrap();
            take(second).await;
        });
        let target = Arc::new(LoadTarget::new(&url, Signal::Traces, true, false, Duration::from_secs(10)).unwrap());
        let answer = GrpcChannel::new(target.clone()).send(Bytes::from_static(b"body")).await;
        (answer, target.connections().opened.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_request_that_was_not_looked_at_is_sent_on_a_new_connection() {
        for end in [&GOAWAY[..], &REFUSED] {
            let (answer, connections) = meets(end).await;
            assert!(matches!(answer.disposition, ResponseDisposition::Acknowledged { .. }), "{answer:?}");
            assert_eq!(connections, 2);
        }
    }

    #[tokio::test]
    async fn a_request_that_may_have_been_looked_at_is_not() {
        // RST_STREAM for stream 1 with INTERNAL_ERROR.
        let (answer, connections) = meets(&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2]).await;
        assert_eq!((answer.code, connections), (ResponseCode::Transport, 1));
    }
}
