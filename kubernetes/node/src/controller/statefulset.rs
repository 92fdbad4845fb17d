//! StatefulSets: pods with stable names and claims, created and updated in order.
//!
//! *Not done*: the claims of an adopted pod that lacks them; Kubernetes tries to add its volumes, which no pod
//! allows.

pub mod identity;
pub mod plan;
pub mod retention;
pub mod status;
mod sync;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{Resource, ResourceExt};

use self::sync::StatefulSetSync;
use super::{ControllerContext, ResourceController, controller_ref_manager, owner_reference};
use crate::{
    error::Result,
    informer::InformerChange,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

#[derive(Debug)]
pub struct StatefulSetController(ControllerContext);

impl ResourceController for StatefulSetController {
    const NAME: &'static str = "statefulset-controller";

    fn new(context: ControllerContext) -> Self {
        Self(context)
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let views = &self.0.informers;
        let to = queue.clone();
        views.stateful_sets.on_change(move |change| {
            change.latest().into_iter().for_each(|set| to.add(NamespacedKey::from_object(&**set)))
        });
        let to = queue.clone();
        let sets = Arc::clone(&views.stateful_sets);
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
        let sets = Arc::clone(&views.stateful_sets);
        views.claims.on_change(move |change| {
            // A pod may be waiting for the deletion of a claim, or may have lost one.
            if let InformerChange { old: Some(gone), new: None } = change {
                let sets = sets.in_namespace(&gone.namespace().unwrap_or_default());
                sets.iter()
                    .filter(|set| could_claim(set, &gone.name_any()))
                    .for_each(|set| to.add(NamespacedKey::from_object(&**set)));
            }
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        match self.0.informers.stateful_sets.get(&key) {
            Some(set) => self.sync(&set).await,
            None => Ok(None),
        }
    }
}

fn requeue_owners<K: Resource>(queue: &WorkQueue<NamespacedKey>, change: &InformerChange<K>) {
    let sides = [&change.old, &change.new].into_iter().flatten();
    sides
        .filter_map(|object| owner_reference::key_of_controller::<StatefulSet>(&**object))
        .for_each(|key| queue.add(key));
}

fn could_claim(set: &StatefulSet, claim: &str) -> bool {
    let templates = set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_ref()).into_iter().flatten();
    let pod = |template: &PersistentVolumeClaim| claim.strip_prefix(&template.name_any())?.strip_prefix('-');
    templates.filter_map(pod).any(|pod| identity::ordinal_of(set, pod).is_some())
}

/// Whether name and labels of the pod are those of the set.
fn is_member(set: &StatefulSet, pod: &Pod) -> bool {
    let selector = set.spec.as_ref().and_then(|spec| controller_ref_manager::parse_selector(&spec.selector).ok());
    identity::ordinal_of(set, &pod.name_any()).is_some()
        && selector.is_some_and(|selector| controller_ref_manager::selects(&selector, pod))
}

impl StatefulSetController {
    async fn sync(&self, set: &Arc<StatefulSet>) -> Result<RequeueAfter> {
        let work = StatefulSetSync { context: &self.0, set };
        if set.metadata.deletion_timestamp.is_some() {
            return work.write_final_status().await.map(|()| None);
        }
        let pods = work.claim_pods().await?;
        let history = work.sync_revisions().await?;
        let now = Timestamp::now();
        let plan = plan::plan(set, &pods, &history.newest.name_any(), now);
        let again = plan.requeue_after;
        let done = work.execute(plan, &history).await;
        work.write_status(&history, now).await?;
        done?;
        work.truncate_history(&history).await?;
        Ok(again)
    }
}

#[cfg(test)]
mod tests;
