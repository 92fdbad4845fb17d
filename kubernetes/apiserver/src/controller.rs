//! Controllers that are part of the server: those of kube-controller-manager without which the API is
//! incomplete.
//!
//! They read objects through watches on the store and write through the handlers, as any client would.

mod admission_configuration;
mod cluster_trust;
pub mod definitions;
mod garbage_collector;
mod namespaces;
mod object_feed;
mod rbac;

use std::sync::Arc;

use tokio::task::JoinSet;

pub use self::object_feed::{ObjectChange, ObjectFeed};
use crate::server_state::ServerState;

/// Starts all controllers, which end when the set is dropped. `authority` is the CA certificate of client
/// certificates.
pub fn start(core: &Arc<ServerState>, authority: &str) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    tasks.spawn(cluster_trust::run(Arc::clone(core), authority.to_owned()));
    tasks.spawn(definitions::run(Arc::clone(core)));
    tasks.spawn(namespaces::run(Arc::clone(core)));
    tasks.spawn(garbage_collector::run(Arc::clone(core)));
    tasks.spawn(rbac::run(Arc::clone(core)));
    admission_configuration::start(core, &mut tasks);
    tasks
}
