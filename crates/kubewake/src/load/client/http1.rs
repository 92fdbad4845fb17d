//! OTLP/HTTP on a plain HTTP/1.1 connection.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};

use super::{ExportResponse, LoadTarget, ResponseCode};

/// A connection that is opened on first use, and again after it has ended.
#[derive(Debug)]
pub(crate) struct HttpChannel {
    target: Arc<LoadTarget>,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl HttpChannel {
    pub(crate) fn new(target: Arc<LoadTarget>) -> Self {
        Self { target, sender: None }
    }

    pub(super) fn target(&self) -> &LoadTarget {
        &self.target
    }

    /// The connection is taken out during a request, so that it is dropped if there is no response.
    pub(super) async fn send(&mut self, body: Bytes) -> ExportResponse {
        let Ok(request) = self.request(body) else {
            return ExportResponse::from_connection_failure(ResponseCode::Transport);
        };
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => match self.connect().await {
                Ok(sender) => sender,
                Err(_) => return ExportResponse::from_connection_failure(ResponseCode::Connect),
            },
        };
        let answer = exchange(&mut sender, request).await;
        if answer.is_ok() {
            self.sender = Some(sender);
        }
        answer.unwrap_or(ExportResponse::from_connection_failure(ResponseCode::Transport))
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Full<Bytes>>> {
        let (mut sender, connection) = http1::handshake(self.target.connect().await?).await?;
        self.target.spawn_connection(connection);
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

async fn exchange(
    sender: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> hyper::Result<ExportResponse> {
    sender.ready().await?;
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(ExportResponse::from_http(head.status, &head.headers, &body))
}
