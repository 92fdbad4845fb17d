//! `opencensus`: spans of OpenCensus over gRPC, and in JSON over HTTP, both on one address.
//!
//! gRPC has `TraceService/Export`, a stream of requests that says who sends with the first of them, and `ExportOne`; HTTP has
//! `POST /v1/trace`. What comes is translated into OTLP once, here, and is like any other request from then on.
//!
//! *Guarantees.* Memory is reserved before a message is read, and before its translation grows. OpenCensus has no answer
//! that would tell a stream to come back later: where there is no memory or no room its next message is not read until there is, and
//! HTTP/2's flow control holds the sender. `ExportOne` and JSON are refused instead, and may come again. A stream
//! ends with OK when its client has said all, and with UNAVAILABLE when the receiver closes. *Does not* offer `Config`, nor metrics.

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
    intake::Taker,
    port::{Live, Port, Ready, ready},
};
use crate::{
    components::{BuildError, FindAuth},
    core::{Intake, Registry, Transport},
    net::{sockets::Claims, tls},
};

/// The receiver; without a port what is left of one that gave it on.
pub struct OpenCensus(Option<Port<OpenCensusReceiver>>);

/// A receiver that is ready to replace another one, or to start.
pub struct Prepared(Ready<OpenCensusReceiver>);

/// Binds and checks everything that `settings` need beyond what `old` has. Nothing changes yet.
pub fn prepare(
    settings: &OpenCensusReceiver,
    old: Option<&OpenCensus>,
    auth: FindAuth<'_>,
    claims: &Claims,
) -> Result<Prepared, BuildError> {
    let server = &settings.server;
    let auth = server.auth.as_ref().map(auth).transpose()?;
    let tls = server.tls.as_ref().map(|tls| tls::server_config(tls, &[b"h2", b"http/1.1"])).transpose()?;
    let live = Live { settings: settings.clone(), tls, auth };
    ready(&server.endpoint, old.and_then(|old| old.0.as_ref()), claims, live).map(Prepared)
}

impl Prepared {
    /// Takes over from `old` and starts. What `old` served and this does not is handed back, to be closed.
    pub fn start(
        self,
        id: &ComponentId,
        old: Option<OpenCensus>,
        intake: &Arc<Intake>,
        registry: &Registry,
    ) -> (OpenCensus, OpenCensus) {
        let mut old = old.unwrap_or(OpenCensus(None));
        // The Collector counts both under this name: there JSON went through a gateway to gRPC.
        let taker = Arc::new(Taker::new(intake.clone(), registry.receiver(id, Transport::Grpc)));
        let port = self.0.start(&mut old.0, taker, connection::serve);
        (OpenCensus(port), old)
    }
}

impl OpenCensus {
    /// Where it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.as_ref().map(|port| port.door.address())
    }
}

impl Receiver for OpenCensus {
    fn close(&self) {
        self.0.iter().for_each(|port| port.door.close());
    }

    fn cut(&self) {
        self.0.iter().for_each(|port| port.door.cut());
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            if let Some(port) = &self.0 {
                port.door.closed().await;
            }
        })
    }
}
