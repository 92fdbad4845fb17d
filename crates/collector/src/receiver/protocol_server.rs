//! One protocol served on one address, with settings that can be replaced while it serves.

use std::{
    future::Future,
    net::SocketAddr,
    sync::{Arc, MutexGuard},
};

use arc_swap::ArcSwap;
use kubewake_runtime::{lock::Mutex, tls};
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

struct ProtocolServer<S> {
    endpoint: String,
    listener: Arc<ConnectionListener>,
    active: Arc<ArcSwap<ActiveSettings<S>>>,
}

/// The server of one protocol in a receiver. It is empty if the receiver does not serve the protocol, or its
/// successor has taken the server over.
pub(super) struct ServerSlot<S>(Mutex<Option<ProtocolServer<S>>>);

impl<S> ServerSlot<S> {
    pub(super) fn empty() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.lock().as_ref().map(|server| server.listener.address())
    }

    pub(super) fn shutdown(&self) {
        self.lock().iter().for_each(|server| server.listener.shutdown());
    }

    pub(super) fn abort(&self) {
        self.lock().iter().for_each(|server| server.listener.abort());
    }

    pub(super) async fn wait_closed(&self) {
        let listener = self.lock().as_ref().map(|server| server.listener.clone());
        if let Some(listener) = listener {
            listener.wait_closed().await;
        }
    }

    /// The address, if the server serves this endpoint.
    fn served_address(&self, endpoint: &str) -> Option<SocketAddr> {
        self.lock().as_ref().filter(|server| server.endpoint == endpoint).map(|server| server.listener.address())
    }

    fn lock(&self) -> MutexGuard<'_, Option<ProtocolServer<S>>> {
        self.0.lock()
    }
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
    previous: Option<&ServerSlot<S>>,
    claims: &AddressClaims,
    live: ActiveSettings<S>,
) -> Result<BoundServer<S>, BuildError> {
    let listener = match previous.and_then(|slot| slot.served_address(endpoint)) {
        Some(served) => claims.claim(served).map(|()| None)?,
        None => Some(claims.bind(endpoint)?),
    };
    Ok(BoundServer { endpoint: endpoint.to_owned(), active: live, listener })
}

impl<S: Send + Sync + 'static> BoundServer<S> {
    /// Starts to serve. If the previous receiver serves the address already, its server is taken over with its
    /// connections.
    pub(super) fn start<F, C>(
        self,
        previous: Option<&ServerSlot<S>>,
        taker: Arc<RequestSubmitter>,
        connection: C,
    ) -> ServerSlot<S>
    where
        C: Fn(AcceptedConnection, Arc<ArcSwap<ActiveSettings<S>>>, Arc<RequestSubmitter>, ShutdownSignal) -> F
            + Copy
            + Send
            + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let Some(socket) = self.listener else {
            let server = previous.and_then(|slot| slot.lock().take());
            return ServerSlot(Mutex::new(server.inspect(|server| server.active.store(Arc::new(self.active)))));
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
            Ok(listener) => {
                let server = ProtocolServer { endpoint: self.endpoint, listener: Arc::new(listener), active: live };
                ServerSlot(Mutex::new(Some(server)))
            }
            Err(error) => {
                tracing::error!(%error, endpoint = self.endpoint, "failed to open the listener");
                ServerSlot::empty()
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
