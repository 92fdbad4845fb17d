//! Controllers that belong to the server itself: what kube-controller-manager does for every cluster so that its API is whole.
//!
//! They see objects through watches on the store and change them through the handlers, as any client would.

mod cluster_trust;
pub mod definitions;
mod feed;
mod garbage;
mod namespaces;
mod roles;
mod webhooks;

use std::sync::Arc;

use tokio::task::JoinSet;

pub use self::feed::{Change, Feed};
use crate::core::Core;

/// Starts all of them. They end when the set is dropped. `authority` is the certificate that clients' certificates are signed by.
pub fn start(core: &Arc<Core>, authority: &str) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(cluster_trust::run(Arc::clone(core), authority.to_owned()));
    tasks.spawn(definitions::run(Arc::clone(core)));
    tasks.spawn(namespaces::run(Arc::clone(core)));
    tasks.spawn(garbage::run(Arc::clone(core)));
    tasks.spawn(roles::run(Arc::clone(core)));
    webhooks::start(core, &mut tasks);
    tasks
}
