//! A collector for tests, which receives OTLP over the network.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message;
use tokio::{net::TcpListener, sync::mpsc};

/// A collector: HTTP/2 for gRPC, HTTP/1.1 for the rest.
pub(crate) struct Collector {
    pub(crate) requests: mpsc::UnboundedReceiver<(HeaderMap, ExportTraceServiceRequest)>,
}

/// The responses, one after the other; then OK.
type Answers = Arc<Mutex<VecDeque<Reply>>>;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    Grpc(&'static str),
    Http(u16),
    Rejected,
    Never,
}

impl Collector {
    pub(crate) async fn on_tcp(grpc: bool, replies: &[Reply]) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (collector, serve) = Self::new(grpc, replies);
        tokio::spawn(async move {
            loop {
                serve(TokioIo::new(listener.accept().await.unwrap().0));
            }
        });
        (collector, address)
    }

    pub(crate) fn new<S>(grpc: bool, replies: &[Reply]) -> (Self, impl Fn(TokioIo<S>) + Send + 'static)
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    {
        let answers: Answers = Arc::new(Mutex::new(replies.iter().copied().collect()));
        let (sender, requests) = mpsc::unbounded_channel();
        let serve = move |stream| {
            let answers = Arc::clone(&answers);
            let sender = sender.clone();
            tokio::spawn(async move {
                let service = hyper::service::service_fn(|request| take(request, Arc::clone(&answers), sender.clone()));
                let _ = if grpc {
                    http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await
                } else {
                    http1::Builder::new().serve_connection(stream, service).await
                };
            });
        };
        (Self { requests }, serve)
    }

    pub(crate) async fn next(&mut self) -> (HeaderMap, Vec<String>) {
        let (headers, request) = self.requests.recv().await.unwrap();
        let [resource] = request.resource_spans.try_into().unwrap();
        let names = resource.scope_spans.iter().flat_map(|scope| &scope.spans).map(|span| span.name.clone()).collect();
        (headers, names)
    }
}

async fn take(
    request: Request<Incoming>,
    answers: Answers,
    sender: mpsc::UnboundedSender<(HeaderMap, ExportTraceServiceRequest)>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let grpc = head.headers["content-type"] == "application/grpc";
    let message = if grpc { body.slice(5..) } else { body };
    let decoded = ExportTraceServiceRequest::decode(message).unwrap();
    let reply = answers.lock().unwrap().pop_front();
    let _ = sender.send((head.headers, decoded));
    let (status, grpc_status, body) = match reply {
        Some(Reply::Never) => std::future::pending().await,
        Some(Reply::Http(code)) => (code, None, Vec::new()),
        Some(Reply::Grpc(code)) => (200, Some(code), Vec::new()),
        Some(Reply::Rejected) => (200, Some("0"), vec![0x0a, 2, 8, 1]),
        None => (200, Some("0"), Vec::new()),
    };
    let mut frames: Vec<Result<Frame<Bytes>, Infallible>> = Vec::new();
    match grpc_status.filter(|_| grpc) {
        Some(status) => {
            let trailers = [(http::HeaderName::from_static("grpc-status"), status.parse().unwrap())];
            frames.push(Ok(Frame::data(framed(&body))));
            frames.push(Ok(Frame::trailers(trailers.into_iter().collect())));
        }
        None => frames.push(Ok(Frame::data(body.into()))),
    }
    let body = StreamBody::new(futures_util::stream::iter(frames)).boxed();
    Ok(Response::builder().status(StatusCode::from_u16(status).unwrap()).body(body).unwrap())
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat().into()
}
