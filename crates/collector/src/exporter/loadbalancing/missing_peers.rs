//! Reports of the load balancer while no peer is known.
//!
//! Data that arrives then counts as a failed attempt, whether it is refused or waits: the exporter's health is
//! derived from failed attempts, as for other exporters. A fault of the resolver counts as an attempt only
//! while data waits, since an idle balancer is no reason for an alarm; it is reported all the same. All
//! failures are cleared when there is a peer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kubewake_runtime::lock::Mutex;

use super::{
    LoadBalancer,
    placement::{PeerRing, PlacementError},
};
use crate::core::{BackendStatus, ResolverFault, SendError};

/// Whether a peer was ever known, and why none is known now.
#[derive(Default)]
pub(super) struct MissingPeers {
    /// A peer was known once.
    any_found: AtomicBool,
    /// The resolver's last fault. Locked while the ring changes and while failures are recorded, so that none
    /// outlasts its cause.
    last_fault: Mutex<Option<ResolverFault>>,
}

impl MissingPeers {
    pub(super) fn no_peers_error(&self) -> PlacementError {
        PlacementError::NoPeers { never_known: !self.any_found.load(Ordering::Relaxed) }
    }
}

impl LoadBalancer {
    /// Replaces the peers.
    pub(super) fn replace_ring(&self, ring: PeerRing) {
        let mut said = self.missing.last_fault.lock();
        let any = !ring.peers.is_empty();
        self.ring.store(Arc::new(ring));
        if any {
            *said = None;
            self.missing.any_found.store(true, Ordering::Relaxed);
            self.unassigned_stats.progress.clear_obstruction();
        }
        drop(said);
        self.report_no_peer_found(ResolverFault::Empty);
    }

    /// The resolver has found no new peers, which matters if none is known.
    pub(super) fn report_no_peer_found(&self, fault: ResolverFault) {
        let mut said = self.missing.last_fault.lock();
        if !self.ring.load().peers.is_empty() {
            return;
        }
        *said = Some(fault);
        let error = no_peer(*said);
        if self.unassigned_stats.in_flight.load(Ordering::Relaxed) > 0 {
            self.record_failure(&error)
        } else {
            self.unassigned_stats.progress.record_obstruction(&error);
            self.progress.record_obstruction(&error);
        }
    }

    /// Data arrived while no peer was known.
    pub(super) fn report_missed_peer(&self) {
        let said = self.missing.last_fault.lock();
        if self.ring.load().peers.is_empty() {
            self.record_failure(&no_peer(*said));
        }
    }

    fn record_failure(&self, error: &SendError) {
        self.unassigned_stats.progress.record_failure(error);
        self.progress.record_failure(error);
    }
}

fn no_peer(said: Option<ResolverFault>) -> SendError {
    SendError {
        backend_status: said.map(BackendStatus::Resolver),
        ..SendError::connection("the resolver has found no peers")
    }
}
