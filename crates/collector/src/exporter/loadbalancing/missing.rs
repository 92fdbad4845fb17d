//! What is said while no peer is known.
//!
//! Data that comes then is a failed attempt, whether it is refused or waits: by these the exporter is judged, as others are by
//! theirs. What the resolver says counts as one only while something waits, since a balancer that has nothing to do is no
//! reason to alarm anybody; it is shown all the same. All failures are forgotten when there is a peer.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use super::{
    Balancer, lock,
    place::{NoPlace, Ring},
};
use crate::core::{ResolverFault, Said, SendError};

/// Whether peers were known, and why none is.
#[derive(Default)]
pub(super) struct Missing {
    /// A peer was known once.
    found: AtomicBool,
    /// What the resolver said last. Held while the ring changes and while failures are noted, so that none outlasts its cause.
    said: Mutex<Option<ResolverFault>>,
}

impl Missing {
    pub(super) fn no_peers(&self) -> NoPlace {
        NoPlace::NoPeers { yet: !self.found.load(Ordering::Relaxed) }
    }
}

impl Balancer {
    /// The peers are others now.
    pub(super) fn replace_ring(&self, ring: Ring) {
        let mut said = lock(&self.missing.said);
        let any = !ring.peers.is_empty();
        self.ring.store(Arc::new(ring));
        if any {
            *said = None;
            self.missing.found.store(true, Ordering::Relaxed);
            self.rest.progress.unobstructed();
        }
        drop(said);
        self.no_peer_found(ResolverFault::Empty);
    }

    /// The resolver looked for peers and knows no more than before. That matters if none is known.
    pub(super) fn no_peer_found(&self, fault: ResolverFault) {
        let mut said = lock(&self.missing.said);
        if !self.ring.load().peers.is_empty() {
            return;
        }
        *said = Some(fault);
        let error = no_peer(*said);
        match self.rest.in_flight.load(Ordering::Relaxed) > 0 {
            true => self.failed(&error),
            false => {
                self.rest.progress.obstructed(&error);
                self.progress.obstructed(&error);
            }
        }
    }

    /// Data came while no peer was known.
    pub(super) fn peer_was_missed(&self) {
        let said = lock(&self.missing.said);
        if self.ring.load().peers.is_empty() {
            self.failed(&no_peer(*said));
        }
    }

    fn failed(&self, error: &SendError) {
        self.rest.progress.failed(error);
        self.progress.failed(error);
    }
}

fn no_peer(said: Option<ResolverFault>) -> SendError {
    SendError { said: said.map(Said::Resolver), ..SendError::connection("no peer is known") }
}
