//! The endpoints behind a port.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Endpoints that are used in turn.
#[derive(Debug)]
pub(super) struct Backends {
    addresses: Vec<SocketAddr>,
    next: AtomicUsize,
}

impl Backends {
    /// Those who start with the same endpoints, again and again, do not all begin with the first.
    pub(super) fn new(addresses: Vec<SocketAddr>) -> Self {
        let next = AtomicUsize::new(fastrand::usize(..addresses.len().max(1)));
        Self { addresses, next }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Whether these are the same endpoints.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.addresses == other.addresses
    }

    /// All of them, beginning with the one whose turn it is.
    pub(super) fn in_turn(&self) -> impl Iterator<Item = SocketAddr> {
        let from = self.next.fetch_add(1, Ordering::Relaxed) % self.addresses.len().max(1);
        let (before, after) = self.addresses.split_at(from.min(self.addresses.len()));
        after.iter().chain(before).copied()
    }
}
