//! `otlp`: OTLP over gRPC and over HTTP.
//!
//! Both protocols frame requests themselves. A body that is here as a whole has all of its memory reserved before it is kept;
//! one that is still arriving has it reserved piece by piece, so that a length alone holds nothing. Where there is no memory
//! they answer at once with the retryable code that the OTLP specification names.
//! A body stays the bytes that arrived: it is scanned, not decoded.
//!
//! New settings for the same address are in force from the next request on (limits, credentials) and from the next
//! connection on (TLS, keepalive); no connection is closed for them.

mod grpc;
mod http;
mod partial;

#[cfg(feature = "fuzzing")]
pub(crate) use grpc::read_arrived;

use std::{future::Future, net::SocketAddr, pin::Pin, sync::Arc};

use kubewake_config::{
    ComponentId,
    model::{GrpcServer, HttpServer, OtlpReceiver},
};

use super::{
    Receiver,
    intake::Taker,
    port::{Live, Port, Ready, ready},
};
use crate::{
    components::{BuildError, FindAuth},
    core::{Intake, Registry, Transport},
    extension::ServerAuth,
    net::{
        listen::Door,
        sockets::{Claims, Sockets},
        tls,
    },
};

/// The receiver.
pub struct Otlp {
    grpc: Option<Port<GrpcServer>>,
    http: Option<Port<HttpServer>>,
}

/// A receiver that is ready to replace another one, or to start.
pub struct Prepared {
    grpc: Option<Ready<GrpcServer>>,
    http: Option<Ready<HttpServer>>,
}

/// Binds and checks everything that `settings` need beyond what `old` has. Nothing changes yet.
pub fn prepare(
    settings: &OtlpReceiver,
    old: Option<&Otlp>,
    auth: FindAuth<'_>,
    claims: &Claims,
) -> Result<Prepared, BuildError> {
    let grpc = settings.grpc.as_ref().map(|s| {
        let auth = s.auth.as_ref().map(auth).transpose()?;
        let tls = s.tls.as_ref().map(|t| tls::server_config(t, &[b"h2"])).transpose()?;
        ready(&s.endpoint, old.and_then(|o| o.grpc.as_ref()), claims, Live { settings: s.clone(), tls, auth })
    });
    let http = settings.http.as_ref().map(|s| {
        let auth = s.auth.as_ref().map(auth).transpose()?;
        let tls = s.tls.as_ref().map(|t| tls::server_config(t, &[b"h2", b"http/1.1"])).transpose()?;
        ready(&s.endpoint, old.and_then(|o| o.http.as_ref()), claims, Live { settings: s.clone(), tls, auth })
    });
    match (grpc.transpose(), http.transpose()) {
        (Ok(grpc), Ok(http)) => Ok(Prepared { grpc, http }),
        // Both at once, so that nobody mends one to hear of the other.
        (Err(BuildError(grpc)), Err(BuildError(http))) => Err(BuildError(format!("{grpc}; {http}"))),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// A receiver by itself, for whoever takes OTLP and is no collector. It has no authenticators but the one that requests over HTTP
/// must pass.
pub fn listen(
    settings: &OtlpReceiver,
    http_guard: Option<Arc<dyn ServerAuth>>,
    intake: &Arc<Intake>,
    registry: &Registry,
) -> Result<Otlp, BuildError> {
    let nobody = |id: &ComponentId| Err(BuildError(format!("there is no extension {id}")));
    let mut prepared = prepare(settings, None, &nobody, &Sockets::default().claims())?;
    prepared.http.iter_mut().for_each(|http| http.live.auth = http_guard.clone());
    Ok(prepared.start(&ComponentId::new("otlp"), None, intake, registry).0)
}

impl Prepared {
    /// Takes over from `old` and starts. What `old` served and this does not is handed back, to be closed.
    pub fn start(self, id: &ComponentId, old: Option<Otlp>, intake: &Arc<Intake>, registry: &Registry) -> (Otlp, Otlp) {
        let taker = |transport| Arc::new(Taker::new(intake.clone(), registry.receiver(id, transport)));
        let mut old = old.unwrap_or(Otlp { grpc: None, http: None });
        let grpc = self.grpc.and_then(|ready| ready.start(&mut old.grpc, taker(Transport::Grpc), grpc::connection));
        let http = self.http.and_then(|ready| ready.start(&mut old.http, taker(Transport::Http), http::connection));
        (Otlp { grpc, http }, old)
    }
}

impl Otlp {
    /// Where gRPC is served.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc.as_ref().map(|port| port.door.address())
    }

    /// Where HTTP is served.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(|port| port.door.address())
    }
}

impl Otlp {
    fn doors(&self) -> impl Iterator<Item = &Door> {
        [self.grpc.as_ref().map(|p| &p.door), self.http.as_ref().map(|p| &p.door)].into_iter().flatten()
    }
}

impl Receiver for Otlp {
    fn close(&self) {
        self.doors().for_each(Door::close);
    }

    fn cut(&self) {
        self.doors().for_each(Door::cut);
    }

    fn closed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            for door in self.doors() {
                door.closed().await;
            }
        })
    }
}
