//! `otlp`: receives OTLP over gRPC and over HTTP.
//!
//! Both protocols frame requests themselves. A body that has arrived as a whole has all of its memory reserved
//! before it is kept; one that is still arriving has it reserved piece by piece, so that an announced length
//! alone holds nothing. Without memory a request is refused at once with the retryable code that the OTLP
//! specification names. A body stays the bytes that arrived: it is scanned, not decoded.
//!
//! New settings for the same address apply from the next request on (limits, credentials) and from the next
//! connection on (TLS, keepalive); no connection is closed for them.

mod grpc;
mod http;
mod partial_success;

#[cfg(feature = "fuzzing")]
pub(crate) use grpc::read_arrived;

use std::{future::Future, net::SocketAddr, pin::Pin, sync::Arc};

use kubewake_config::{
    ComponentId,
    model::{GrpcServer, HttpServer, OtlpReceiver},
};

use super::{
    Receiver,
    protocol_server::{ActiveSettings, BoundServer, ProtocolServer, bind_server},
    submitter::RequestSubmitter,
};
use crate::{
    components::{BuildError, ServerAuthLookup},
    core::{PipelineSet, StatsRegistry, Transport},
    extension::ServerAuth,
    net::{
        listener::ConnectionListener,
        listener_pool::{AddressClaims, ListenerPool},
        tls,
    },
};

pub struct OtlpServer {
    grpc: Option<ProtocolServer<GrpcServer>>,
    http: Option<ProtocolServer<HttpServer>>,
}

/// A bound and checked receiver, ready to replace another one or to start.
pub struct PreparedOtlp {
    grpc: Option<BoundServer<GrpcServer>>,
    http: Option<BoundServer<HttpServer>>,
}

/// Binds and checks everything that `settings` need beyond `old`. The running receiver is not changed yet.
pub fn prepare(
    settings: &OtlpReceiver,
    old: Option<&OtlpServer>,
    auth: ServerAuthLookup<'_>,
    claims: &AddressClaims,
) -> Result<PreparedOtlp, BuildError> {
    let grpc = settings.grpc.as_ref().map(|s| {
        let auth = s.auth.as_ref().map(auth).transpose()?;
        let tls = s.tls.as_ref().map(|t| tls::server_config(t, &[b"h2"])).transpose()?;
        bind_server(
            &s.endpoint,
            old.and_then(|o| o.grpc.as_ref()),
            claims,
            ActiveSettings { settings: s.clone(), tls, auth },
        )
    });
    let http = settings.http.as_ref().map(|s| {
        let auth = s.auth.as_ref().map(auth).transpose()?;
        let tls = s.tls.as_ref().map(|t| tls::server_config(t, &[b"h2", b"http/1.1"])).transpose()?;
        bind_server(
            &s.endpoint,
            old.and_then(|o| o.http.as_ref()),
            claims,
            ActiveSettings { settings: s.clone(), tls, auth },
        )
    });
    match (grpc.transpose(), http.transpose()) {
        (Ok(grpc), Ok(http)) => Ok(PreparedOtlp { grpc, http }),
        // Both errors at once, so that nobody fixes one only to find the other.
        (Err(BuildError(grpc)), Err(BuildError(http))) => Err(BuildError(format!("{grpc}; {http}"))),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// A standalone receiver, for programs that accept OTLP and are no collector. Its only authenticator is the one
/// that HTTP requests have to pass.
pub fn listen(
    settings: &OtlpReceiver,
    http_guard: Option<Arc<dyn ServerAuth>>,
    intake: &Arc<PipelineSet>,
    registry: &StatsRegistry,
) -> Result<OtlpServer, BuildError> {
    let nobody = |id: &ComponentId| Err(BuildError(format!("the extension {id} is not configured")));
    let mut prepared = prepare(settings, None, &nobody, &ListenerPool::default().claims())?;
    prepared.http.iter_mut().for_each(|http| http.active.auth = http_guard.clone());
    Ok(prepared.start(&ComponentId::new("otlp"), None, intake, registry).0)
}

impl PreparedOtlp {
    /// Takes over the listeners of `old` and starts. Returns the unused ports of `old`, to be closed.
    pub fn start(
        self,
        id: &ComponentId,
        old: Option<OtlpServer>,
        intake: &Arc<PipelineSet>,
        registry: &StatsRegistry,
    ) -> (OtlpServer, OtlpServer) {
        let taker = |transport| Arc::new(RequestSubmitter::new(intake.clone(), registry.receiver(id, transport)));
        let mut old = old.unwrap_or(OtlpServer { grpc: None, http: None });
        let grpc =
            self.grpc.and_then(|ready| ready.start(&mut old.grpc, taker(Transport::Grpc), grpc::serve_connection));
        let http =
            self.http.and_then(|ready| ready.start(&mut old.http, taker(Transport::Http), http::serve_connection));
        (OtlpServer { grpc, http }, old)
    }
}

impl OtlpServer {
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc.as_ref().map(|port| port.listener.address())
    }

    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|port| port.listener.address())
    }
}

impl OtlpServer {
    fn listeners(&self) -> impl Iterator<Item = &ConnectionListener> {
        [self.grpc.as_ref().map(|p| &p.listener), self.http.as_ref().map(|p| &p.listener)].into_iter().flatten()
    }
}

impl Receiver for OtlpServer {
    fn shutdown(&self) {
        self.listeners().for_each(ConnectionListener::shutdown);
    }

    fn abort(&self) {
        self.listeners().for_each(ConnectionListener::abort);
    }

    fn wait_closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            for door in self.listeners() {
                door.wait_closed().await;
            }
        })
    }
}
