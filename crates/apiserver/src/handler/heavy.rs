//! Heavy requests: their work leaves the async threads, and few of them are worked on at once.
//!
//! Guaranteed: whatever a heavy request computes between two points at which it waits, the async threads go on to serve others, and at
//! most [`HeavyWork::limit`] requests compute. A request that waits (for the store, or a webhook) holds no place.
//! Assumed: a runtime with several threads. On one with a single thread, as in tests, work runs where it is.

use std::{
    future::{Future, poll_fn},
    num::NonZero,
    pin::pin,
    task::Poll,
    thread,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task::block_in_place,
};

use super::call::On;

/// Bodies and objects of this size take milliseconds to decode, merge and validate.
pub const HEAVY_BYTES: usize = 256 << 10;

/// Places for heavy requests.
#[derive(Debug)]
pub struct HeavyWork {
    places: Semaphore,
    limit: usize,
}

impl Default for HeavyWork {
    /// As many as there are processors, and two at least, so that a short one need not wait for a long one.
    fn default() -> Self {
        let limit = thread::available_parallelism().map_or(2, NonZero::get).max(2);
        Self { places: Semaphore::new(limit), limit }
    }
}

impl HeavyWork {
    /// How many requests compute at once.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Runs a request so that its work is on no async thread.
    pub async fn run<F: Future>(&self, request: F) -> F::Output {
        let threads = Handle::try_current().map(|handle| handle.runtime_flavor());
        if !matches!(threads, Ok(RuntimeFlavor::MultiThread)) {
            return request.await;
        }
        let mut request = pin!(request);
        loop {
            // `acquire` fails only on a closed semaphore; this one is never closed.
            let place = self.places.acquire().await.ok();
            let step = poll_fn(|context| Poll::Ready(block_in_place(|| request.as_mut().poll(context)))).await;
            drop(place);
            match step {
                Poll::Ready(output) => return output,
                Poll::Pending => woken().await,
            }
        }
    }
}

/// Waits until the task is woken, by whatever the last poll of something else has registered.
async fn woken() {
    let mut polled = false;
    poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Whether a write is heavy: a large body, a change of a large object, or expressions to compile or evaluate.
pub fn is_heavy_write(on: On<'_>, body: &[u8]) -> bool {
    if matches!(on.call.info.verb, "get" | "list" | "watch") {
        return false;
    }
    let is_large = || on.core().store.get(&on.key(&on.path.name)).is_some_and(|live| is_heavy(live.body.len()));
    is_heavy(body.len())
        || on.shown().strategy.runs_expressions()
        || on.core().admission.runs_expressions()
        || (!on.path.name.is_empty() && is_large())
}

/// Whether so many bytes of objects are heavy work.
pub fn is_heavy(bytes: usize) -> bool {
    bytes >= HEAVY_BYTES
}

#[cfg(test)]
mod tests;
