//! The controllers of kube-controller-manager, one module for each kind.
//!
//! Listeners on the [informers](crate::informers) queue the [keys](NamespacedKey) of changed objects. A
//! controller takes one key at a time, compares the desired state with the observed one, and writes the
//! difference and the status. It keeps no state in memory that it cannot rebuild: after a stop at any point it
//! continues.

pub mod autoscaler;
pub mod claims;
pub mod controller_ref_manager;
pub mod daemonset;
pub mod deployment;
pub mod endpoints;
pub mod hash;
pub mod int_or_percent;
pub mod loadbalancers;
pub mod namespace_defaults;
pub mod nodes;
pub mod owner_reference;
pub mod pods;
pub mod replicaset;
pub mod revision;
pub mod statefulset;
pub mod status;
pub mod write_through;

use std::{future::Future, sync::Arc};

use kube::Client;
use tokio::task::JoinSet;

use crate::{
    error::Result,
    events::EventRecorder,
    informers::InformerSet,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

/// The number of objects of a kind that are reconciled concurrently.
const MAX_CONCURRENT_RECONCILES: usize = 8;

/// The field manager of the controllers' writes.
pub const FIELD_MANAGER: &str = "kube-controller-manager";

/// The context of a controller.
#[derive(Clone)]
pub struct ControllerContext {
    /// A client with the identity of the controller manager.
    pub client: Client,
    pub informers: InformerSet,
    /// Records Events in the name of the controller.
    pub events: EventRecorder,
}

impl std::fmt::Debug for ControllerContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("views", &self.informers).finish_non_exhaustive()
    }
}

/// A controller of one kind.
pub trait ResourceController: Send + Sync + 'static {
    /// The name in Events and logs, such as `deployment-controller`.
    const NAME: &'static str;

    fn new(context: ControllerContext) -> Self;

    /// Registers listeners on informers that queue the keys that a change concerns.
    fn listen(&self, queue: &WorkQueue<NamespacedKey>);

    /// Reconciles one object, which may no longer exist.
    fn reconcile(&self, key: NamespacedKey) -> impl Future<Output = Result<RequeueAfter>> + Send;
}

pub fn start<C: ResourceController>(client: &Client, views: &InformerSet, tasks: &mut JoinSet<()>) {
    let events = EventRecorder::new(client.clone(), C::NAME, None);
    let controller = Arc::new(C::new(ControllerContext { client: client.clone(), informers: views.clone(), events }));
    let queue = WorkQueue::default();
    controller.listen(&queue);
    tasks.spawn(queue.run_workers(C::NAME, MAX_CONCURRENT_RECONCILES, move |key| {
        let controller = Arc::clone(&controller);
        async move { controller.reconcile(key).await }
    }));
}
