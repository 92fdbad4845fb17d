//! Accepts data that was acknowledged upstream, and so cannot be refused.

use std::sync::{Arc, atomic::Ordering};

use super::{ArrivedRequest, TailSampler, shard::TICK_INTERVAL};
use crate::core::{Batch, DropReason, Refusal};

impl TailSampler {
    /// Accepts acknowledged data, request by request. A request that needs more memory than the limit would
    /// block all data behind it for good: it is counted as dropped.
    pub(super) async fn accept_acknowledged(self: Arc<Self>, batch: Batch) -> Result<(), Refusal> {
        let signal = batch.signal();
        for part in batch.into_parts() {
            let one = Batch::single(signal, part);
            if let Err(refusal) = self.accept_when_there_is_memory(&one).await {
                let reason = DropReason::MemoryLimit;
                tracing::error!(processor = %self.id, items = one.items(), reason = reason.name(), error = %refusal.message,
                    "dropped data: processing needs more memory than the budget allows");
                self.stats.refused.fetch_add(one.items() as u64, Ordering::Relaxed);
                self.next.count_loss(&one, reason);
            }
        }
        Ok(())
    }

    /// Waits until there is memory to read a request, and to hold it.
    async fn accept_when_there_is_memory(self: &Arc<Self>, batch: &Batch) -> Result<(), Refusal> {
        loop {
            match self.read_requests(batch.clone(), &self.rules.load_full()) {
                Ok(requests) => return self.clone().accept_when_there_is_room(requests).await,
                Err(refusal) if !refusal.is_retryable() => return Err(refusal),
                Err(_) => {
                    self.give_up_lingering(0);
                    tokio::time::sleep(TICK_INTERVAL / 2).await;
                }
            }
        }
    }

    /// Waits until there are fewer traces, where the settings ask for it, and memory.
    pub(super) async fn accept_when_there_is_room(
        self: Arc<Self>,
        requests: Vec<ArrivedRequest>,
    ) -> Result<(), Refusal> {
        loop {
            let rules = self.rules.load_full();
            let full = rules.settings.block_on_overflow && self.is_full(&requests, &rules);
            match if full { None } else { self.reserve(&requests) } {
                Some(charges) => {
                    self.accept(requests, charges);
                    return Ok(());
                }
                None if !full => {
                    let refusal = self.hold_refusal(&requests);
                    if !refusal.is_retryable() {
                        return Err(refusal);
                    }
                    // Memory is freed anywhere, without a notification.
                    tokio::time::sleep(TICK_INTERVAL / 2).await;
                }
                // Decisions free traces, tick by tick.
                None => tokio::time::sleep(TICK_INTERVAL / 2).await,
            }
        }
    }
}
