//! Consequences of node states: [taints](node_taints) keep pods away or [evict](taint_eviction) them, and pods
//! of deleted nodes are [removed](pod_gc).
//!
//! *Not done*: nodes that do not respond. All nodes are in this process.

mod node_taints;
pub mod pod_gc;
mod taint_eviction;

use std::time::Duration;

use kube::Client;
use tokio::task::JoinSet;

use crate::informers::InformerSet;

/// Starts the controllers. `quarantine` is the time for which pods of deleted nodes are kept.
pub fn start(client: &Client, views: &InformerSet, quarantine: Duration, tasks: &mut JoinSet<()>) {
    super::start::<node_taints::NodeTaintController>(client, views, tasks);
    super::start::<taint_eviction::TaintEvictionController>(client, views, tasks);
    pod_gc::start(client, views, quarantine, tasks);
}
