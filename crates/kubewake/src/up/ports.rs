//! Addresses of the components: as requested, or with the next free port.

use std::{
    collections::BTreeSet,
    io,
    net::{SocketAddr, TcpListener},
};

use serde::{Deserialize, Serialize};

/// Ports that are tried for each component.
const MAX_PORT_ATTEMPTS: u16 = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListenAddresses {
    pub(crate) page: SocketAddr,
    pub(crate) api: SocketAddr,
    pub(crate) otlp: SocketAddr,
    pub(crate) otlp_http: SocketAddr,
}

/// A component that listens at another address than requested.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MovedAddress {
    pub(crate) what: &'static str,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
}

impl ListenAddresses {
    /// The addresses that are free now: each as requested, or with the next port that no component requests.
    /// None if one of them has no free port.
    pub(crate) fn next_free(self, is_free: impl Fn(SocketAddr) -> bool) -> Option<Self> {
        let wanted: BTreeSet<_> = self.labelled().into_iter().map(|(_, address)| address).collect();
        let mut given = BTreeSet::new();
        let mut one = |address: SocketAddr| {
            let last = address.port().saturating_add(MAX_PORT_ATTEMPTS);
            let mut candidates = (address.port()..=last).map(|port| SocketAddr::new(address.ip(), port));
            let found = candidates.find(|candidate| {
                let is_ours = *candidate == address || !wanted.contains(candidate);
                is_ours && !given.contains(candidate) && is_free(*candidate)
            })?;
            // Port 0 always gets a free port from the system.
            (found.port() == 0 || given.insert(found)).then_some(found)
        };
        Some(Self {
            page: one(self.page)?,
            api: one(self.api)?,
            otlp: one(self.otlp)?,
            otlp_http: one(self.otlp_http)?,
        })
    }

    /// The addresses that differ from the requested ones.
    pub(crate) fn moved_from(self, wanted: Self) -> Vec<MovedAddress> {
        let pairs = wanted.labelled().into_iter().zip(self.labelled());
        let moved = pairs.filter(|((_, from), (_, to))| from.port() != 0 && from != to);
        moved.map(|((what, from), (_, to))| MovedAddress { what, from, to }).collect()
    }

    fn labelled(self) -> [(&'static str, SocketAddr); 4] {
        [
            ("the page", self.page),
            ("the API server", self.api),
            ("OTLP over gRPC", self.otlp),
            ("OTLP over HTTP", self.otlp_http),
        ]
    }
}

/// Parses an address of this machine. A port in use is no error.
pub(super) fn parse_local_address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().map_err(|_| "write an address and a port, such as 127.0.0.1:16686".to_owned())?;
    match TcpListener::bind(address) {
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {
            Err(format!("failed to listen on the address: {error}"))
        }
        _ => Ok(address),
    }
}

pub(crate) fn is_free(address: SocketAddr) -> bool {
    // Other errors are reported when the component listens.
    TcpListener::bind(address).err().is_none_or(|error| error.kind() != io::ErrorKind::AddrInUse)
}

#[cfg(test)]
mod tests;
