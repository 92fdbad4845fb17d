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

use std::{net::SocketAddr, sync::Arc};

use futures_util::future::BoxFuture;
use kubewake_config::{
    ComponentId,
    model::{GrpcServer, HttpServer, OtlpReceiver},
};

use super::{
    protocol_server::{ActiveSettings, BoundServer, ServerSlot, bind_server},
    submitter::RequestSubmitter,
};
use crate::{
    components::{
        BuildError, PrepareReceiver, PreparedReceiver, Receiver, ReceiverContext, ReceiverSite, ServerAuthLookup,
    },
    core::{PipelineSet, StatsRegistry, Transport},
    extension::ServerAuth,
    net::{
        listener_pool::{AddressClaims, ListenerPool},
        tls,
    },
};

pub struct OtlpServer {
    grpc: ServerSlot<GrpcServer>,
    http: ServerSlot<HttpServer>,
}

/// A bound and checked receiver, ready to replace another one or to start.
pub struct PreparedOtlp {
    grpc: Option<BoundServer<GrpcServer>>,
    http: Option<BoundServer<HttpServer>>,
}

/// Binds and checks everything that `settings` need beyond the previous receiver, which is not changed yet.
pub(crate) fn prepare(settings: &OtlpReceiver, context: &ReceiverContext<'_>) -> Result<PreparedReceiver, BuildError> {
    bind(settings, context.previous(), context.auth, context.claims).map(PreparedReceiver::new)
}

fn bind(
    settings: &OtlpReceiver,
    previous: Option<&OtlpServer>,
    auth: ServerAuthLookup<'_>,
    claims: &AddressClaims,
) -> Result<PreparedOtlp, BuildError> {
    let grpc = settings.grpc.as_ref().map(|s| {
        let auth = s.auth.as_ref().map(auth).transpose()?;
        let tls = s.tls.as_ref().map(|t| tls::server_config(t, &[b"h2"])).transpose()?;
        bind_server(
            &s.endpoint,
            previous.map(|previous| &previous.grpc),
            claims,
            ActiveSettings { settings: s.clone(), tls, auth },
        )
    });
    let http = settings.http.as_ref().map(|s| {
        let auth = s.auth.as_ref().map(auth).transpose()?;
        let tls = s.tls.as_ref().map(|t| tls::server_config(t, &[b"h2", b"http/1.1"])).transpose()?;
        bind_server(
            &s.endpoint,
            previous.map(|previous| &previous.http),
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
    let mut prepared = bind(settings, None, &nobody, &ListenerPool::default().claims())?;
    prepared.http.iter_mut().for_each(|http| http.active.auth = http_guard.clone());
    Ok(prepared.start(None, &ReceiverSite { id: &ComponentId::new("otlp"), pipelines: intake, registry }))
}

impl PrepareReceiver for PreparedOtlp {
    type Running = OtlpServer;

    fn start(self, previous: Option<&OtlpServer>, site: &ReceiverSite<'_>) -> OtlpServer {
        let submitter = |transport| {
            Arc::new(RequestSubmitter::new(site.pipelines.clone(), site.registry.receiver(site.id, transport)))
        };
        let grpc = self.grpc.map_or_else(ServerSlot::empty, |bound| {
            bound.start(previous.map(|previous| &previous.grpc), submitter(Transport::Grpc), grpc::serve_connection)
        });
        let http = self.http.map_or_else(ServerSlot::empty, |bound| {
            bound.start(previous.map(|previous| &previous.http), submitter(Transport::Http), http::serve_connection)
        });
        OtlpServer { grpc, http }
    }
}

impl OtlpServer {
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc.address()
    }

    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.address()
    }
}

impl Receiver for OtlpServer {
    fn listeners(&self) -> Vec<(&'static str, SocketAddr)> {
        let grpc = self.grpc_address().map(|address| ("grpc", address));
        grpc.into_iter().chain(self.http_address().map(|address| ("http", address))).collect()
    }

    fn shutdown(&self) {
        self.grpc.shutdown();
        self.http.shutdown();
    }

    fn abort(&self) {
        self.grpc.abort();
        self.http.abort();
    }

    fn wait_closed(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.grpc.wait_closed().await;
            self.http.wait_closed().await;
        })
    }
}
