//! The outbox of a shard: its task waits for the next component, so that neither decisions nor senders do.

use std::{
    collections::VecDeque,
    sync::{Arc, MutexGuard},
};

use kubewake_runtime::lock::Mutex;
use tokio::sync::Notify;

use crate::core::{Batch, ConsumerFanout};

/// Batches that are handed on one after the other.
#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<OutboxState>,
    pub(super) sent: Notify,
}

#[derive(Default)]
struct OutboxState {
    waiting: VecDeque<Batch>,
    /// A task hands the batches on.
    sending: bool,
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, OutboxState> {
        self.state.lock()
    }

    /// Adds a batch. Its bytes are charged to the pipeline, which limits the size of the outbox.
    pub(super) fn push<S: AsRef<ConsumerFanout> + Send + Sync + 'static>(
        self: &Arc<Self>,
        batch: Batch,
        sampler: &Arc<S>,
    ) {
        let mut state = self.state();
        state.waiting.push_back(batch);
        if !std::mem::replace(&mut state.sending, true) {
            tokio::spawn(self.clone().send(sampler.clone()));
        }
    }

    async fn send<S: AsRef<ConsumerFanout>>(self: Arc<Self>, sampler: Arc<S>) {
        while let Some(batch) = self.next() {
            (*sampler).as_ref().deliver(batch).await;
            self.sent.notify_waiters();
        }
        self.sent.notify_waiters();
    }

    fn next(&self) -> Option<Batch> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        state.sending = next.is_some();
        next
    }

    /// Whether all batches were handed on.
    pub(super) fn is_empty(&self) -> bool {
        !self.state().sending
    }
}
