//! OTLP/HTTP on an HTTP/1.1 connection of our own.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};

use super::{Answer, Code, Target};

/// A connection, and the wish to have one.
#[derive(Debug)]
pub(crate) struct HttpChannel {
    target: Arc<Target>,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl HttpChannel {
    /// A channel that connects when it is first used.
    pub(crate) fn new(target: Arc<Target>) -> Self {
        Self { target, sender: None }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// While a request is under way the connection is out of its place, so that one without an answer takes it along.
    pub(super) async fn send(&mut self, body: Bytes) -> Answer {
        let Ok(request) = self.request(body) else { return Answer::broken(Code::Transport) };
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => match self.connect().await {
                Ok(sender) => sender,
                Err(_) => return Answer::broken(Code::Connect),
            },
        };
        let answer = exchange(&mut sender, request).await;
        if answer.is_ok() {
            self.sender = Some(sender);
        }
        answer.unwrap_or(Answer::broken(Code::Transport))
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let (mut sender, connection) = http1::handshake(self.target.connect().await?).await?;
        self.target.drive(connection);
        sender.ready().await?;
        Ok(sender)
    }

    fn request(&self, body: Bytes) -> http::Result<Request<Full<Bytes>>> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.target.uri.path())
            .header(header::HOST, &self.target.address)
            .header(header::CONTENT_TYPE, "application/x-protobuf");
        let request = if self.target.gzip { request.header(header::CONTENT_ENCODING, "gzip") } else { request };
        request.body(Full::new(body))
    }
}

async fn exchange(sender: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> hyper::Result<Answer> {
    sender.ready().await?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Answer::from_http(head.status, &head.headers, &body))
}
