//! Both controllers together.
//!
//! *Guarantees.* When it is told to stop, what is being worked on is finished first. An object that fails is tried again, ever more
//! rarely. *Does not* elect a leader.

use std::{sync::Arc, time::Duration};

use futures_util::{FutureExt, StreamExt, future};
use k8s_openapi::{api::apps::v1::Deployment, jiff::Timestamp};
use kube::{
    Api, Client,
    runtime::{Controller, controller::Action, watcher},
};

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
}

impl Default for Options {
    fn default() -> Self {
        // Watches tell of every change; this is for the case that one did not.
        Self { resync: Duration::from_secs(300) }
    }
}

/// Works until `stop` comes.
pub async fn run(client: Client, options: &Options, stop: impl Future<Output = ()> + Send + 'static) {
    let context = Arc::new(Context::new(client.clone(), options.resync));
    let (all, stop) = (watcher::Config::default(), stop.boxed().shared());
    let heads = Controller::new(Api::<Head>::all(client.clone()), all.clone())
        .owns(Api::<ChildA>::all(client.clone()), all.clone())
        .graceful_shutdown_on(stop.clone())
        .run(head::reconcile, again, Arc::clone(&context));
    let children = Controller::new(Api::<ChildA>::all(client.clone()), all.clone())
        .owns(Api::<Deployment>::all(client), all)
        .graceful_shutdown_on(stop)
        .run(child::reconcile, again, context);
    future::join(heads.for_each(|_| future::ready(())), children.for_each(|_| future::ready(()))).await;
}

fn again<K: Conditioned>(object: Arc<K>, error: &Error, _: Arc<Context>) -> Action {
    let (kind, meta, error) = (K::kind(&()), object.meta(), error as &dyn std::error::Error);
    tracing::warn!(%kind, namespace = ?meta.namespace, name = ?meta.name, error, "it does not work yet");
    context::again(&*object, Timestamp::now())
}
