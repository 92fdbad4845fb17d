//! One sync of one DaemonSet.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        apps::v1::{ControllerRevision, DaemonSet, DaemonSetSpec},
        core::v1::Pod,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{Resource, ResourceExt};

use super::{backoff::FailedPodBackoff, node_name, plan::DaemonSetPlan, pod, snapshot::DaemonSetSnapshot};
use crate::{
    controller::{
        ControllerContext,
        controller_ref_manager::{self, ControllerRefManager},
        owner_reference, pods,
        revision::{self, RevisionHistory, RevisionParent},
        write_through,
    },
    error::{ClusterError, Result},
    key::NamespacedKey,
    queue::RequeueAfter,
};

pub struct DaemonSetSync<'a> {
    pub context: &'a ControllerContext,
    /// The backoff of pods that end by themselves.
    pub backoff: &'a FailedPodBackoff,
    pub set: &'a Arc<DaemonSet>,
}

impl DaemonSetSync<'_> {
    /// Applies the plan and writes the status.
    pub async fn sync(&self) -> Result<RequeueAfter> {
        if self.set.spec.as_ref().is_some_and(|spec| spec.selector == LabelSelector::default()) {
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.context.events.record_warning(self.set.object_ref(&()), "SelectingAll", note);
            return Ok(None);
        }
        // The garbage collector may have removed the revisions already, so nothing is reconciled.
        if self.set.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let history = self.sync_revisions().await?;
        let hash = history.newest.labels().get(revision::POD_REVISION_HASH_LABEL).cloned().unwrap_or_default();
        let pods = self.claim_pods().await?;
        let now = Timestamp::now();
        let nodes = self.context.informers.nodes.all();
        let scene = DaemonSetSnapshot::new(self.set, &hash, &nodes, &pods, now);
        let (plan, soonest) = scene.map(|scene| (scene.plan(), scene.next_availability())).unwrap_or_default();
        let (retry, done) = self.execute(plan, &hash).await;
        self.write_status(&history, &hash, now).await?;
        done?;
        self.truncate_history(&history).await?;
        Ok([soonest, retry].into_iter().flatten().min())
    }

    fn namespace(&self) -> String {
        self.set.namespace().unwrap_or_default()
    }

    fn spec(&self) -> Result<&DaemonSetSpec> {
        self.set.spec.as_ref().ok_or_else(|| ClusterError::Object("a DaemonSet without spec".to_owned()))
    }

    async fn claim_pods(&self) -> Result<Vec<Arc<Pod>>> {
        let (view, selector) =
            (&self.context.informers.pods, controller_ref_manager::parse_selector(&self.spec()?.selector)?);
        let claim = ControllerRefManager::new(&self.context.client, &**self.set);
        claim
            .claim_objects(view, view.in_namespace(&self.namespace()), |pod| {
                controller_ref_manager::selects(&selector, pod)
            })
            .await
    }

    /// The set's pods in the informer, including the writes of this sync.
    fn cached_pods(&self) -> Vec<Arc<Pod>> {
        let mut pods = self.context.informers.pods.in_namespace(&self.namespace());
        pods.retain(|pod| owner_reference::is_controlled_by(&**pod, &**self.set));
        pods
    }

    async fn sync_revisions(&self) -> Result<RevisionHistory> {
        let spec = self.spec()?;
        let (view, selector) =
            (&self.context.informers.revisions, controller_ref_manager::parse_selector(&spec.selector)?);
        let wanted = |revision: &ControllerRevision| controller_ref_manager::selects(&selector, revision);
        let claim = ControllerRefManager::new(&self.context.client, &**self.set);
        let held = claim.claim_objects(view, view.in_namespace(&self.namespace()), wanted).await?;
        let collisions = self.set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let parent = RevisionParent {
            object: &**self.set,
            template: &spec.template,
            collisions,
            label: revision::POD_REVISION_HASH_LABEL,
        };
        revision::sync_revisions(self.context, &parent, held).await
    }

    /// Returns when to retry postponed work, and whether all other changes succeeded.
    async fn execute(&self, plan: DaemonSetPlan, hash: &str) -> (RequeueAfter, Result<()>) {
        let mut delete = plan.delete;
        let mut retry = None;
        for pod in plan.ended {
            match self.replace_ended(&pod) {
                Ok(()) => delete.push(pod),
                Err(pause) => retry = Some(retry.map_or(pause, |retry: Duration| retry.min(pause))),
            }
        }
        let made = write_through::slow_start_batch(plan.create, |node| self.create_pod(node, hash)).await;
        let deleted = write_through::slow_start_batch(delete, |pod| self.delete_pod(pod)).await;
        (retry, made.and(deleted))
    }

    /// Only failed pods are subject to the backoff.
    fn replace_ended(&self, pod: &Pod) -> Result<(), Duration> {
        let about = self.set.object_ref(&());
        let node = node_name(pod);
        let key = NamespacedKey::from_object(pod);
        if pods::phase(pod) == "Failed" {
            self.backoff.try_now(&self.set.uid().unwrap_or_default(), node)?;
            let note = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
            self.context.events.record_warning(about, "FailedDaemonPod", note);
        } else {
            let note = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
            self.context.events.record_normal(about, "SucceededDaemonPod", note);
        }
        Ok(())
    }

    async fn create_pod(&self, node: String, hash: &str) -> Result<()> {
        let Some(pod) = pod::new_pod(self.set, hash, &node) else { return Ok(()) };
        let about = self.set.object_ref(&());
        match write_through::create(&self.context.client, &self.context.informers.pods, &pod).await {
            Ok(pod) => {
                self.context.events.record_normal(
                    about,
                    "SuccessfulCreate",
                    format!("Created pod: {}", pod.name_any()),
                );
                Ok(())
            }
            Err(error) if error.is_namespace_terminating() => Ok(()),
            Err(error) => {
                self.context.events.record_warning(
                    about,
                    "FailedCreate",
                    format!("Error creating: {}", error.message()),
                );
                Err(error)
            }
        }
    }

    async fn delete_pod(&self, pod: Arc<Pod>) -> Result<()> {
        let about = self.set.object_ref(&());
        let outcome = write_through::delete(&self.context.client, &self.context.informers.pods, &*pod).await;
        match &outcome {
            Ok(()) => {
                self.context.events.record_normal(about, "SuccessfulDelete", format!("Deleted pod: {}", pod.name_any()))
            }
            Err(error) => {
                self.context.events.record_warning(
                    about,
                    "FailedDelete",
                    format!("Error deleting: {}", error.message()),
                );
            }
        }
        outcome
    }

    async fn write_status(&self, history: &RevisionHistory, hash: &str, now: Timestamp) -> Result<()> {
        let pods = self.cached_pods();
        let nodes = self.context.informers.nodes.all();
        let Some(scene) = DaemonSetSnapshot::new(self.set, hash, &nodes, &pods, now) else { return Ok(()) };
        let mut status = scene.status(self.set.status.clone().unwrap_or_default());
        status.observed_generation = self.set.metadata.generation;
        status.collision_count = Some(history.collisions).filter(|count| *count > 0);
        if self.set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let set = DaemonSet { status: Some(status), ..(**self.set).clone() };
        write_through::replace_status(&self.context.client, &self.context.informers.daemon_sets, &set).await.map(drop)
    }

    /// The pods of a DaemonSet name their revision by its hash.
    async fn truncate_history(&self, history: &RevisionHistory) -> Result<()> {
        let pods = self.cached_pods();
        let hashes: BTreeSet<_> =
            pods.iter().filter_map(|pod| pod.labels().get(revision::POD_REVISION_HASH_LABEL)).collect();
        let is_live = |revision: &&Arc<ControllerRevision>| {
            revision.labels().get(revision::POD_REVISION_HASH_LABEL).is_some_and(|hash| hashes.contains(hash))
        };
        let live: HashSet<String> = history.old.iter().filter(is_live).map(|revision| revision.name_any()).collect();
        let limit = self.set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        history.truncate(self.context, &live, limit).await
    }
}
