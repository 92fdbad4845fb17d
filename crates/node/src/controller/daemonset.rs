//! DaemonSets: a pod on every node that fits.
//!
//! Pods are bound by the scheduler, as they are tied to their nodes by affinity. A node's capacity is the scheduler's business: a
//! pod that finds no room waits there.

pub mod backoff;
pub mod plan;
pub mod pod;
mod roll;
pub mod scene;
mod status;
mod work;

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, Pod},
};
use kube::{Resource, ResourceExt};

use self::{backoff::Backoff, work::Work};
use super::{Context, Controller, adopt, owner};
use crate::{
    error::Result,
    key::Key,
    queue::{Again, Queue},
    view::Change,
};

/// The controller of DaemonSets.
#[derive(Debug)]
pub struct DaemonSets {
    context: Context,
    backoff: Backoff,
}

impl Controller for DaemonSets {
    const NAME: &'static str = "daemonset-controller";

    fn new(context: Context) -> Self {
        Self { context, backoff: Backoff::default() }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let views = &self.context.views;
        let to = queue.clone();
        views.daemon_sets.on_change(move |change| change.latest().into_iter().for_each(|set| to.add(Key::of(&**set))));
        let (to, sets) = (queue.clone(), Arc::clone(&views.daemon_sets));
        views.pods.on_change(move |change| {
            wake_owners(&to, change);
            if let Some(orphan) = change.new.as_ref().filter(|pod| owner::controller_of(&***pod).is_none()) {
                let sets = sets.within(&orphan.namespace().unwrap_or_default());
                sets.iter().filter(|set| is_member(set, orphan)).for_each(|set| to.add(Key::of(&**set)));
            }
        });
        let to = queue.clone();
        views.revisions.on_change(move |change| wake_owners(&to, change));
        let (to, sets) = (queue.clone(), Arc::clone(&views.daemon_sets));
        views.nodes.on_change(move |change| {
            if concerns_daemons(change) {
                sets.all().iter().for_each(|set| to.add(Key::of(&**set)));
            }
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        match self.context.views.daemon_sets.get(&key) {
            Some(set) => Work { context: &self.context, backoff: &self.backoff, set: &set }.look().await,
            None => Ok(None),
        }
    }
}

fn wake_owners<K: Resource>(queue: &Queue<Key>, change: &Change<K>) {
    let sides = [&change.old, &change.new].into_iter().flatten();
    sides.filter_map(|object| owner::key_of_controller::<DaemonSet>(&**object)).for_each(|key| queue.add(key));
}

/// Most changes of a node only say that it still is there.
fn concerns_daemons(change: &Change<Node>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    old.labels() != new.labels() || taints(old) != taints(new) || old.uid() != new.uid()
}

/// Whether the set's selector matches.
fn is_member(set: &DaemonSet, pod: &Pod) -> bool {
    let selector = set.spec.as_ref().and_then(|spec| adopt::selector(&spec.selector).ok());
    selector.is_some_and(|selector| adopt::selects(&selector, pod))
}

/// The name of the node that the pod is on, for people.
fn node_name(pod: &Pod) -> &str {
    pod::node_of(pod).unwrap_or_default()
}

#[cfg(test)]
mod tests;
