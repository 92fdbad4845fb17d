//! StatefulSets: pods with stable names and claims, made and updated in order.
//!
//! *Not done*: volumes of an adopted pod that lack the set's claims; Kubernetes tries to add them, which no pod allows.

pub mod identity;
pub mod plan;
pub mod retention;
pub mod status;
mod work;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{Resource, ResourceExt};

use self::work::Work;
use super::{Context, Controller, adopt, owner};
use crate::{
    error::Result,
    key::Key,
    queue::{Again, Queue},
    view::Change,
};

/// The controller of StatefulSets.
#[derive(Debug)]
pub struct StatefulSets(Context);

impl Controller for StatefulSets {
    const NAME: &'static str = "statefulset-controller";

    fn new(context: Context) -> Self {
        Self(context)
    }

    fn listen(&self, queue: &Queue<Key>) {
        let views = &self.0.views;
        let to = queue.clone();
        views
            .stateful_sets
            .on_change(move |change| change.latest().into_iter().for_each(|set| to.add(Key::of(&**set))));
        let (to, sets) = (queue.clone(), Arc::clone(&views.stateful_sets));
        views.pods.on_change(move |change| {
            wake_owners(&to, change);
            if let Some(orphan) = change.new.as_ref().filter(|pod| owner::controller_of(&***pod).is_none()) {
                let sets = sets.within(&orphan.namespace().unwrap_or_default());
                sets.iter().filter(|set| is_member(set, orphan)).for_each(|set| to.add(Key::of(&**set)));
            }
        });
        let to = queue.clone();
        views.revisions.on_change(move |change| wake_owners(&to, change));
        let (to, sets) = (queue.clone(), Arc::clone(&views.stateful_sets));
        views.claims.on_change(move |change| {
            // A pod may wait for a claim to go, or have lost one.
            if let Change { old: Some(gone), new: None } = change {
                let sets = sets.within(&gone.namespace().unwrap_or_default());
                sets.iter().filter(|set| could_claim(set, &gone.name_any())).for_each(|set| to.add(Key::of(&**set)));
            }
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        match self.0.views.stateful_sets.get(&key) {
            Some(set) => self.look_at(&set).await,
            None => Ok(None),
        }
    }
}

fn wake_owners<K: Resource>(queue: &Queue<Key>, change: &Change<K>) {
    let sides = [&change.old, &change.new].into_iter().flatten();
    sides.filter_map(|object| owner::key_of_controller::<StatefulSet>(&**object)).for_each(|key| queue.add(key));
}

fn could_claim(set: &StatefulSet, claim: &str) -> bool {
    let templates = set.spec.as_ref().and_then(|spec| spec.volume_claim_templates.as_ref()).into_iter().flatten();
    let pod = |template: &PersistentVolumeClaim| claim.strip_prefix(&template.name_any())?.strip_prefix('-');
    templates.filter_map(pod).any(|pod| identity::ordinal_of(set, pod).is_some())
}

/// Whether the pod has a name and labels of the set's.
fn is_member(set: &StatefulSet, pod: &Pod) -> bool {
    let selector = set.spec.as_ref().and_then(|spec| adopt::selector(&spec.selector).ok());
    identity::ordinal_of(set, &pod.name_any()).is_some()
        && selector.is_some_and(|selector| adopt::selects(&selector, pod))
}

impl StatefulSets {
    async fn look_at(&self, set: &Arc<StatefulSet>) -> Result<Again> {
        let work = Work { context: &self.0, set };
        if set.metadata.deletion_timestamp.is_some() {
            return work.see_off().await.map(|()| None);
        }
        let pods = work.pods().await?;
        let history = work.history().await?;
        let now = Timestamp::now();
        let plan = plan::plan(set, &pods, &history.newest.name_any(), now);
        let again = plan.again;
        let done = work.carry_out(plan, &history).await;
        work.write_status(&history, now).await?;
        done?;
        work.truncate(&history).await?;
        Ok(again)
    }
}

#[cfg(test)]
mod tests;
