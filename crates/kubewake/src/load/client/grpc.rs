//! OTLP/gRPC on an HTTP/2 connection of our own: a prefix of 5 bytes, the message, and a status in the trailers.

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

use super::{Answer, Code, Target};

/// Connections that a request may meet the end of. One that ends gracefully turns away a few requests, and the next one
/// takes them; a receiver that turns everything away must not be asked for ever.
const MAX_CONNECTIONS: usize = 8;

/// A connection, and the wish to have one.
#[derive(Debug)]
pub(crate) struct GrpcChannel {
    target: Arc<Target>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    sender: Option<SendRequest<Full<Bytes>>>,
    /// Counts the connections, so that only the one that was tried is given up.
    number: u64,
}

impl GrpcChannel {
    /// A channel that connects when it is first used.
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self { target, kept: Mutex::default() }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends a request, on another connection if the first one ended before it was looked at.
    pub(super) async fn send(&self, body: Bytes) -> Answer {
        for _ in 0..MAX_CONNECTIONS {
            let Ok((number, mut sender)) = self.sender().await else { return Answer::broken(Code::Connect) };
            let Ok(request) = self.request(body.clone()) else { return Answer::broken(Code::Transport) };
            match sender.send_request(request).await {
                Ok(response) => return read_answer(response).await.unwrap_or(Answer::broken(Code::Transport)),
                Err(error) if was_not_looked_at(&error) => self.give_up(number).await,
                Err(_) => return Answer::broken(Code::Transport),
            }
        }
        Answer::broken(Code::Transport)
    }

    async fn sender(&self) -> anyhow::Result<(u64, SendRequest<Full<Bytes>>)> {
        let mut kept = self.kept.lock().await;
        if let Some(sender) = kept.sender.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok((kept.number, sender.clone()));
        }
        let io = self.target.connect().await?;
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new()).handshake(io).await?;
        self.target.drive(connection);
        sender.ready().await?;
        kept.number += 1;
        kept.sender = Some(sender.clone());
        Ok((kept.number, sender))
    }

    /// Takes nothing more on this connection; what is under way on it may end.
    async fn give_up(&self, number: u64) {
        let mut kept = self.kept.lock().await;
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

/// Whether the receiver said that it did not process the request: by a GOAWAY of a connection that ends in peace, or by
/// REFUSED_STREAM. Or it was never sent. HTTP/2 says so in words only; what they are is fixed by h2's table of reasons.
fn was_not_looked_at(error: &hyper::Error) -> bool {
    let said = error.source().map(ToString::to_string).unwrap_or_default();
    let words = ["connection error received: not a result of an error", "refused stream before processing"];
    error.is_canceled() || words.iter().any(|words| said.contains(words))
}

async fn read_answer(response: Response<Incoming>) -> Option<Answer> {
    let (head, body) = response.into_parts();
    if !head.status.is_success() {
        return Some(Answer::from_http(head.status, &head.headers, &[]));
    }
    let collected = body.collect().await.ok()?;
    let trailers = collected.trailers().filter(|trailers| trailers.contains_key("grpc-status"));
    let status: &HeaderMap = trailers.unwrap_or(&head.headers);
    let status = status.clone();
    let message = collected.to_bytes();
    Some(Answer::from_grpc(&status, message.get(5..).unwrap_or_default()))
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
    use crate::load::answer::Verdict;

    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    /// The last stream that was looked at is none, and there was no error.
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    /// Of stream 1: REFUSED_STREAM.
    const REFUSED: [u8; 13] = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7];

    /// Waits for a request, turns it away, and waits until the client goes.
    async fn turn_away(mut stream: TcpStream, with: &[u8]) {
        let mut read = Vec::new();
        // The body is the last that comes.
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

    /// What becomes of a request whose first connection is ended so.
    async fn meets(end: &'static [u8]) -> (Answer, u64) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let (first, _) = listener.accept().await.unwrap();
            tokio::spawn(turn_away(first, end));
            let (second, _) = listener.accept().await.unwrap();
            take(second).await;
        });
        let target = Arc::new(Target::new(&url, Signal::Traces, true, false, Duration::from_secs(10)).unwrap());
        let answer = GrpcChannel::new(target.clone()).send(Bytes::from_static(b"body")).await;
        (answer, target.connections().opened.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_request_that_was_not_looked_at_is_sent_on_a_new_connection() {
        for end in [&GOAWAY[..], &REFUSED] {
            let (answer, connections) = meets(end).await;
            assert!(matches!(answer.verdict, Verdict::Acknowledged { .. }), "{answer:?}");
            assert_eq!(connections, 2);
        }
    }

    #[tokio::test]
    async fn a_request_that_may_have_been_looked_at_is_not() {
        // Of stream 1: INTERNAL_ERROR.
        let (answer, connections) = meets(&[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2]).await;
        assert_eq!((answer.code, connections), (Code::Transport, 1));
    }
}
