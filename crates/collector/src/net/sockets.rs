//! The sockets that a process listens on.
//!
//! A document that gives an address to another component must not be refused because the address is in use: it is in use
//! by us. Whoever asks for such an address gets a second handle of the same socket; nothing that waits to be accepted is
//! lost, and the first handle goes with the component that had it.

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use socket2::SockRef;
use tokio::net::TcpListener;

use super::listen;
use crate::components::BuildError;

/// The sockets that are open.
#[derive(Clone, Debug, Default)]
pub struct Sockets(Arc<Mutex<Vec<Open>>>);

/// A socket, as long as somebody has it.
type Open = (SocketAddr, Weak<TcpListener>);

/// The addresses that one document asks for, each of them once.
#[derive(Debug)]
pub struct Claims {
    sockets: Sockets,
    taken: Mutex<BTreeSet<SocketAddr>>,
}

impl Sockets {
    /// For a new document.
    pub fn claims(&self) -> Claims {
        Claims { sockets: self.clone(), taken: Mutex::default() }
    }

    fn open(&self, address: SocketAddr) -> Option<Arc<TcpListener>> {
        let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.retain(|(_, socket)| socket.strong_count() > 0);
        sockets.iter().find(|(at, _)| *at == address).and_then(|(_, socket)| socket.upgrade())
    }

    fn add(&self, address: SocketAddr, socket: &Arc<TcpListener>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((address, Arc::downgrade(socket)));
    }
}

impl Claims {
    /// Asks for an address that the asking component has already.
    pub fn keep(&self, address: SocketAddr) -> Result<(), BuildError> {
        let new = self.taken.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
        if new { Ok(()) } else { Err(listen::busy(&address.to_string())) }
    }

    /// Listens on `endpoint` (`host:port`; without a host: on all addresses).
    pub fn bind(&self, endpoint: &str) -> Result<Arc<TcpListener>, BuildError> {
        let address = listen::resolve(endpoint)?;
        let socket = match self.sockets.open(address) {
            Some(open) => {
                second_handle(&open).map_err(|error| BuildError(format!("cannot listen on {endpoint}: {error}")))
            }
            None => listen::bind(endpoint),
        }?;
        let address =
            socket.local_addr().map_err(|error| BuildError(format!("cannot listen on {endpoint}: {error}")))?;
        self.keep(address).map_err(|_| listen::busy(endpoint))?;
        let socket = Arc::new(socket);
        self.sockets.add(address, &socket);
        Ok(socket)
    }
}

fn second_handle(socket: &TcpListener) -> io::Result<TcpListener> {
    TcpListener::from_std(SockRef::from(socket).try_clone()?.into())
}

#[cfg(test)]
mod tests {
    use tokio::{io::AsyncWriteExt, net::TcpStream};

    use super::*;

    #[tokio::test]
    async fn an_address_of_ours_is_handed_over_with_what_waits_there() {
        let sockets = Sockets::default();
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
        let sockets = Sockets::default();
        let old = sockets.claims().bind("127.0.0.1:0").unwrap();
        let address = old.local_addr().unwrap();
        let claims = sockets.claims();
        claims.keep(address).unwrap();
        let refused = claims.bind(&address.to_string()).unwrap_err();
        assert!(refused.0.contains(&address.to_string()), "{refused}");
    }

    #[tokio::test]
    async fn an_address_of_somebody_else_is_busy() {
        let theirs = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = theirs.local_addr().unwrap().to_string();
        assert!(Sockets::default().claims().bind(&endpoint).is_err());
    }
}
