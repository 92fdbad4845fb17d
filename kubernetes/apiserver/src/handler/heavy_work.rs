//! Runs heavy requests off the async threads, and limits how many compute at once.
//!
//! Guaranteed: however long a heavy request computes between two points at which it waits, the async threads go
//! on to serve others, and at most [`HeavyWork::max_concurrent`] requests compute. A request that waits (for
//! the store, or a webhook) holds no permit. Assumed: a multi-threaded runtime. On a current-thread one, as in
//! tests, work runs where it is.

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

use super::call::ResourceRequest;

/// Bodies and objects of this size take milliseconds to decode, merge and validate.
pub const HEAVY_REQUEST_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub struct HeavyWork {
    places: Semaphore,
    limit: usize,
}

impl Default for HeavyWork {
    /// As many permits as processors, and two at least, so that a short request need not wait for a long one.
    fn default() -> Self {
        let limit = thread::available_parallelism().map_or(2, NonZero::get).max(2);
        Self { places: Semaphore::new(limit), limit }
    }
}

impl HeavyWork {
    /// How many requests compute at once.
    pub fn max_concurrent(&self) -> usize {
        self.limit
    }

    /// Runs a request so that its computation is on no async thread.
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
                Poll::Pending => wait_for_wake().await,
            }
        }
    }
}

/// Waits until the task is woken by whatever the last poll of another future has registered.
async fn wait_for_wake() {
    let mut polled = false;
    poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Whether a write is heavy: a large body, a change of a large object, or expressions to compile or evaluate.
pub fn is_heavy_write(on: ResourceRequest<'_>, body: &[u8]) -> bool {
    if matches!(on.call.info.verb, "get" | "list" | "watch") {
        return false;
    }
    let is_large = || on.core().store.get(&on.key(&on.path.name)).is_some_and(|live| is_heavy(live.body.len()));
    is_heavy(body.len())
        || on.served_resource().strategy.runs_expressions()
        || on.core().admission.runs_expressions()
        || (!on.path.name.is_empty() && is_large())
}

/// Whether this many bytes of objects are heavy work.
pub fn is_heavy(bytes: usize) -> bool {
    bytes >= HEAVY_REQUEST_BYTES
}

#[cfg(test)]
mod tests;
