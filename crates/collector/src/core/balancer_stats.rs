//! Counters of a load balancing exporter.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use kubewake_runtime::{label_enum, lock::Mutex};

label_enum! {
    /// How the peers are found.
    pub enum ResolverKind {
        /// A list in the document.
        Static => "static",
        /// DNS lookups of a name.
        Dns => "dns",
        /// The endpoints of a Service.
        Kubernetes => "k8s",
    }
}

label_enum! {
    /// Why data went to another peer than the first in its order.
    pub enum MoveReason {
        /// The first peer is unavailable.
        Down => "down",
        /// The first peer has no room.
        Full => "full",
        /// The first peer was removed, and had not taken the data yet.
        Left => "left",
        /// The first peer refused it until its retries were exhausted.
        Refused => "refused",
        /// There was no memory to split a request, so that all of it went to the peer of its first record.
        Memory => "memory",
    }
}

/// The counters of one exporter, over all its pipelines.
#[derive(Debug, Default)]
pub struct BalancerStats {
    resolvers: [ResolverStats; ResolverKind::ALL.len()],
    outcomes: [AtomicU64; 2],
    moved: [AtomicU64; MoveReason::ALL.len()],
    /// By the endpoint of the peer; current peers only.
    latencies: Mutex<BTreeMap<String, Arc<PeerLatency>>>,
}

#[derive(Debug, Default)]
pub struct ResolverStats {
    pub backends: AtomicU64,
    /// How often the list changed.
    pub updates: AtomicU64,
    /// Successful resolutions.
    pub succeeded: AtomicU64,
    /// Failed resolutions.
    pub failed: AtomicU64,
}

impl BalancerStats {
    pub fn resolver(&self, kind: ResolverKind) -> &ResolverStats {
        let [fixed, dns, kubernetes] = &self.resolvers;
        match kind {
            ResolverKind::Static => fixed,
            ResolverKind::Dns => dns,
            ResolverKind::Kubernetes => kubernetes,
        }
    }

    pub fn count_attempt(&self, success: bool) {
        if let Some(cell) = self.outcomes.get(usize::from(success)) {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn attempts(&self, success: bool) -> u64 {
        self.outcomes.get(usize::from(success)).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// Counts items that went to another peer than the first in their order.
    pub fn count_moved(&self, reason: MoveReason, items: u64) {
        if let Some(cell) = self.moved.get(reason as usize) {
            cell.fetch_add(items, Ordering::Relaxed);
        }
    }

    pub fn moved_for(&self, reason: MoveReason) -> u64 {
        self.moved.get(reason as usize).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    pub fn latency(&self, endpoint: &str) -> Arc<PeerLatency> {
        let mut latencies = self.latencies.lock();
        latencies.entry(endpoint.to_owned()).or_default().clone()
    }

    pub fn remove_peer(&self, endpoint: &str) {
        self.latencies.lock().remove(endpoint);
    }

    /// The latencies of all current peers.
    pub fn latencies(&self) -> Vec<(String, Arc<PeerLatency>)> {
        let latencies = self.latencies.lock();
        latencies.iter().map(|(endpoint, latency)| (endpoint.clone(), latency.clone())).collect()
    }
}

/// Response times of a peer, in whole milliseconds.
#[derive(Debug, Default)]
pub struct PeerLatency {
    buckets: [AtomicU64; PeerLatency::BUCKET_BOUNDS_MS.len()],
    sum: AtomicU64,
    count: AtomicU64,
}

impl PeerLatency {
    /// Upper bounds of the buckets, the same as the Collector's.
    pub const BUCKET_BOUNDS_MS: [u64; 10] = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

    pub fn record(&self, took: Duration) {
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let at = Self::BUCKET_BOUNDS_MS.partition_point(|bound| *bound < milliseconds);
        if let Some(bucket) = self.buckets.get(at) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(milliseconds, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Cumulative counts by upper bound, then the sum and the count of all.
    pub fn snapshot(&self) -> (Vec<(u64, u64)>, u64, u64) {
        let mut total = 0;
        let rows = Self::BUCKET_BOUNDS_MS.iter().zip(&self.buckets).map(|(bound, count)| {
            total += count.load(Ordering::Relaxed);
            (*bound, total)
        });
        (rows.collect(), self.sum.load(Ordering::Relaxed), self.count.load(Ordering::Relaxed))
    }
}
