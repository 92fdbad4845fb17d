//! The constants that the relay shares with the collector, so that the two differ only in their work.

use std::time::Duration;

/// A request of 100 spans is about 50 KiB, so that it never waits for a window update.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 1 << 20;
/// Room for several requests at once on a connection.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
/// Few large frames instead of many of 16 KiB.
pub(crate) const MAX_FRAME_BYTES: u32 = 1 << 20;
/// Time after which an incomplete batch is sent: the collector's default.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_millis(200);
/// Concurrent requests to the backend: the default of the collector's `num_consumers`.
pub(crate) const MAX_IN_FLIGHT_REQUESTS: usize = 10;
