//! One sync of one StatefulSet.

use std::{collections::HashSet, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{Pod, PodTemplateSpec},
};
use kube::{Resource, ResourceExt};
use serde_json::json;

use super::{
    identity, is_member,
    plan::{self, PodAction, StatefulSetPlan},
    retention::{self, ClaimOwners},
    status::{self, RevisionNames},
};
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
};

/// The label of a revision with its hash.
const CONTROLLER_REVISION_HASH_LABEL: &str = "controller.kubernetes.io/hash";

pub struct StatefulSetSync<'a> {
    pub context: &'a ControllerContext,
    pub set: &'a Arc<StatefulSet>,
}

impl StatefulSetSync<'_> {
    fn key(&self) -> NamespacedKey {
        NamespacedKey::from_object(&**self.set)
    }

    /// The pods of the set, after adoption and release.
    pub async fn claim_pods(&self) -> Result<Vec<Arc<Pod>>> {
        let view = &self.context.informers.pods;
        let all = view.in_namespace(&self.key().namespace);
        ControllerRefManager::new(&self.context.client, &**self.set)
            .claim_objects(view, all, |pod| is_member(self.set, pod))
            .await
    }

    /// The set's pods in the informer, including the writes of this sync.
    fn cached_pods(&self) -> Vec<Arc<Pod>> {
        let mut pods = self.context.informers.pods.in_namespace(&self.key().namespace);
        pods.retain(|pod| owner_reference::is_controlled_by(&**pod, &**self.set) && is_member(self.set, pod));
        pods
    }

    pub async fn sync_revisions(&self) -> Result<RevisionHistory> {
        let spec =
            self.set.spec.as_ref().ok_or_else(|| ClusterError::Object("a StatefulSet without spec".to_owned()))?;
        let selector = controller_ref_manager::parse_selector(&spec.selector)?;
        let view = &self.context.informers.revisions;
        let wanted = |revision: &ControllerRevision| controller_ref_manager::selects(&selector, revision);
        let claim = ControllerRefManager::new(&self.context.client, &**self.set);
        let held = claim.claim_objects(view, view.in_namespace(&self.key().namespace), wanted).await?;
        let collisions = self.set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let parent = RevisionParent {
            object: &**self.set,
            template: &spec.template,
            collisions,
            label: CONTROLLER_REVISION_HASH_LABEL,
        };
        revision::sync_revisions(self.context, &parent, held).await
    }

    /// The revision of pods that are not updated yet. Initially it is the newest.
    fn current_revision<'h>(&self, history: &'h RevisionHistory) -> &'h ControllerRevision {
        let name = self.set.status.as_ref().and_then(|status| status.current_revision.as_deref());
        name.and_then(|name| history.find(name)).unwrap_or(&history.newest)
    }

    pub async fn execute(&self, plan: StatefulSetPlan, history: &RevisionHistory) -> Result<()> {
        for stage in plan.stages {
            write_through::slow_start_batch(stage, |step| self.execute_action(step, history)).await?;
        }
        Ok(())
    }

    async fn execute_action(&self, step: PodAction, history: &RevisionHistory) -> Result<()> {
        match step {
            PodAction::Create(ordinal) => self.create_pod_with_claims(ordinal, history).await,
            PodAction::Repair(pod, condemned) => self.repair_pod(&pod, condemned).await,
            PodAction::Delete(pod) => self.delete(&pod).await,
        }
    }

    /// Creates the claims before the pod that uses them.
    async fn create_pod_with_claims(&self, ordinal: i32, history: &RevisionHistory) -> Result<()> {
        let name = identity::pod_name(self.set, ordinal);
        let claims = &self.context.informers.claims;
        let held = |claim: String| claims.get(&NamespacedKey::new(&self.key().namespace, claim));
        if identity::claim_names(self.set, &name).filter_map(held).any(|claim| retention::is_stale(&claim, &name)) {
            return Ok(());
        }
        let outcome = match self.create_claims(&name).await {
            Ok(()) => self.create_pod(ordinal, history).await,
            failed => failed,
        };
        self.record_outcome("create", &name, outcome)
    }

    async fn create_pod(&self, ordinal: i32, history: &RevisionHistory) -> Result<()> {
        let (revision, template) = self.revision_of(ordinal, history)?;
        let pod = identity::new_pod(self.set, &template, &revision, ordinal);
        write_through::create(&self.context.client, &self.context.informers.pods, &pod).await.map(drop)
    }

    /// In a rolling update the pods below the partition keep their revision.
    fn revision_of(&self, ordinal: i32, history: &RevisionHistory) -> Result<(String, PodTemplateSpec)> {
        let spec = self.set.spec.clone().unwrap_or_default();
        let held = self.set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or(0);
        let below = plan::partition(&spec).unwrap_or(held);
        let is_current = !plan::is_on_delete(&spec) && ordinal < plan::ordinals(&spec).start.saturating_add(below);
        let revision = if is_current { self.current_revision(history) } else { &history.newest };
        Ok((revision.name_any(), revision::template(revision)?))
    }

    async fn create_claims(&self, pod: &str) -> Result<()> {
        let claims = &self.context.informers.claims;
        for claim in identity::claims(self.set, pod) {
            if claims.get(&NamespacedKey::from_object(&claim)).is_some() {
                continue;
            }
            let outcome = write_through::create(&self.context.client, claims, &claim).await;
            let about = self.set.object_ref(&());
            let claim = claim.name_any();
            let set = self.set.name_any();
            match &outcome {
                Ok(_) => {
                    let note = format!("create Claim {claim} Pod {pod} in StatefulSet {set} success");
                    self.context.events.record_normal(about, "SuccessfulCreate", note);
                }
                Err(error) => {
                    let why = error.message();
                    let note = format!("create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {why}");
                    self.context.events.record_warning(about, "FailedCreate", note);
                }
            }
            outcome?;
        }
        Ok(())
    }

    async fn repair_pod(&self, pod: &Pod, condemned: bool) -> Result<()> {
        if !condemned && !plan::is_terminating(pod) && pods::phase(pod) == "Pending" {
            self.create_claims(&pod.name_any()).await?;
        }
        let lost = identity::lost_labels(self.set, pod);
        if !lost.is_empty() {
            let patch = json!({"metadata": {"uid": pod.uid(), "labels": lost}});
            let outcome =
                write_through::merge_patch(&self.context.client, &self.context.informers.pods, pod, &patch).await;
            self.record_outcome("update", &pod.name_any(), outcome.map(drop))?;
        }
        self.retain_claims(pod, condemned).await
    }

    async fn retain_claims(&self, pod: &Pod, condemned: bool) -> Result<()> {
        let claims = &self.context.informers.claims;
        for name in identity::claim_names(self.set, &pod.name_any()) {
            let Some(claim) = claims.get(&NamespacedKey::new(&self.key().namespace, &name)) else { continue };
            match retention::desired_owners(self.set, pod, condemned, &claim) {
                ClaimOwners::Unchanged => {}
                ClaimOwners::Foreign => {
                    let note = format!(
                        "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a managing controller, \
                         the retention policy is ignored for this claim"
                    );
                    self.context.events.record_warning(self.set.object_ref(&()), "ConflictingController", note);
                }
                ClaimOwners::Change(owners) => {
                    let version = claim.resource_version();
                    let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": owners}});
                    write_through::merge_patch(&self.context.client, claims, &*claim, &patch).await?;
                }
            }
        }
        Ok(())
    }

    async fn delete(&self, pod: &Pod) -> Result<()> {
        let outcome = write_through::delete(&self.context.client, &self.context.informers.pods, pod).await;
        self.record_outcome("delete", &pod.name_any(), outcome)
    }

    /// Publishes an Event in kube-controller-manager's words.
    fn record_outcome(&self, verb: &str, pod: &str, outcome: Result<()>) -> Result<()> {
        let about = self.set.object_ref(&());
        let set = self.set.name_any();
        let reason = |outcome: &str| match verb {
            "create" => format!("{outcome}Create"),
            "update" => format!("{outcome}Update"),
            _ => format!("{outcome}Delete"),
        };
        match &outcome {
            Ok(()) => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} successful");
                self.context.events.record_normal(about, &reason("Successful"), note);
            }
            Err(error) if error.is_namespace_terminating() => return Ok(()),
            // The name is taken by another pod or by one that is still terminating; the write is retried.
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {}", error.message());
                self.context.events.record_warning(about, &reason("Failed"), note);
            }
        }
        outcome
    }

    /// Writes the status if it differs.
    pub async fn write_status(&self, history: &RevisionHistory, now: Timestamp) -> Result<()> {
        let current = self.current_revision(history).name_any();
        let newest = history.newest.name_any();
        self.write_status_for(
            &RevisionNames { current: &current, newest: &newest, collisions: history.collisions },
            now,
        )
        .await
    }

    /// Writes the status of a set that is being deleted. The garbage collector deletes its pods and revisions,
    /// so none is created again.
    pub async fn write_final_status(&self) -> Result<()> {
        let Some(status) = &self.set.status else { return Ok(()) };
        let (Some(current), Some(newest)) = (&status.current_revision, &status.update_revision) else { return Ok(()) };
        let collisions = status.collision_count.unwrap_or(0);
        match self.write_status_for(&RevisionNames { current, newest, collisions }, Timestamp::now()).await {
            Err(error) if error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }

    async fn write_status_for(&self, revisions: &RevisionNames<'_>, now: Timestamp) -> Result<()> {
        let status = Some(status::calculate_status(self.set, &self.cached_pods(), revisions, now));
        if self.set.status == status {
            return Ok(());
        }
        let set = StatefulSet { status, ..(**self.set).clone() };
        write_through::replace_status(&self.context.client, &self.context.informers.stateful_sets, &set).await.map(drop)
    }

    pub async fn truncate_history(&self, history: &RevisionHistory) -> Result<()> {
        let pods = self.cached_pods();
        let of_pods = pods.iter().filter_map(|pod| pod.labels().get(revision::POD_REVISION_HASH_LABEL).cloned());
        let live: HashSet<String> = of_pods.chain([self.current_revision(history).name_any()]).collect();
        let limit = self.set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        history.truncate(self.context, &live, limit).await
    }
}
