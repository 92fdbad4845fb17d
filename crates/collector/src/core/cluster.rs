//! What a processor counts that looks at a cluster.

use std::sync::atomic::AtomicU64;

/// The counters of one processor, in all its pipelines together.
#[derive(Debug, Default)]
pub struct ClusterStats {
    /// Pods that are known.
    pub pods: AtomicU64,
    /// Bytes that are held of them, about.
    pub held: AtomicU64,
    /// Pods that came.
    pub added: AtomicU64,
    /// Pods that changed.
    pub updated: AtomicU64,
    /// Pods that went.
    pub deleted: AtomicU64,
    /// Objects that there was no room for.
    pub left_out: AtomicU64,
    /// Times that the cluster could not be asked.
    pub failures: AtomicU64,
    associations: [AtomicU64; 2],
}

impl ClusterStats {
    /// Resources whose pod was found, or was not.
    pub fn associated(&self, found: bool) -> &AtomicU64 {
        let [missed, matched] = &self.associations;
        if found { matched } else { missed }
    }
}
