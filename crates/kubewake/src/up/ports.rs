//! Where the parts listen: where they are asked to, or at the next port that is free.

use std::{
    collections::BTreeSet,
    io,
    net::{SocketAddr, TcpListener},
};

use serde::{Deserialize, Serialize};

/// So many ports are tried for a part.
const TRIES: u16 = 200;

/// An address for each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    /// The page.
    pub(crate) page: SocketAddr,
    /// The API server.
    pub(crate) api: SocketAddr,
    /// OTLP over gRPC.
    pub(crate) otlp: SocketAddr,
    /// OTLP over HTTP.
    pub(crate) otlp_http: SocketAddr,
}

/// A part that listens elsewhere than it was asked to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    /// Which part.
    pub(crate) what: &'static str,
    /// What was asked for.
    pub(crate) from: SocketAddr,
    /// What it got.
    pub(crate) to: SocketAddr,
}

impl Ports {
    /// Those that are free now: each as it is wanted, or the next one that no part wants. None if there is none for one of them.
    pub(crate) fn free(self, is_free: impl Fn(SocketAddr) -> bool) -> Option<Self> {
        let wanted: BTreeSet<_> = self.named().into_iter().map(|(_, address)| address).collect();
        let mut given = BTreeSet::new();
        let mut one = |address: SocketAddr| {
            let last = address.port().saturating_add(TRIES);
            let mut candidates = (address.port()..=last).map(|port| SocketAddr::new(address.ip(), port));
            let found = candidates.find(|candidate| {
                let is_ours = *candidate == address || !wanted.contains(candidate);
                is_ours && !given.contains(candidate) && is_free(*candidate)
            })?;
            // Whoever wants any port gets one of their own from the system.
            (found.port() == 0 || given.insert(found)).then_some(found)
        };
        Some(Self {
            page: one(self.page)?,
            api: one(self.api)?,
            otlp: one(self.otlp)?,
            otlp_http: one(self.otlp_http)?,
        })
    }

    /// What is elsewhere than it was wanted.
    pub(crate) fn moved(self, wanted: Self) -> Vec<Moved> {
        let pairs = wanted.named().into_iter().zip(self.named());
        let moved = pairs.filter(|((_, from), (_, to))| from.port() != 0 && from != to);
        moved.map(|((what, from), (_, to))| Moved { what, from, to }).collect()
    }

    fn named(self) -> [(&'static str, SocketAddr); 4] {
        [
            ("the page", self.page),
            ("the API server", self.api),
            ("OTLP over gRPC", self.otlp),
            ("OTLP over HTTP", self.otlp_http),
        ]
    }
}

/// An address of this machine, as somebody typed it. A port that is busy is no mistake.
pub(super) fn parse(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().map_err(|_| "it has to be an address and a port, such as 127.0.0.1:16686".to_owned())?;
    match TcpListener::bind(address) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => Err(format!("nobody can listen there: {error}")),
        _ => Ok(address),
    }
}

/// Whether somebody could listen there now.
pub(crate) fn is_free(address: SocketAddr) -> bool {
    // Whatever else is wrong with it is said by whoever listens there.
    TcpListener::bind(address).err().is_none_or(|error| error.kind() != io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests;
