//! Guards that count batches and requests in flight.

use std::sync::{Arc, atomic::Ordering};

use super::{ExporterQueue, ExporterStats};

/// A batch that is being pushed into the queue, or delivered without one. Draining waits for it.
pub(super) struct InFlightBatch(pub(super) Arc<ExporterQueue>);

impl InFlightBatch {
    pub(super) fn new(of: &Arc<ExporterQueue>) -> Self {
        of.queue.begin_in_flight();
        Self(of.clone())
    }
}

impl Drop for InFlightBatch {
    fn drop(&mut self) {
        self.0.queue.end_in_flight();
    }
}

/// A request that counts as in flight until it is settled or its future is dropped.
pub struct InFlightRequest<'a>(&'a ExporterStats);

impl<'a> InFlightRequest<'a> {
    pub fn new(stats: &'a ExporterStats) -> Self {
        stats.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(stats)
    }
}

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
