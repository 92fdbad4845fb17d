//! Destinations for tests: real sockets on the loopback address that answer by script, and their certificates.

mod certificates;

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, Version};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewake_otlp::Signal;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::AbortHandle,
};
use tokio_rustls::TlsAcceptor;

pub(crate) use certificates::Authority;

use crate::core::{Batch, Charge, Part};

/// A batch of requests with these bytes.
pub(crate) fn batch(signal: Signal, requests: &[&[u8]]) -> Batch {
    let mut batch = Batch::empty(signal);
    for bytes in requests {
        let charge = Arc::new(Charge::exempt());
        batch.push(Part::new(Bytes::copy_from_slice(bytes), 1, Arc::default(), charge));
    }
    batch
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Seen {
    /// A header as text; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    status: u16,
    headers: HeaderMap,
    body: Vec<u8>,
    trailers: HeaderMap,
    delay: Duration,
}

fn map(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())).collect()
}

impl Reply {
    pub(crate) fn http(status: u16, headers: &[(&'static str, &str)], body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: map(headers), body: body.into(), ..Self::default() }
    }

    /// A gRPC answer that ends with trailers.
    pub(crate) fn grpc(message: &[u8], trailers: &[(&'static str, &str)]) -> Self {
        let mut body = vec![0];
        body.extend_from_slice(&(message.len() as u32).to_be_bytes());
        body.extend_from_slice(message);
        let headers = map(&[("content-type", "application/grpc")]);
        Self { status: 200, headers, body, trailers: map(trailers), ..Self::default() }
    }

    /// The same answer, this long after the request.
    pub(crate) fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    fn response(self) -> Response<BoxBody<Bytes, Infallible>> {
        let body = Full::new(Bytes::from(self.body));
        let body = if self.trailers.is_empty() {
            body.boxed()
        } else {
            body.with_trailers(std::future::ready(Some(Ok(self.trailers)))).boxed()
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status.try_into().unwrap();
        *response.headers_mut() = self.headers;
        response
    }
}

/// The protocol of the server if TLS does not negotiate it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Http1,
    Http2,
}

type Script = dyn Fn(&Seen, usize) -> Reply + Send + Sync;

#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    script: Arc<Script>,
}

impl Backend {
    /// Starts a server that answers each request by `script`, which gets the number of earlier requests.
    pub(crate) async fn start(
        speaks: Speaks,
        tls: Option<Arc<ServerConfig>>,
        script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let backend = Self { address, seen: Arc::default(), connections: Arc::default(), script: Arc::new(script) };
        tokio::spawn(backend.clone().accept(listener, speaks, tls));
        backend
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The only request.
    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1);
        seen[0].clone()
    }

    /// The number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.lock().unwrap().len()
    }

    /// Closes all connections without a response.
    pub(crate) fn hang_up(&self) {
        self.connections.lock().unwrap().iter().for_each(AbortHandle::abort);
    }

    async fn accept(self, listener: TcpListener, speaks: Speaks, tls: Option<Arc<ServerConfig>>) {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            tcp.set_nodelay(true).unwrap();
            let backend = self.clone();
            let tls = tls.clone();
            let connection = tokio::spawn(async move {
                let Some(config) = tls else { return backend.serve(tcp, speaks).await };
                // A client that does not trust the server, or is not trusted by it, ends here.
                let Ok(stream) = TlsAcceptor::from(config).accept(tcp).await else { return };
                let speaks = match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") => Speaks::Http2,
                    _ => Speaks::Http1,
                };
                backend.serve(stream, speaks).await;
            });
            self.connections.lock().unwrap().push(connection.abort_handle());
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, speaks: Speaks) {
        let service = service_fn(|request| self.clone().answer(request));
        let io = TokioIo::new(stream);
        let _ = match speaks {
            Speaks::Http1 => hyper::server::conn::http1::Builder::new().serve_connection(io, service).await,
            Speaks::Http2 => {
                hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
            }
        };
    }

    async fn answer(self, request: Request<Incoming>) -> hyper::Result<Response<BoxBody<Bytes, Infallible>>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let seen = Seen { method: head.method, uri: head.uri, version: head.version, headers: head.headers, body };
        let before = {
            let mut all = self.seen.lock().unwrap();
            all.push(seen.clone());
            all.len() - 1
        };
        let reply = (self.script)(&seen, before);
        tokio::time::sleep(reply.delay).await;
        Ok(reply.response())
    }
}
