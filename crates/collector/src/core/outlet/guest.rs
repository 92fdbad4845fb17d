//! What is under way, for as long as it is.

use std::sync::{Arc, atomic::Ordering};

use super::{ExporterStats, Outlet};

/// A batch that is on its way into the queue or past it, and that draining waits for.
pub(super) struct Guest(pub(super) Arc<Outlet>);

impl Guest {
    pub(super) fn new(of: &Arc<Outlet>) -> Self {
        of.queue.enter();
        Self(of.clone())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.0.queue.leave();
    }
}

/// A request that is counted as under way, until it ends or whoever waits for it goes away.
pub struct UnderWay<'a>(&'a ExporterStats);

impl<'a> UnderWay<'a> {
    /// It begins now.
    pub fn new(stats: &'a ExporterStats) -> Self {
        stats.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(stats)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
