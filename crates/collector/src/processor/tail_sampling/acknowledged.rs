//! What was acknowledged before it came here, and so cannot be refused.

use std::sync::{Arc, atomic::Ordering};

use super::{Request, TailSampler, shard::TICK};
use crate::core::{Batch, DropReason, Refusal};

impl TailSampler {
    /// Takes what was acknowledged before, request by request. What needs more memory than there ever is would hold up all that comes behind
    /// it for good: it is counted as dropped.
    pub(super) async fn accept_acknowledged(self: Arc<Self>, batch: Batch) -> Result<(), Refusal> {
        let signal = batch.signal();
        for part in batch.into_parts() {
            let one = Batch::single(signal, part);
            if let Err(refusal) = self.accept_when_there_is_memory(&one).await {
                let reason = DropReason::MemoryLimit;
                tracing::error!(processor = %self.id, items = one.items(), reason = reason.name(), error = %refusal.message,
                    "dropped data: it needs more memory than there is");
                self.stats.refused.fetch_add(one.items() as u64, Ordering::Relaxed);
                self.next.count_loss(&one, reason);
            }
        }
        Ok(())
    }

    /// Waits until there is memory to read a request, and to hold it.
    async fn accept_when_there_is_memory(self: &Arc<Self>, batch: &Batch) -> Result<(), Refusal> {
        loop {
            match self.read(batch.clone(), &self.rules.load_full()) {
                Ok(requests) => return self.clone().accept_when_there_is_room(requests).await,
                Err(refusal) if !refusal.is_retryable() => return Err(refusal),
                Err(_) => {
                    self.give_up_lingering(0);
                    tokio::time::sleep(TICK / 2).await;
                }
            }
        }
    }

    /// Waits until there are fewer traces, where that is wanted, and memory.
    pub(super) async fn accept_when_there_is_room(self: Arc<Self>, requests: Vec<Request>) -> Result<(), Refusal> {
        loop {
            let rules = self.rules.load_full();
            let full = rules.settings.block_on_overflow && self.is_full(&requests, &rules);
            match if full { None } else { self.reserve(&requests) } {
                Some(charges) => {
                    self.accept(requests, charges);
                    return Ok(());
                }
                None if !full => {
                    let refusal = self.unheld(&requests);
                    if !refusal.is_retryable() {
                        return Err(refusal);
                    }
                    // Memory comes from anywhere.
                    tokio::time::sleep(TICK / 2).await;
                }
                // Room comes with decisions, which come tick by tick.
                None => tokio::time::sleep(TICK / 2).await,
            }
        }
    }
}
