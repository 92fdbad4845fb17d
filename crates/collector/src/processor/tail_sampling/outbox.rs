//! What is on its way out of a shard. It waits for the next step by itself, so that neither decisions nor senders do.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::Notify;

use crate::core::{Batch, Link};

/// Batches that are handed on one after the other.
#[derive(Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// One was handed on.
    pub(super) sent: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Batch>,
    /// A task hands them on.
    sending: bool,
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a batch. What it holds is charged to the pipeline, which is the limit of what waits here.
    pub(super) fn push<S: AsRef<Link> + Send + Sync + 'static>(self: &Arc<Self>, batch: Batch, sampler: &Arc<S>) {
        let mut state = self.state();
        state.waiting.push_back(batch);
        if !std::mem::replace(&mut state.sending, true) {
            tokio::spawn(self.clone().send(sampler.clone()));
        }
    }

    async fn send<S: AsRef<Link>>(self: Arc<Self>, sampler: Arc<S>) {
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

    /// Whether everything was handed on.
    pub(super) fn is_empty(&self) -> bool {
        !self.state().sending
    }
}
