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
use super::response::{ExportResponse, ResponseCode};

/// The receiver, and the timeout of its responses.
#[derive(Debug)]
pub(crate) struct LoadTarget {
    address: String,
    /// The URI of export requests.
    uri: Uri,
    gzip: bool,
    timeout: Duration,
    connections: ConnectionCounters,
}

#[derive(Debug, Default)]
pub(crate) struct ConnectionCounters {
    pub opened: AtomicU64,
    /// Connections that ended before the run did.
    pub lost: AtomicU64,
    is_finished: AtomicBool,
}

impl LoadTarget {
    /// Parses a target of the command line, `http://host:port`, for one signal.
    pub(crate) fn new(url: &str, signal: Signal, grpc: bool, gzip: bool, timeout: Duration) -> anyhow::Result<Self> {
        let url: Uri = url.parse().with_context(|| format!("the target {url:?} is not a URL"))?;
        ensure!(url.scheme_str() == Some("http"), "the target must begin with http://");
        let Some(authority) = url.authority() else { bail!("the target has no host") };
        let port = authority.port_u16().unwrap_or(if grpc { 4317 } else { 4318 });
        let address = format!("{}:{port}", authority.host());
        let path = if grpc { grpc_path(signal).to_owned() } else { http_path(&url, signal) };
        let uri = format!("http://{address}{path}").parse()?;
        Ok(Self { address, uri, gzip, timeout, connections: ConnectionCounters::default() })
    }

    pub(crate) fn connections(&self) -> &ConnectionCounters {
        &self.connections
    }

    /// From here on connections may end without being counted as lost.
    pub(crate) fn finish(&self) {
        self.connections.is_finished.store(true, Ordering::Relaxed);
    }

    async fn connect(&self) -> std::io::Result<TokioIo<TcpStream>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        self.connections.opened.fetch_add(1, Ordering::Relaxed);
        Ok(TokioIo::new(stream))
    }

    fn spawn_connection(self: &Arc<Self>, connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
        let target = Arc::clone(self);
        tokio::spawn(async move {
            // The result does not matter: a request on the connection fails with the error.
            let _ = connection.await;
            if !target.connections.is_finished.load(Ordering::Relaxed) {
                target.connections.lost.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// The connection of one sender.
#[derive(Debug)]
pub(crate) enum LoadClient {
    /// Several senders share a connection.
    Grpc(Arc<GrpcChannel>),
    /// A connection carries one request at a time, so each sender has its own.
    Http(HttpChannel),
}

impl LoadClient {
    /// Sends one request and waits for its response.
    pub(crate) async fn send(&mut self, body: Bytes) -> ExportResponse {
        let timeout = match self {
            LoadClient::Grpc(channel) => channel.target().timeout,
            LoadClient::Http(channel) => channel.target().timeout,
        };
        let answer = async {
            match self {
                LoadClient::Grpc(channel) => channel.send(body).await,
                LoadClient::Http(channel) => channel.send(body).await,
            }
        };
        tokio::time::timeout(timeout, answer)
            .await
            .unwrap_or(ExportResponse::from_connection_failure(ResponseCode::Timeout))
    }
}

const fn grpc_path(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    }
}

/// A path in the URL is used as it is; the default is that of the specification.
fn http_path(url: &Uri, signal: Signal) -> String {
    match url.path() {
        "" | "/" => format!("/v1/{signal}"),
        path => path.to_owned(),
    }
}
