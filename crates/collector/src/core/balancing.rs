//! What an exporter counts that spreads its data over peers.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::stats::closed;

closed! {
    /// Who says where the peers are.
    ResolverKind {
        /// A list in the document.
        Static => "static",
        /// The addresses of a name.
        Dns => "dns",
        /// The endpoints of a Service.
        Kubernetes => "k8s",
    }
}

closed! {
    /// Why data went to another peer than the first of its order.
    MoveReason {
        /// The first does not answer.
        Down => "down",
        /// The first has no room.
        Full => "full",
        /// The first has left, and did not take what it still was to get.
        Left => "left",
        /// The first refused it for as long as it may.
        Refused => "refused",
        /// There was no memory to take a request apart, so that all of it went to the peer of its first record.
        Memory => "memory",
    }
}

/// The counters of one exporter, in all its pipelines together.
#[derive(Debug, Default)]
pub struct BalancerStats {
    resolvers: [ResolverStats; ResolverKind::ALL.len()],
    outcomes: [AtomicU64; 2],
    moved: [AtomicU64; MoveReason::ALL.len()],
    /// By the endpoint of the peer; those that are there now.
    latencies: Mutex<BTreeMap<String, Arc<Latency>>>,
}

/// What a resolver did.
#[derive(Debug, Default)]
pub struct ResolverStats {
    /// Peers that there are.
    pub backends: AtomicU64,
    /// Times that the list changed.
    pub updates: AtomicU64,
    /// Times that it was found out.
    pub succeeded: AtomicU64,
    /// Times that it could not be found out.
    pub failed: AtomicU64,
}

impl BalancerStats {
    /// The counters of a resolver.
    pub fn resolver(&self, kind: ResolverKind) -> &ResolverStats {
        let [fixed, dns, kubernetes] = &self.resolvers;
        match kind {
            ResolverKind::Static => fixed,
            ResolverKind::Dns => dns,
            ResolverKind::Kubernetes => kubernetes,
        }
    }

    /// Counts an attempt at sending to a peer.
    pub fn outcome(&self, success: bool) {
        if let Some(cell) = self.outcomes.get(usize::from(success)) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Attempts that ended so.
    pub fn outcomes(&self, success: bool) -> u64 {
        self.outcomes.get(usize::from(success)).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// Counts items that went to another peer than the first of their order.
    pub fn moved(&self, reason: MoveReason, items: u64) {
        if let Some(cell) = self.moved.get(reason as usize) {
            cell.fetch_add(items, Ordering::Relaxed);
        }
    }

    /// Items that were moved for this reason.
    pub fn moved_for(&self, reason: MoveReason) -> u64 {
        self.moved.get(reason as usize).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// The latencies of a peer.
    pub fn latency(&self, endpoint: &str) -> Arc<Latency> {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        latencies.entry(endpoint.to_owned()).or_default().clone()
    }

    /// Forgets a peer that is gone.
    pub fn forget(&self, endpoint: &str) {
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).remove(endpoint);
    }

    /// The latencies of all peers that are there.
    pub fn latencies(&self) -> Vec<(String, Arc<Latency>)> {
        let latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        latencies.iter().map(|(endpoint, latency)| (endpoint.clone(), latency.clone())).collect()
    }
}

/// How long a peer takes to answer, in whole milliseconds.
#[derive(Debug, Default)]
pub struct Latency {
    buckets: [AtomicU64; Latency::BOUNDS.len()],
    sum: AtomicU64,
    count: AtomicU64,
}

impl Latency {
    /// Upper bounds of the buckets, as the Collector has them.
    pub const BOUNDS: [u64; 10] = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

    /// Counts an answer.
    pub fn record(&self, took: Duration) {
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let at = Self::BOUNDS.partition_point(|bound| *bound < milliseconds);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(milliseconds, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Cumulative counts by upper bound, then the sum and the count of all.
    pub fn snapshot(&self) -> (Vec<(u64, u64)>, u64, u64) {
        let mut total = 0;
        let rows = Self::BOUNDS.iter().zip(&self.buckets).map(|(bound, count)| {
            total += count.load(Ordering::Relaxed);
            (*bound, total)
        });
        (rows.collect(), self.sum.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed))
    }
}
