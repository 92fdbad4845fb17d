//! The endpoints behind a Service port.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Endpoints that are used in turn.
#[derive(Debug)]
pub(super) struct ServiceBackends {
    addresses: Vec<SocketAddr>,
    next: AtomicUsize,
}

impl ServiceBackends {
    /// Starts at a random endpoint, so that not all ports with the same endpoints begin with the first one.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        let next = AtomicUsize::new(fastrand::usize(..addresses.len().max(1)));
        Self { addresses, next }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether the endpoints are the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.addresses == other.addresses
    }

    /// All endpoints, starting with the next one.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = SocketAddr> {
        let from = self.next.fetch_add(1, Ordering::Relaxed) % self.addresses.len().max(1);
        let (before, after) = self.addresses.split_at(from.min(self.addresses.len()));
        after.iter().chain(before).copied()
    }
}
