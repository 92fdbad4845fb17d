//! DaemonSets: one pod on every eligible node.
//!
//! The scheduler binds the pods, which are tied to their nodes by affinity. It also checks the capacity of the
//! node: a pod without room waits there.

pub mod backoff;
pub mod plan;
pub mod pod;
mod rolling_update;
pub mod snapshot;
mod status;
mod sync;

use std::sync::Arc;

use k8s_openapi::api::{
    apps::v1::DaemonSet,
    core::v1::{Node, Pod},
};
use kube::{Resource, ResourceExt};

use self::{backoff::FailedPodBackoff, sync::DaemonSetSync};
use super::{ControllerContext, ResourceController, controller_ref_manager, owner_reference};
use crate::{
    error::Result,
    informer::InformerChange,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

#[derive(Debug)]
pub struct DaemonSetController {
    context: ControllerContext,
    backoff: FailedPodBackoff,
}

impl ResourceController for DaemonSetController {
    const NAME: &'static str = "daemonset-controller";

    fn new(context: ControllerContext) -> Self {
        Self { context, backoff: FailedPodBackoff::default() }
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let views = &self.context.informers;
        let to = queue.clone();
        views.daemon_sets.on_change(move |change| {
            change.latest().into_iter().for_each(|set| to.add(NamespacedKey::from_object(&**set)))
        });
        let to = queue.clone();
        let sets = Arc::clone(&views.daemon_sets);
        views.pods.on_change(move |change| {
            requeue_owners(&to, change);
            if let Some(orphan) = change.new.as_ref().filter(|pod| owner_reference::controller_of(&***pod).is_none()) {
                let sets = sets.in_namespace(&orphan.namespace().unwrap_or_default());
                sets.iter()
                    .filter(|set| is_member(set, orphan))
                    .for_each(|set| to.add(NamespacedKey::from_object(&**set)));
            }
        });
        let to = queue.clone();
        views.revisions.on_change(move |change| requeue_owners(&to, change));
        let to = queue.clone();
        let sets = Arc::clone(&views.daemon_sets);
        views.nodes.on_change(move |change| {
            if concerns_daemons(change) {
                sets.all().iter().for_each(|set| to.add(NamespacedKey::from_object(&**set)));
            }
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        match self.context.informers.daemon_sets.get(&key) {
            Some(set) => DaemonSetSync { context: &self.context, backoff: &self.backoff, set: &set }.sync().await,
            None => Ok(None),
        }
    }
}

fn requeue_owners<K: Resource>(queue: &WorkQueue<NamespacedKey>, change: &InformerChange<K>) {
    let sides = [&change.old, &change.new].into_iter().flatten();
    sides
        .filter_map(|object| owner_reference::key_of_controller::<DaemonSet>(&**object))
        .for_each(|key| queue.add(key));
}

/// Most changes of a node are heartbeats only.
fn concerns_daemons(change: &InformerChange<Node>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return true };
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    old.labels() != new.labels() || taints(old) != taints(new) || old.uid() != new.uid()
}

/// Whether the set's selector matches.
fn is_member(set: &DaemonSet, pod: &Pod) -> bool {
    let selector = set.spec.as_ref().and_then(|spec| controller_ref_manager::parse_selector(&spec.selector).ok());
    selector.is_some_and(|selector| controller_ref_manager::selects(&selector, pod))
}

/// The name of the pod's node, for messages.
fn node_name(pod: &Pod) -> &str {
    pod::target_node(pod).unwrap_or_default()
}

#[cfg(test)]
mod tests;
