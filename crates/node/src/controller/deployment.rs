//! Deployment: a ReplicaSet for each template that it has had, and a way from the old ones to the new one.
//!
//! *Guarantees.* While a rolling update goes on, there are never more pods asked for than `maxSurge` allows, and no pod is given up
//! that `maxUnavailable` wants kept. The size, template and annotations of old ReplicaSets are all that is remembered: `kubectl rollout
//! undo` finds every revision that the history limit keeps. *Not done*: the annotation that stood for `rollbackTo` of the API of
//! 2016; `kubectl` has not written it for years.
//!
//! A look at a Deployment writes its status once, at the end, as what has changed.

mod conditions;
mod history;
mod limits;
mod proportion;
mod recreate;
mod revision;
mod rolling;
mod rollout;
mod scale;
mod status;
mod template;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::ResourceExt;

use self::rollout::Rollout;
use super::{
    Context, Controller,
    adopt::{self, Claim},
    owner, pods,
};
use crate::{
    error::Result,
    key::Key,
    queue::{Again, Queue},
    view::{Change, View},
};

/// Rolls out every Deployment.
#[derive(Debug)]
pub struct Deployments {
    context: Context,
}

impl Controller for Deployments {
    const NAME: &'static str = "deployment-controller";

    fn new(context: Context) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let views = &self.context.views;
        let to = queue.clone();
        views
            .deployments
            .on_change(move |change| change.latest().into_iter().for_each(|deployment| to.add(Key::of(&**deployment))));
        let (to, deployments) = (queue.clone(), Arc::downgrade(&views.deployments));
        views.replica_sets.on_change(move |change| {
            adopt::concerned(change, &deployments, might_take).into_iter().for_each(|key| to.add(key));
        });
        let (to, sets) = (queue.clone(), Arc::downgrade(&views.replica_sets));
        views.pods.on_change(move |change| {
            sets.upgrade().and_then(|sets| has_made_room(change, &sets)).into_iter().for_each(|key| to.add(key));
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        let views = &self.context.views;
        let Some(deployment) = views.deployments.get(&key) else { return Ok(None) };
        let selector = adopt::selector(&deployment.spec.clone().unwrap_or_default().selector)?;
        let claim = Claim::new(&self.context.client, &*deployment);
        let sets = views.replica_sets.within(&key.namespace);
        let sets = claim.of(&views.replica_sets, sets, |set| adopt::selects(&selector, set)).await?;
        let rollout = Rollout::new(&self.context, &deployment, sets, Timestamp::now());
        match rollout.run().await {
            // What is made there is refused, and what is there goes.
            Err(error) if error.is_namespace_terminating() => Ok(None),
            outcome => outcome,
        }
    }
}

fn might_take(deployment: &Deployment, set: &ReplicaSet) -> bool {
    let selector = deployment.spec.as_ref().and_then(|spec| adopt::selector(&spec.selector).ok());
    selector.is_some_and(|selector| adopt::selects(&selector, set))
}

/// The Deployment that may wait for an old pod to be gone before it makes new ones.
fn has_made_room(change: &Change<Pod>, sets: &View<ReplicaSet>) -> Option<Key> {
    let ended = change.new.as_ref().is_none_or(|pod| matches!(pods::phase(pod), "Succeeded" | "Failed"));
    let pod = change.old.as_ref().filter(|_| ended)?;
    let set = sets.get(&owner::key_of_controller::<ReplicaSet>(&**pod)?)?;
    owner::key_of_controller::<Deployment>(&*set)
}

/// The order of ReplicaSets is that of their creation; names decide where times do not.
fn age(set: &ReplicaSet) -> (Option<Timestamp>, String) {
    (set.metadata.creation_timestamp.as_ref().map(|time| time.0), set.name_any())
}

#[cfg(test)]
mod tests;
