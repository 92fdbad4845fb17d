//! The numbers that the relay shares with the collector, so that the two differ only in what they do.

use std::time::Duration;

/// A request of 100 spans is about 50 KiB, so that one never waits for a window update.
pub(crate) const STREAM_WINDOW: u32 = 1 << 20;
/// Several requests at once on a connection.
pub(crate) const CONNECTION_WINDOW: u32 = 4 << 20;
/// Few large frames instead of many of 16 KiB.
pub(crate) const FRAME: u32 = 1 << 20;
/// Batches leave after this long even if they are not full: the collector's default.
pub(crate) const FLUSH: Duration = Duration::from_millis(200);
/// Requests to the backend under way at once: the default of the collector's `num_consumers`.
pub(crate) const UNDER_WAY: usize = 10;
