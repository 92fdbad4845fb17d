//! ReplicaSet: so many pods of one template, all the time.
//!
//! *Guarantees.* Pods are made in batches that double as they succeed, so that a template that the API server refuses costs one
//! refusal and not hundreds. Pods that are missed least go first. *Not done*: ReplicationControllers.

mod rank;
mod replicas;
mod status;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{ResourceExt, core::Selector};

use super::{
    Context, Controller,
    adopt::{self, Claim},
    owner, pods,
    status::Update,
};
use crate::{
    error::Result,
    key::Key,
    queue::{Again, Queue},
};

pub use self::replicas::wanted;

/// Keeps every ReplicaSet's pods.
#[derive(Debug)]
pub struct ReplicaSets {
    context: Context,
}

impl Controller for ReplicaSets {
    const NAME: &'static str = "replicaset-controller";

    fn new(context: Context) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let views = &self.context.views;
        let to = queue.clone();
        views.replica_sets.on_change(move |change| change.latest().into_iter().for_each(|set| to.add(Key::of(&**set))));
        let (to, sets) = (queue.clone(), Arc::downgrade(&views.replica_sets));
        views.pods.on_change(move |change| {
            adopt::concerned(change, &sets, might_take).into_iter().for_each(|key| to.add(key));
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        let views = &self.context.views;
        let Some(set) = views.replica_sets.get(&key) else { return Ok(None) };
        let selector = adopt::selector(&set.spec.clone().unwrap_or_default().selector)?;
        let active = views.pods.within(&key.namespace).into_iter().filter(|pod| pods::is_active(pod));
        let claim = Claim::new(&self.context.client, &*set);
        let found = claim.of(&views.pods, active, |pod| adopt::selects(&selector, pod)).await?;

        let is_going = set.metadata.deletion_timestamp.is_some();
        let outcome = if is_going { Ok(()) } else { replicas::manage(&self.context, &set, found).await };

        // Our own writes are seen already.
        let (now, pods) = (Timestamp::now(), self.pods_of(&set, &selector));
        let status = status::of(&set, &pods, outcome.as_ref().err(), now);
        let update = Update::between(set.status.as_ref(), &status);
        update.write(&self.context.client, &views.replica_sets, &*set).await?;
        outcome.map_err(|failure| failure.error)?;
        Ok(next_available(&set, &pods, now))
    }
}

impl ReplicaSets {
    /// All that belong to it and have not ended, those on their way out included.
    fn pods_of(&self, set: &ReplicaSet, selector: &Selector) -> Vec<Arc<Pod>> {
        let pods = self.context.views.pods.within(&set.namespace().unwrap_or_default()).into_iter();
        let is_ours = |pod: &Pod| {
            owner::is_controlled_by(pod, set)
                && adopt::selects(selector, pod)
                && !matches!(pods::phase(pod), "Succeeded" | "Failed")
        };
        pods.filter(|pod| is_ours(pod)).collect()
    }
}

/// When the next pod that is ready will have been so for long enough.
fn next_available(set: &ReplicaSet, pods: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let seconds = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let active = pods.iter().filter(|pod| pods::is_active(pod));
    active.filter_map(|pod| pods::is_available(pod, seconds, now).err().flatten()).min()
}

fn might_take(set: &ReplicaSet, pod: &Pod) -> bool {
    let selector = set.spec.as_ref().and_then(|spec| adopt::selector(&spec.selector).ok());
    selector.is_some_and(|selector| adopt::selects(&selector, pod))
}

#[cfg(test)]
mod tests;
