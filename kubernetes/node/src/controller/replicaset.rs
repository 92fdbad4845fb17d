//! ReplicaSets: a constant number of pods of one template.
//!
//! *Guaranteed*: pods are created in batches that double as they succeed, so that a template that the API
//! server rejects costs one rejected request and not hundreds. The least needed pods are deleted first. *Not
//! done*: ReplicationControllers.

mod deletion_order;
mod replicas;
mod status;

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
use kube::{ResourceExt, core::Selector};

use super::{
    ControllerContext, ResourceController,
    controller_ref_manager::{self, ControllerRefManager},
    owner_reference, pods,
    status::StatusPatch,
};
use crate::{
    error::Result,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

pub use self::replicas::desired_replicas;

#[derive(Debug)]
pub struct ReplicaSetController {
    context: ControllerContext,
}

impl ResourceController for ReplicaSetController {
    const NAME: &'static str = "replicaset-controller";

    fn new(context: ControllerContext) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let views = &self.context.informers;
        let to = queue.clone();
        views.replica_sets.on_change(move |change| {
            change.latest().into_iter().for_each(|set| to.add(NamespacedKey::from_object(&**set)))
        });
        let to = queue.clone();
        let sets = Arc::downgrade(&views.replica_sets);
        views.pods.on_change(move |change| {
            controller_ref_manager::affected_owners(change, &sets, might_take).into_iter().for_each(|key| to.add(key));
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let views = &self.context.informers;
        let Some(set) = views.replica_sets.get(&key) else { return Ok(None) };
        let selector = controller_ref_manager::parse_selector(&set.spec.clone().unwrap_or_default().selector)?;
        let active = views.pods.in_namespace(&key.namespace).into_iter().filter(|pod| pods::is_active(pod));
        let claim = ControllerRefManager::new(&self.context.client, &*set);
        let found =
            claim.claim_objects(&views.pods, active, |pod| controller_ref_manager::selects(&selector, pod)).await?;

        let is_going = set.metadata.deletion_timestamp.is_some();
        let outcome = if is_going { Ok(()) } else { replicas::manage_replicas(&self.context, &set, found).await };

        // The informer includes our own writes.
        let now = Timestamp::now();
        let pods = self.claim_pods(&set, &selector);
        let status = status::calculate_status(&set, &pods, outcome.as_ref().err(), now);
        let update = StatusPatch::between(set.status.as_ref(), &status);
        update.write(&self.context.client, &views.replica_sets, &*set).await?;
        outcome.map_err(|failure| failure.error)?;
        Ok(next_available(&set, &pods, now))
    }
}

impl ReplicaSetController {
    /// All pods of the set that have not ended, including terminating ones.
    fn claim_pods(&self, set: &ReplicaSet, selector: &Selector) -> Vec<Arc<Pod>> {
        let pods = self.context.informers.pods.in_namespace(&set.namespace().unwrap_or_default()).into_iter();
        let is_ours = |pod: &Pod| {
            owner_reference::is_controlled_by(pod, set)
                && controller_ref_manager::selects(selector, pod)
                && !matches!(pods::phase(pod), "Succeeded" | "Failed")
        };
        pods.filter(|pod| is_ours(pod)).collect()
    }
}

/// The time until the next ready pod has been ready for long enough.
fn next_available(set: &ReplicaSet, pods: &[Arc<Pod>], now: Timestamp) -> Option<Duration> {
    let seconds = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
    let active = pods.iter().filter(|pod| pods::is_active(pod));
    active.filter_map(|pod| pods::is_available(pod, seconds, now).err().flatten()).min()
}

fn might_take(set: &ReplicaSet, pod: &Pod) -> bool {
    let selector = set.spec.as_ref().and_then(|spec| controller_ref_manager::parse_selector(&spec.selector).ok());
    selector.is_some_and(|selector| controller_ref_manager::selects(&selector, pod))
}

#[cfg(test)]
mod tests;
