//! What waits in a controller's queue, for whoever counts it.

use std::{fmt::Debug, time::Duration};

/// Is told of what waits, whether runs are traced or not.
///
/// An object waits when something happened to it, or to something that it depends on, and no run of it has begun since. However much happens meanwhile, it waits once. An object
/// whose last run asked for another, later, waits for nothing.
pub trait Queue: Debug + Send + Sync + 'static {
    /// So many objects wait now.
    fn waits(&self, objects: usize);

    /// A run begins, so long after the first that happened.
    fn begins(&self, waited: Duration);
}
