//! One protocol served on one address, with settings that can be replaced while it serves.

use std::{future::Future, net::SocketAddr, sync::Arc};

use arc_swap::ArcSwap;
use kubewake_runtime::tls;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};

use super::submitter::RequestSubmitter;
use crate::{
    components::BuildError,
    extension::ServerAuth,
    net::{
        listener::{self, ConnectionListener, ShutdownSignal},
        listener_pool::AddressClaims,
    },
};

/// The settings of one protocol, with the values derived from them.
pub(super) struct ActiveSettings<S> {
    pub(super) settings: S,
    pub(super) tls: Option<Arc<ServerConfig>>,
    pub(super) auth: Option<Arc<dyn ServerAuth>>,
}

pub(super) struct ProtocolServer<S> {
    endpoint: String,
    pub(super) listener: ConnectionListener,
    active: Arc<ArcSwap<ActiveSettings<S>>>,
}

/// A server that is bound and checked, and does not accept connections yet.
pub(super) struct BoundServer<S> {
    endpoint: String,
    pub(super) active: ActiveSettings<S>,
    /// `None`: the address is served already.
    listener: Option<Arc<TcpListener>>,
}

pub(super) fn bind_server<S>(
    endpoint: &str,
    old: Option<&ProtocolServer<S>>,
    claims: &AddressClaims,
    live: ActiveSettings<S>,
) -> Result<BoundServer<S>, BuildError> {
    let listener = match old.filter(|port| port.endpoint == endpoint) {
        Some(served) => claims.claim(served.listener.address()).map(|()| None)?,
        None => Some(claims.bind(endpoint)?),
    };
    Ok(BoundServer { endpoint: endpoint.to_owned(), active: live, listener })
}

impl<S: Send + Sync + 'static> BoundServer<S> {
    pub(super) fn start<F, C>(
        self,
        old: &mut Option<ProtocolServer<S>>,
        taker: Arc<RequestSubmitter>,
        connection: C,
    ) -> Option<ProtocolServer<S>>
    where
        C: Fn(AcceptedConnection, Arc<ArcSwap<ActiveSettings<S>>>, Arc<RequestSubmitter>, ShutdownSignal) -> F
            + Copy
            + Send
            + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(socket) = self.listener else {
            return old.take().inspect(|port| port.active.store(Arc::new(self.active)));
        };
        let live = Arc::new(ArcSwap::from_pointee(self.active));
        let shared = live.clone();
        let max_connections = listener::MAX_RECEIVER_CONNECTIONS;
        let opened = listener::start_listener(socket, max_connections, move |stream, peer, closing| {
            let live = shared.clone();
            let taker = taker.clone();
            async move {
                if let Some(wire) = AcceptedConnection::establish(stream, peer, live.load().tls.clone()).await {
                    connection(wire, live, taker, closing).await;
                }
            }
        });
        match opened {
            Ok(door) => Some(ProtocolServer { endpoint: self.endpoint, listener: door, active: live }),
            Err(error) => {
                tracing::error!(%error, endpoint = self.endpoint, "failed to open the listener");
                None
            }
        }
    }
}

/// A connection after its TLS handshake, if it has one.
pub(super) enum AcceptedConnection {
    Plain(TcpStream, SocketAddr),
    /// TLS, with the ALPN result: whether HTTP/2 was agreed on.
    Tls(Box<tokio_rustls::server::TlsStream<TcpStream>>, SocketAddr),
}

/// A TLS handshake takes milliseconds; a slower client holds a connection for nothing.
pub(super) const HANDSHAKE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

impl AcceptedConnection {
    async fn establish(stream: TcpStream, peer: SocketAddr, tls: Option<Arc<ServerConfig>>) -> Option<Self> {
        let Some(config) = tls else { return Some(Self::Plain(stream, peer)) };
        let stream = tls::accept(stream, peer, config, HANDSHAKE_TIMEOUT).await?;
        Some(Self::Tls(Box::new(stream), peer))
    }
}
