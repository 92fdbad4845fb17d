//! Observation of a controller's queue, such as for metrics.

use std::{fmt::Debug, time::Duration};

/// Is notified of the queue of a controller, whether tracing is enabled or not.
///
/// An object is in the queue when it, or an object that it depends on, has changed and no run has begun since.
/// Several changes count once. An object whose last run asked for a requeue at a later time is not in the
/// queue.
pub trait QueueObserver: Debug + Send + Sync + 'static {
    /// The queue now holds this number of objects.
    fn on_depth_changed(&self, objects: usize);

    /// A run begins; its object waited this long since the first change.
    fn on_run_started(&self, waited: Duration);
}
