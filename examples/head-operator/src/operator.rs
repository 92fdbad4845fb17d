//! Runs both controllers.
//!
//! *Guaranteed*: on a stop, running reconciles finish first. A failed object is retried: with growing delays while
//! it is not ready, and after a constant delay while it is.
//! *Not done*: leader election.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future};
use k8s_openapi::{NamespaceResourceScope, api::apps::v1::Deployment, jiff::Timestamp};
use kube::{
    Api, Client, Resource,
    runtime::{
        controller::{self, Action},
        watcher,
    },
};
use kubewake_trail::{Controller, Trail, error_chain};

use crate::{
    api::{ChildA, Head},
    child,
    context::{self, HasConditions, ReconcileContext, ReconcileError},
    head,
};

#[derive(Clone, Debug)]
pub struct HeadOperatorOptions {
    /// The interval at which an object is reconciled without a change.
    pub resync_interval: Duration,
    /// The namespace to watch; none for all namespaces.
    pub namespace: Option<String>,
}

impl Default for HeadOperatorOptions {
    fn default() -> Self {
        // A fallback only: watches report every change.
        Self { resync_interval: Duration::from_secs(300), namespace: None }
    }
}

impl HeadOperatorOptions {
    fn watched_api<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client = client.clone();
        self.namespace.as_ref().map_or_else(|| Api::all(client.clone()), |name| Api::namespaced(client.clone(), name))
    }
}

/// Runs both controllers until `stop` completes, and calls `ready` once both kinds are listed. The client has to be
/// the trail's, so that its writes are traced.
pub async fn run(
    client: Client,
    trail: Trail,
    options: &HeadOperatorOptions,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let context = Arc::new(ReconcileContext::new(client.clone(), trail.clone(), options.resync_interval));
    let all = watcher::Config::default();
    let stop = stop.boxed().shared();
    let heads = Controller::new(options.watched_api::<Head>(&client), all.clone())
        .owns(options.watched_api::<ChildA>(&client), all.clone())
        .graceful_shutdown_on(stop.clone());
    let children = Controller::new(options.watched_api::<ChildA>(&client), all.clone())
        .owns(options.watched_api::<Deployment>(&client), all)
        .graceful_shutdown_on(stop);
    let head_store = heads.store();
    let child_store = children.store();
    let announce_ready = async {
        // An error means that the controller was stopped before its first list.
        if let (Ok(()), Ok(())) = future::join(head_store.wait_until_ready(), child_store.wait_until_ready()).await {
            ready();
        }
    };
    let heads = heads.run(trail.clone(), head::reconcile, error_policy, Arc::clone(&context));
    let children = children.run(trail, child::reconcile, error_policy, context);
    future::join3(heads.for_each(log_watch_error), children.for_each(log_watch_error), announce_ready).await;
}

/// Logs watch errors. [`error_policy`] logs reconcile errors.
async fn log_watch_error<T>(result: Result<T, controller::Error<ReconcileError, watcher::Error>>) {
    if let Err(controller::Error::QueueError(error)) = result {
        tracing::warn!(error = error_chain(&error), "failed to watch objects");
    }
}

fn error_policy<K: HasConditions>(object: Arc<K>, error: &ReconcileError, _: Arc<ReconcileContext>) -> Action {
    let kind = K::kind(&());
    let meta = object.meta();
    tracing::warn!(%kind, namespace = meta.namespace, name = meta.name, error = error_chain(error), "reconcile failed and will be retried");
    context::retry_action(&*object, Timestamp::now())
}
