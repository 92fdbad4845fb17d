//! Counters of a pipeline.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use kubewake_runtime::lock::Mutex;
use tokio::time::Instant;

use super::DropReason;
use crate::core::{AtomicInstant, DeliveryProgress, Member, SendError};

/// Counters and delivery progress of a pipeline.
#[derive(Debug, Default)]
pub struct PipelineStats {
    received: AtomicU64,
    last_received: AtomicInstant,
    last_refused: AtomicInstant,
    pub delivered: AtomicU64,
    dropped: [LossCounter; DropReason::ALL.len()],
    progress: DeliveryProgress,
    memory: Mutex<Weak<Member>>,
}

#[derive(Debug, Default)]
struct LossCounter {
    items: AtomicU64,
    last: AtomicInstant,
}

impl PipelineStats {
    pub fn count_received(&self, items: u64) {
        self.received.fetch_add(items, Ordering::Relaxed);
        self.last_received.set_now();
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// When data was last received.
    pub fn last_received(&self) -> Option<Instant> {
        self.last_received.get()
    }

    /// Records a refusal for want of memory.
    pub fn mark_refused(&self) {
        self.last_refused.set_now();
    }

    /// When a request was last refused for want of memory.
    pub fn last_refused(&self) -> Option<Instant> {
        self.last_refused.get()
    }

    pub fn count_dropped(&self, reason: DropReason, items: u64) {
        if let Some(loss) = self.dropped.get(reason as usize).filter(|_| items > 0) {
            loss.items.fetch_add(items, Ordering::Relaxed);
            loss.last.set_now();
        }
    }

    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).map_or(0, |loss| loss.items.load(Ordering::Relaxed))
    }

    /// When data was last lost, and why.
    pub fn last_dropped(&self) -> Option<(Instant, DropReason)> {
        let losses = DropReason::ALL.iter().zip(&self.dropped);
        losses.filter_map(|(reason, loss)| Some((loss.last.get()?, *reason))).max()
    }

    /// Adds the counters of another pipeline that is no longer in use. Times are not merged.
    pub fn absorb(&self, other: &Self) {
        self.received.fetch_add(other.received(), Ordering::Relaxed);
        self.delivered.fetch_add(other.delivered.load(Ordering::Relaxed), Ordering::Relaxed);
        for (sum, more) in self.dropped.iter().zip(&other.dropped) {
            sum.items.fetch_add(more.items.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// Sets the memory that the pipeline is charged to.
    pub fn set_memory(&self, member: &Arc<Member>) {
        *self.memory.lock() = Arc::downgrade(member);
    }

    /// The memory in use, and the limit for new requests.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let member = self.memory.lock().upgrade();
        member.map(|member| member.usage())
    }

    pub fn record_success(&self, items: u64) {
        self.delivered.fetch_add(items, Ordering::Relaxed);
        self.progress.record_success();
    }

    pub fn record_failure(&self, error: &SendError) {
        self.progress.record_failure(error);
    }

    /// Records a failure that prevents attempts while there is nothing to send.
    pub fn record_obstruction(&self, error: &SendError) {
        self.progress.record_obstruction(error);
    }

    /// The progress of all its exporters together.
    pub fn progress(&self) -> &DeliveryProgress {
        &self.progress
    }
}
