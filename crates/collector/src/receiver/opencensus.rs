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

use std::{future::Future, net::SocketAddr, pin::Pin, sync::Arc};

use kubewake_config::{ComponentId, model::OpenCensusReceiver};

use super::{
    Receiver,
    protocol_server::{ActiveSettings, BoundServer, ProtocolServer, bind_server},
    submitter::RequestSubmitter,
};
use crate::{
    components::{BuildError, ServerAuthLookup},
    core::{PipelineSet, StatsRegistry, Transport},
    net::{listener_pool::AddressClaims, tls},
};

/// The receiver. `None` inside: its port was handed over to its successor.
pub struct OpenCensusServer(Option<ProtocolServer<OpenCensusReceiver>>);

/// A bound and checked receiver, ready to replace another one or to start.
pub struct PreparedOpenCensus(BoundServer<OpenCensusReceiver>);

/// Binds and checks everything that `settings` need beyond `old`. The running receiver is not changed yet.
pub fn prepare(
    settings: &OpenCensusReceiver,
    old: Option<&OpenCensusServer>,
    auth: ServerAuthLookup<'_>,
    claims: &AddressClaims,
) -> Result<PreparedOpenCensus, BuildError> {
    let server = &settings.server;
    let auth = server.auth.as_ref().map(auth).transpose()?;
    let tls = server.tls.as_ref().map(|tls| tls::server_config(tls, &[b"h2", b"http/1.1"])).transpose()?;
    let live = ActiveSettings { settings: settings.clone(), tls, auth };
    bind_server(&server.endpoint, old.and_then(|old| old.0.as_ref()), claims, live).map(PreparedOpenCensus)
}

impl PreparedOpenCensus {
    /// Takes over the listener of `old` and starts. Returns the unused ports of `old`, to be closed.
    pub fn start(
        self,
        id: &ComponentId,
        old: Option<OpenCensusServer>,
        intake: &Arc<PipelineSet>,
        registry: &StatsRegistry,
    ) -> (OpenCensusServer, OpenCensusServer) {
        let mut old = old.unwrap_or(OpenCensusServer(None));
        // The Collector counts both under this name: there JSON went through a gateway to gRPC.
        let taker = Arc::new(RequestSubmitter::new(intake.clone(), registry.receiver(id, Transport::Grpc)));
        let port = self.0.start(&mut old.0, taker, connection::serve_connection);
        (OpenCensusServer(port), old)
    }
}

impl OpenCensusServer {
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.as_ref().map(|port| port.listener.address())
    }
}

impl Receiver for OpenCensusServer {
    fn shutdown(&self) {
        self.0.iter().for_each(|port| port.listener.shutdown());
    }

    fn abort(&self) {
        self.0.iter().for_each(|port| port.listener.abort());
    }

    fn wait_closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if let Some(port) = &self.0 {
                port.listener.wait_closed().await;
            }
        })
    }
}
