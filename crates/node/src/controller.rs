//! What kube-controller-manager does: a folder or file for each kind, each a function from what is seen to what is written.
//!
//! A controller is told which [keys](Key) to look at by listeners on the [views](crate::views), looks at one key at a time, compares
//! what the object asks for with what is there, and writes the difference and the object's status. It keeps nothing
//! of its own in memory that it could not do without: stopped anywhere and started again, it goes on.

pub mod accounts;
pub mod adopt;
pub mod amount;
pub mod autoscaler;
pub mod claims;
pub mod daemonset;
pub mod deployment;
pub mod endpoints;
pub mod hash;
pub mod loadbalancers;
pub mod nodes;
pub mod owner;
pub mod pods;
pub mod replicaset;
pub mod revision;
pub mod statefulset;
pub mod status;
pub mod write;

use std::{future::Future, sync::Arc};

use kube::Client;
use tokio::task::JoinSet;

use crate::{
    error::Result,
    events::Events,
    key::Key,
    queue::{Again, Queue},
    views::Views,
};

/// How many objects of a kind are looked at at once.
const AT_ONCE: usize = 8;

/// In whose name the fields are that controllers write.
pub const MANAGER: &str = "kube-controller-manager";

/// What a controller works with.
#[derive(Clone)]
pub struct Context {
    /// Speaks for the controller manager.
    pub client: Client,
    /// What there is.
    pub views: Views,
    /// In the name of the controller that this was made for.
    pub events: Events,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("views", &self.views).finish_non_exhaustive()
    }
}

/// A controller of one kind.
pub trait Controller: Send + Sync + 'static {
    /// As events and logs call it, such as `deployment-controller`.
    const NAME: &'static str;

    /// With what it works with.
    fn new(context: Context) -> Self;

    /// Puts into the queue whatever a change concerns: registers listeners on views.
    fn listen(&self, queue: &Queue<Key>);

    /// Looks at one object, which may be gone.
    fn reconcile(&self, key: Key) -> impl Future<Output = Result<Again>> + Send;
}

/// Starts a controller.
pub fn start<C: Controller>(client: &Client, views: &Views, tasks: &mut JoinSet<()>) {
    let events = Events::new(client.clone(), C::NAME, None);
    let controller = Arc::new(C::new(Context { client: client.clone(), views: views.clone(), events }));
    let queue = Queue::default();
    controller.listen(&queue);
    tasks.spawn(queue.run(C::NAME, AT_ONCE, move |key| {
        let controller = Arc::clone(&controller);
        async move { controller.reconcile(key).await }
    }));
}
