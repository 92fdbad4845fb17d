//! OTLP/gRPC on an HTTP/2 connection of our own: a prefix of 5 bytes, the message, and a status in the trailers.

use std::sync::Arc;

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

/// A connection, and the wish to have one.
#[derive(Debug)]
pub(crate) struct GrpcChannel {
    target: Arc<Target>,
    sender: Mutex<Option<SendRequest<Full<Bytes>>>>,
}

impl GrpcChannel {
    /// A channel that connects when it is first used.
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self { target, sender: Mutex::new(None) }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) async fn send(&self, body: Bytes) -> Answer {
        let Ok(mut sender) = self.sender().await else { return Answer::broken(Code::Connect) };
        let Ok(request) = self.request(body) else { return Answer::broken(Code::Transport) };
        match sender.send_request(request).await {
            Ok(response) => read_answer(response).await.unwrap_or(Answer::broken(Code::Transport)),
            Err(_) => Answer::broken(Code::Transport),
        }
    }

    async fn sender(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let mut kept = self.sender.lock().await;
        if let Some(sender) = kept.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let io = self.target.connect().await?;
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new()).handshake(io).await?;
        self.target.drive(connection);
        sender.ready().await?;
        *kept = Some(sender.clone());
        Ok(sender)
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
