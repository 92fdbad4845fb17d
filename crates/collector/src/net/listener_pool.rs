//! The listening sockets of a process.
//!
//! A document that moves an address to another component must not be refused because the collector itself uses
//! the address. `bind` therefore returns a second handle of the same socket. Connections that wait to be
//! accepted are not lost, and the first handle is dropped with the component that had it.

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    sync::{Arc, Weak},
};

use kubewake_runtime::lock::Mutex;
use socket2::SockRef;
use tokio::net::TcpListener;

use super::listener;
use crate::components::BuildError;

#[derive(Clone, Debug, Default)]
pub struct ListenerPool(Arc<Mutex<Vec<OpenListener>>>);

/// A socket, as long as a component uses it.
type OpenListener = (SocketAddr, Weak<TcpListener>);

/// The addresses that one document uses, each of them once.
#[derive(Debug)]
pub struct AddressClaims {
    pool: ListenerPool,
    claimed: Mutex<BTreeSet<SocketAddr>>,
}

impl ListenerPool {
    pub fn claims(&self) -> AddressClaims {
        AddressClaims { pool: self.clone(), claimed: Mutex::default() }
    }

    fn find_open(&self, address: SocketAddr) -> Option<Arc<TcpListener>> {
        let mut sockets = self.0.lock();
        sockets.retain(|(_, socket)| socket.strong_count() > 0);
        sockets.iter().find(|(at, _)| *at == address).and_then(|(_, socket)| socket.upgrade())
    }

    fn add(&self, address: SocketAddr, socket: &Arc<TcpListener>) {
        self.0.lock().push((address, Arc::downgrade(socket)));
    }
}

impl AddressClaims {
    /// Claims an address that the component already listens on.
    pub fn claim(&self, address: SocketAddr) -> Result<(), BuildError> {
        let new = self.claimed.lock().insert(address);
        if new { Ok(()) } else { Err(listener::address_in_use_error(&address.to_string())) }
    }

    /// Listens on `endpoint` (`host:port`; without a host: on all addresses).
    pub fn bind(&self, endpoint: &str) -> Result<Arc<TcpListener>, BuildError> {
        let address = listener::resolve_endpoint(endpoint)?;
        let socket = match self.pool.find_open(address) {
            Some(open) => {
                clone_socket(&open).map_err(|error| BuildError(format!("failed to listen on {endpoint}: {error}")))
            }
            None => listener::bind(endpoint),
        }?;
        let address =
            socket.local_addr().map_err(|error| BuildError(format!("failed to listen on {endpoint}: {error}")))?;
        self.claim(address).map_err(|_| listener::address_in_use_error(endpoint))?;
        let socket = Arc::new(socket);
        self.pool.add(address, &socket);
        Ok(socket)
    }
}

fn clone_socket(socket: &TcpListener) -> io::Result<TcpListener> {
    TcpListener::from_std(SockRef::from(socket).try_clone()?.into())
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncWriteExt, net::TcpStream};

    use super::*;

    #[tokio::test]
    async fn an_address_of_ours_is_handed_over_with_what_waits_there() {
        let sockets = ListenerPool::default();
        let old = sockets.claims().bind("127.0.0.1:0").unwrap();
        let address = old.local_addr().unwrap();
        let mut waiting = TcpStream::connect(address).await.unwrap();
        let new = sockets.claims().bind(&address.to_string()).unwrap();
        drop(old);
        let (_accepted, peer) = new.accept().await.unwrap();
        assert_eq!(peer, waiting.local_addr().unwrap());
        waiting.write_all(b"x").await.unwrap();
        drop(new);
        assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    }

    #[tokio::test]
    async fn an_address_is_given_once_for_a_document() {
        let sockets = ListenerPool::default();
        let old = sockets.claims().bind("127.0.0.1:0").unwrap();
        let address = old.local_addr().unwrap();
        let claims = sockets.claims();
        claims.claim(address).unwrap();
        let refused = claims.bind(&address.to_string()).unwrap_err();
        assert!(refused.0.contains(&address.to_string()), "{refused}");
    }

    #[tokio::test]
    async fn an_address_of_somebody_else_is_busy() {
        let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = theirs.local_addr().unwrap().to_string();
        assert!(ListenerPool::default().claims().bind(&endpoint).is_err());
    }
}
