//! Connections to the receiver.

mod grpc;
mod http1;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use http::Uri;
use hyper_util::rt::TokioIo;
use kubewake_otlp::Signal;
use tokio::net::TcpStream;

pub(crate) use self::{grpc::GrpcChannel, http1::HttpChannel};
use super::answer::{Answer, Code};

/// Where requests go, and how long an answer may take.
#[derive(Debug)]
pub(crate) struct Target {
    address: String,
    /// The URI that the protocol asks for.
    uri: Uri,
    gzip: bool,
    timeout: Duration,
    connections: Connections,
}

/// What became of the connections of a run.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// How many were made.
    pub opened: AtomicU64,
    /// How many ended before the run did.
    pub lost: AtomicU64,
    over: AtomicBool,
}

impl Target {
    /// Understands a target of the command line, `http://host:port`, for one signal.
    pub(crate) fn new(url: &str, signal: Signal, grpc: bool, gzip: bool, timeout: Duration) -> anyhow::Result<Self> {
        let url: Uri = url.parse().with_context(|| format!("the target {url:?} is not a URL"))?;
        ensure!(url.scheme_str() == Some("http"), "the target has to begin with http://");
        let Some(authority) = url.authority() else { bail!("the target names no host") };
        let port = authority.port_u16().unwrap_or(if grpc { 4317 } else { 4318 });
        let address = format!("{}:{port}", authority.host());
        let path = if grpc { grpc_path(signal).to_owned() } else { http_path(&url, signal) };
        let uri = format!("http://{address}{path}").parse()?;
        Ok(Self { address, uri, gzip, timeout, connections: Connections::default() })
    }

    /// What became of the connections.
    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    /// From here on connections may end without being counted as lost.
    pub(crate) fn finish(&self) {
        self.connections.over.store(true, Ordering::Relaxed);
    }

    async fn connect(&self) -> std::io::Result<TokioIo<TcpStream>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        self.connections.opened.fetch_add(1, Ordering::Relaxed);
        Ok(TokioIo::new(stream))
    }

    /// Drives a connection to its end.
    fn drive(self: &Arc<Self>, connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
        let target = Arc::clone(self);
        tokio::spawn(async move {
            // How it ended does not matter: whoever used it saw that.
            let _ = connection.await;
            if !target.connections.over.load(Ordering::Relaxed) {
                target.connections.lost.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// One sender's way to the receiver.
#[derive(Debug)]
pub(crate) enum Client {
    /// Several senders share a connection.
    Grpc(Arc<GrpcChannel>),
    /// A connection carries one request at a time, so each sender has its own.
    Http(HttpChannel),
}

impl Client {
    /// Sends one request and waits for its answer.
    pub(crate) async fn send(&mut self, body: Bytes) -> Answer {
        let timeout = match self {
            Client::Grpc(channel) => channel.target().timeout,
            Client::Http(channel) => channel.target().timeout,
        };
        let answer = async {
            match self {
                Client::Grpc(channel) => channel.send(body).await,
                Client::Http(channel) => channel.send(body).await,
            }
        };
        tokio::time::timeout(timeout, answer).await.unwrap_or(Answer::broken(Code::Timeout))
    }
}

const fn grpc_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
}

/// A path in the URL is taken as it is, none means the one of the specification.
fn http_path(url: &Uri, signal: Signal) -> String {
    match url.path() {
        "" | "/" => format!("/v1/{signal}"),
        path => path.to_owned(),
    }
}
