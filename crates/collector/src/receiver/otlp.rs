//! `otlp`: OTLP over gRPC and over HTTP.
//!
//! Both protocols frame requests themselves: they read a length, reserve that much of the memory budget, allocate
//! exactly, and only then read; or they answer at once with the retryable code that the OTLP specification names.
//! A body stays the bytes that arrived: it is scanned, not decoded.
//!
//! New settings for the same address are in force from the next request on (limits, credentials) and from the next
//! connection on (TLS, keepalive); no connection is closed for them.

mod cors;
mod grpc;
mod http;
mod intake;
mod rpc_status;

use std::{future::Future, net::SocketAddr, pin::Pin, sync::Arc};

use arc_swap::ArcSwap;
use kubewake_config::{
    ComponentId,
    model::{GrpcServer, HttpServer, OtlpReceiver},
};
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use self::intake::Taker;
use super::Receiver;
use crate::{
    components::BuildError,
    core::{Intake, Registry, Transport},
    extension::ServerAuth,
    net::{
        listen::{Closing, Door},
        sockets::Claims,
        tls,
    },
};

/// The settings of one protocol, with what was made of them.
pub(crate) struct Live<S> {
    settings: S,
    tls: Option<Arc<ServerConfig>>,
    auth: Option<Arc<dyn ServerAuth>>,
}

/// One protocol on its address.
struct Port<S> {
    endpoint: String,
    door: Door,
    live: Arc<ArcSwap<Live<S>>>,
}

/// A port that is bound and checked, and does not accept yet.
struct Ready<S> {
    endpoint: String,
    live: Live<S>,
    /// `None`: the address is the one that is served already.
    listener: Option<Arc<TcpListener>>,
}

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

/// Finds the authenticator of a server.
pub type FindAuth<'a> = &'a dyn Fn(&ComponentId) -> Result<Arc<dyn ServerAuth>, BuildError>;

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

fn ready<S>(endpoint: &str, old: Option<&Port<S>>, claims: &Claims, live: Live<S>) -> Result<Ready<S>, BuildError> {
    let listener = match old.filter(|port| port.endpoint == endpoint) {
        Some(served) => claims.keep(served.door.address()).map(|()| None)?,
        None => Some(claims.bind(endpoint)?),
    };
    Ok(Ready { endpoint: endpoint.to_owned(), live, listener })
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

impl<S: Send + Sync + 'static> Ready<S> {
    fn start<F, C>(self, old: &mut Option<Port<S>>, taker: Arc<Taker>, connection: C) -> Option<Port<S>>
    where
        C: Fn(Wire, Arc<ArcSwap<Live<S>>>, Arc<Taker>, Closing) -> F + Copy + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(listener) = self.listener else {
            return old.take().inspect(|port| port.live.store(Arc::new(self.live)));
        };
        let live = Arc::new(ArcSwap::from_pointee(self.live));
        let shared = live.clone();
        let opened = Door::open(listener, move |stream, peer, closing| {
            let (live, taker) = (shared.clone(), taker.clone());
            async move {
                if let Some(wire) = Wire::establish(stream, peer, live.load().tls.clone()).await {
                    connection(wire, live, taker, closing).await;
                }
            }
        });
        match opened {
            Ok(door) => Some(Port { endpoint: self.endpoint, door, live }),
            Err(error) => {
                tracing::error!(%error, endpoint = self.endpoint, "the listener failed as it was opened");
                None
            }
        }
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

/// A connection after its TLS handshake, if it has one.
pub(crate) enum Wire {
    /// Plain TCP.
    Plain(TcpStream, SocketAddr),
    /// TLS, and whether HTTP/2 was agreed on.
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>, SocketAddr),
}

/// A handshake takes milliseconds; whoever needs longer than this holds a connection for nothing.
const HANDSHAKE_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

impl Wire {
    async fn establish(stream: TcpStream, peer: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Option<Self> {
        let Some(config) = tls else { return Some(Self::Plain(stream, peer)) };
        let handshake = tokio::time::timeout(HANDSHAKE_LIMIT, TlsAcceptor::from(config).accept(stream));
        match handshake.await {
            Ok(Ok(stream)) => Some(Self::Tls(Box::new(stream), peer)),
            Ok(Err(error)) => {
                tracing::debug!(%peer, %error, "the TLS handshake failed");
                None
            }
            Err(_) => None,
        }
    }
}
