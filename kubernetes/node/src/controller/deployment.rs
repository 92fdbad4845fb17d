//! Deployments: one ReplicaSet for each template, and the rollout from the old ones to the new one.
//!
//! *Guaranteed*: during a rolling update the desired number of pods never exceeds `maxSurge`, and no pod is
//! removed that `maxUnavailable` protects. All state is in the size, template and annotations of old
//! ReplicaSets: `kubectl rollout undo` finds every revision that the history limit keeps. *Not done*: the
//! annotation that replaced `rollbackTo` of the API of 2016; `kubectl` has not written it for years.
//!
//! A sync writes the status once, at its end, as a patch of the differences.

mod conditions;
mod history;
mod limits;
mod proportional_scaling;
mod recreate_strategy;
mod revision;
mod rolling_update;
mod scale;
mod status;
mod sync;
mod template;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::Pod,
};
use kube::ResourceExt;

use self::sync::DeploymentSync;
use super::{
    ControllerContext, ResourceController,
    controller_ref_manager::{self, ControllerRefManager},
    owner_reference, pods,
};
use crate::{
    error::Result,
    informer::{InformerChange, SharedInformer},
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

#[derive(Debug)]
pub struct DeploymentController {
    context: ControllerContext,
}

impl ResourceController for DeploymentController {
    const NAME: &'static str = "deployment-controller";

    fn new(context: ControllerContext) -> Self {
        Self { context }
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let views = &self.context.informers;
        let to = queue.clone();
        views.deployments.on_change(move |change| {
            change.latest().into_iter().for_each(|deployment| to.add(NamespacedKey::from_object(&**deployment)))
        });
        let to = queue.clone();
        let deployments = Arc::downgrade(&views.deployments);
        views.replica_sets.on_change(move |change| {
            controller_ref_manager::affected_owners(change, &deployments, might_take)
                .into_iter()
                .for_each(|key| to.add(key));
        });
        let to = queue.clone();
        let sets = Arc::downgrade(&views.replica_sets);
        views.pods.on_change(move |change| {
            sets.upgrade()
                .and_then(|sets| deployment_of_removed_pod(change, &sets))
                .into_iter()
                .for_each(|key| to.add(key));
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let views = &self.context.informers;
        let Some(deployment) = views.deployments.get(&key) else { return Ok(None) };
        let selector = controller_ref_manager::parse_selector(&deployment.spec.clone().unwrap_or_default().selector)?;
        let claim = ControllerRefManager::new(&self.context.client, &*deployment);
        let sets = views.replica_sets.in_namespace(&key.namespace);
        let sets = claim
            .claim_objects(&views.replica_sets, sets, |set| controller_ref_manager::selects(&selector, set))
            .await?;
        let rollout = DeploymentSync::new(&self.context, &deployment, sets, Timestamp::now());
        match rollout.run().await {
            // No child can be created in the namespace, and the existing ones are being deleted.
            Err(error) if error.is_namespace_terminating() => Ok(None),
            outcome => outcome,
        }
    }
}

fn might_take(deployment: &Deployment, set: &ReplicaSet) -> bool {
    let selector =
        deployment.spec.as_ref().and_then(|spec| controller_ref_manager::parse_selector(&spec.selector).ok());
    selector.is_some_and(|selector| controller_ref_manager::selects(&selector, set))
}

/// The Deployment of a deleted pod: it may wait for old pods to be gone before it creates new ones.
fn deployment_of_removed_pod(change: &InformerChange<Pod>, sets: &SharedInformer<ReplicaSet>) -> Option<NamespacedKey> {
    let ended = change.new.as_ref().is_none_or(|pod| matches!(pods::phase(pod), "Succeeded" | "Failed"));
    let pod = change.old.as_ref().filter(|_| ended)?;
    let set = sets.get(&owner_reference::key_of_controller::<ReplicaSet>(&**pod)?)?;
    owner_reference::key_of_controller::<Deployment>(&*set)
}

/// Orders ReplicaSets by creation, then by name.
fn creation_order(set: &ReplicaSet) -> (Option<Timestamp>, String) {
    (set.metadata.creation_timestamp.as_ref().map(|time| time.0), set.name_any())
}

#[cfg(test)]
mod tests;
