//! What a pipeline counts.

use std::sync::{
    Arc, Mutex, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use tokio::time::Instant;

use super::DropReason;
use crate::core::{Member, Moment, Progress, SendError};

/// How a pipeline is doing.
#[derive(Debug, Default)]
pub struct PipelineStats {
    received: AtomicU64,
    last_received: Moment,
    last_refused: Moment,
    /// Items that a destination took.
    pub delivered: AtomicU64,
    dropped: [Loss; DropReason::ALL.len()],
    progress: Progress,
    memory: Mutex<Weak<Member>>,
}

#[derive(Debug, Default)]
struct Loss {
    items: AtomicU64,
    last: Moment,
}

impl PipelineStats {
    /// Counts what came in.
    pub fn receive(&self, items: u64) {
        self.received.fetch_add(items, Ordering::Relaxed);
        self.last_received.mark();
    }

    /// Items that came in.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// When something came in last.
    pub fn last_received(&self) -> Option<Instant> {
        self.last_received.get()
    }

    /// A sender is told that there is no memory.
    pub fn refuse(&self) {
        self.last_refused.mark();
    }

    /// When a sender was last told that there is no memory.
    pub fn last_refused(&self) -> Option<Instant> {
        self.last_refused.get()
    }

    /// Counts a loss.
    pub fn dropped(&self, reason: DropReason, items: u64) {
        if let Some(loss) = self.dropped.get(reason as usize).filter(|_| items > 0) {
            loss.items.fetch_add(items, Ordering::Relaxed);
            loss.last.mark();
        }
    }

    /// Items lost for this reason.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).map_or(0, |loss| loss.items.load(Ordering::Relaxed))
    }

    /// When something was lost last, and why.
    pub fn last_dropped(&self) -> Option<(Instant, DropReason)> {
        let losses = DropReason::ALL.iter().zip(&self.dropped);
        losses.filter_map(|(reason, loss)| Some((loss.last.get()?, *reason))).max()
    }

    /// Adds what another one counted and will not count on. When things happened stays its own.
    pub fn absorb(&self, other: &Self) {
        self.received.fetch_add(other.received(), Ordering::Relaxed);
        self.delivered.fetch_add(other.delivered.load(Ordering::Relaxed), Ordering::Relaxed);
        for (sum, more) in self.dropped.iter().zip(&other.dropped) {
            sum.items.fetch_add(more.items.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// It draws on this memory from now on.
    pub fn draws_on(&self, member: &Arc<Member>) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(member);
    }

    /// How much is in use of the memory that it may use for new requests, and how much that is.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let member = self.memory.lock().unwrap_or_else(PoisonError::into_inner).upgrade();
        member.map(|member| member.fill())
    }

    /// A destination took something.
    pub fn succeeded(&self, items: u64) {
        self.delivered.fetch_add(items, Ordering::Relaxed);
        self.progress.succeeded();
    }

    /// An attempt failed.
    pub fn failed(&self, error: &SendError) {
        self.progress.failed(error);
    }

    /// Something is in the way of attempts, and nothing was there to be sent.
    pub fn obstructed(&self, error: &SendError) {
        self.progress.obstructed(error);
    }

    /// How its attempts have been going, those of all its exporters together.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}
