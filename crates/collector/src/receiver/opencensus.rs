//! `opencensus`: receives OpenCensus spans over gRPC, and as JSON over HTTP, both on one address.
//!
//! gRPC has `TraceService/Export`, a stream of requests of which the first identifies the sender, and
//! `ExportOne`; HTTP has `POST /v1/trace`. Requests are translated into OTLP once, here, and are treated like
//! any other request from then on.
//!
//! *Guaranteed*: memory is reserved before a message is read, and before its translation grows. OpenCensus has
//! no response that tells a stream to retry later: without memory or queue room, the stream's next message is
//! not read, and HTTP/2 flow control holds the sender. `ExportOne` and JSON requests are refused instead, and
//! may be retried. A stream ends with OK when its client has sent everything, and with UNAVAILABLE when the
//! receiver closes. *Not done*: the `Config` method, and metrics.

mod connection;
mod json;
mod messages;
mod stream;

#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc};

use futures_util::future::BoxFuture;
use kubewake_config::model::OpenCensusReceiver;

use super::{
    protocol_server::{ActiveSettings, BoundServer, ServerSlot, bind_server},
    submitter::RequestSubmitter,
};
use crate::{
    components::{BuildError, PrepareReceiver, PreparedReceiver, Receiver, ReceiverContext, ReceiverSite},
    core::Transport,
    net::tls,
};

pub struct OpenCensusServer(ServerSlot<OpenCensusReceiver>);

/// A bound and checked receiver, ready to replace another one or to start.
pub struct PreparedOpenCensus(BoundServer<OpenCensusReceiver>);

/// Binds and checks everything that `settings` need beyond the previous receiver, which is not changed yet.
pub(crate) fn prepare(
    settings: &OpenCensusReceiver,
    context: &ReceiverContext<'_>,
) -> Result<PreparedReceiver, BuildError> {
    let server = &settings.server;
    let auth = server.auth.as_ref().map(context.auth).transpose()?;
    let tls = server.tls.as_ref().map(|tls| tls::server_config(tls, &[b"h2", b"http/1.1"])).transpose()?;
    let active = ActiveSettings { settings: settings.clone(), tls, auth };
    let previous = context.previous().map(|previous: &OpenCensusServer| &previous.0);
    let bound = bind_server(&server.endpoint, previous, context.claims, active)?;
    Ok(PreparedReceiver::new(PreparedOpenCensus(bound)))
}

impl PrepareReceiver for PreparedOpenCensus {
    type Running = OpenCensusServer;

    fn start(self, previous: Option<&OpenCensusServer>, site: &ReceiverSite<'_>) -> OpenCensusServer {
        // The Collector counts both under this name: there JSON went through a gateway to gRPC.
        let stats = site.registry.receiver(site.id, Transport::Grpc);
        let submitter = Arc::new(RequestSubmitter::new(site.pipelines.clone(), stats));
        let previous = previous.map(|previous| &previous.0);
        OpenCensusServer(self.0.start(previous, submitter, connection::serve_connection))
    }
}

impl Receiver for OpenCensusServer {
    fn listeners(&self) -> Vec<(&'static str, SocketAddr)> {
        self.0.address().map(|address| ("grpc", address)).into_iter().collect()
    }

    fn shutdown(&self) {
        self.0.shutdown();
    }

    fn abort(&self) {
        self.0.abort();
    }

    fn wait_closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.wait_closed())
    }
}
