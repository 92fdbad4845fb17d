//! Both controllers together.
//!
//! *Guarantees.* When it is told to stop, what is being worked on is finished first. An object that fails is tried again, ever more
//! rarely. *Does not* elect a leader.

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
use kubewake_trail::{Controller, Trail, in_words};

use crate::{
    api::{ChildA, Head},
    child,
    context::{self, Conditioned, Context, Error},
    head,
};

/// How it works.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long an object is left alone when nothing happens to it.
    pub resync: Duration,
    /// The namespace to work in; all of them without one.
    pub namespace: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        // Watches tell of every change; this is for the case that one did not.
        Self { resync: Duration::from_secs(300), namespace: None }
    }
}

impl Options {
    fn all<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client = client.clone();
        self.namespace.as_ref().map_or_else(|| Api::all(client.clone()), |name| Api::namespaced(client.clone(), name))
    }
}

/// Works until `stop` comes, and says so once it has seen all there is. The client is the trail's.
pub async fn run(
    client: Client,
    trail: Trail,
    options: &Options,
    ready: impl FnOnce(),
    stop: impl Future<Output = ()> + Send + 'static,
) {
    let context = Arc::new(Context::new(client.clone(), trail.clone(), options.resync));
    let (all, stop) = (watcher::Config::default(), stop.boxed().shared());
    let heads = Controller::new(options.all::<Head>(&client), all.clone())
        .owns(options.all::<ChildA>(&client), all.clone())
        .graceful_shutdown_on(stop.clone());
    let children = Controller::new(options.all::<ChildA>(&client), all.clone())
        .owns(options.all::<Deployment>(&client), all)
        .graceful_shutdown_on(stop);
    let seen = (heads.store(), children.store());
    let announce = async {
        // They end without it only when they are stopped before.
        if let (Ok(()), Ok(())) = future::join(seen.0.wait_until_ready(), seen.1.wait_until_ready()).await {
            ready();
        }
    };
    let heads = heads.run(trail.clone(), head::reconcile, again, Arc::clone(&context));
    let children = children.run(trail, child::reconcile, again, context);
    future::join3(heads.for_each(report), children.for_each(report), announce).await;
}

/// Tells of watches that do not work. What reconciles have to say is said by [`again`].
async fn report<T>(result: Result<T, controller::Error<Error, watcher::Error>>) {
    if let Err(controller::Error::QueueError(error)) = result {
        tracing::warn!(error = in_words(&error), "objects cannot be watched");
    }
}

fn again<K: Conditioned>(object: Arc<K>, error: &Error, _: Arc<Context>) -> Action {
    let (kind, meta) = (K::kind(&()), object.meta());
    tracing::warn!(%kind, namespace = meta.namespace, name = meta.name, error = in_words(error), "it does not work yet");
    context::again(&*object, Timestamp::now())
}
