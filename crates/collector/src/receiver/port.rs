//! One protocol on its address, and how it takes new settings.

use std::{future::Future, net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::intake::Taker;
use crate::{
    components::BuildError,
    extension::ServerAuth,
    net::{
        listen::{Closing, Door},
        sockets::Claims,
    },
};

/// The settings of one protocol, with what was made of them.
pub(super) struct Live<S> {
    pub(super) settings: S,
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) auth: Option<Arc<dyn ServerAuth>>,
}

/// One protocol on its address.
pub(super) struct Port<S> {
    endpoint: String,
    pub(super) door: Door,
    live: Arc<ArcSwap<Live<S>>>,
}

/// A port that is bound and checked, and does not accept yet.
pub(super) struct Ready<S> {
    endpoint: String,
    pub(super) live: Live<S>,
    /// `None`: the address is the one that is served already.
    listener: Option<Arc<TcpListener>>,
}

pub(super) fn ready<S>(
    endpoint: &str,
    old: Option<&Port<S>>,
    claims: &Claims,
    live: Live<S>,
) -> Result<Ready<S>, BuildError> {
    let listener = match old.filter(|port| port.endpoint == endpoint) {
        Some(served) => claims.keep(served.door.address()).map(|()| None)?,
        None => Some(claims.bind(endpoint)?),
    };
    Ok(Ready { endpoint: endpoint.to_owned(), live, listener })
}

impl<S: Send + Sync + 'static> Ready<S> {
    pub(super) fn start<F, C>(self, old: &mut Option<Port<S>>, taker: Arc<Taker>, connection: C) -> Option<Port<S>>
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

/// A connection after its TLS handshake, if it has one.
pub(super) enum Wire {
    /// Plain TCP.
    Plain(TcpStream, SocketAddr),
    /// TLS, and whether HTTP/2 was agreed on.
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>, SocketAddr),
}

/// A handshake takes milliseconds; whoever needs longer than this holds a connection for nothing.
pub(super) const HANDSHAKE_LIMIT: std::time::Duration = std::time::Duration::from_secs(10);

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
