//! What follows from the state of nodes: [taints](taints) that keep pods away or [evict](evict) them, and pods that are
//! [orphans](orphans).
//!
//! *Not done*: nodes that are there but do not answer. They live in this process.

mod evict;
pub mod orphans;
mod taints;

use std::time::Duration;

use kube::Client;
use tokio::task::JoinSet;

use crate::views::Views;

/// Starts the controllers. `quarantine` is for orphans.
pub fn start(client: &Client, views: &Views, quarantine: Duration, tasks: &mut JoinSet<()>) {
    super::start::<taints::Taints>(client, views, tasks);
    super::start::<evict::Evictions>(client, views, tasks);
    orphans::start(client, views, quarantine, tasks);
}
