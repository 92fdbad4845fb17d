//! One look at one StatefulSet: what belongs to it, what is done for it, and what is said of it.

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
    plan::{self, Plan, Step},
    retention::{self, Owners},
    status::{self, Revisions},
};
use crate::{
    controller::{
        Context,
        adopt::{self, Claim},
        owner, pods,
        revision::{self, History, Parent},
        write,
    },
    error::{Error, Result},
    key::Key,
};

/// The label of a revision that tells its hash.
const HASH: &str = "controller.kubernetes.io/hash";

/// One look at one set.
pub struct Work<'a> {
    /// What it works with.
    pub context: &'a Context,
    /// The set.
    pub set: &'a Arc<StatefulSet>,
}

impl Work<'_> {
    fn key(&self) -> Key {
        Key::of(&**self.set)
    }

    /// The pods that are the set's, after it took and released what it should.
    pub async fn pods(&self) -> Result<Vec<Arc<Pod>>> {
        let view = &self.context.views.pods;
        let all = view.within(&self.key().namespace);
        Claim::new(&self.context.client, &**self.set).of(view, all, |pod| is_member(self.set, pod)).await
    }

    /// The set's pods as they are seen now, after what was done to them.
    fn seen(&self) -> Vec<Arc<Pod>> {
        let mut pods = self.context.views.pods.within(&self.key().namespace);
        pods.retain(|pod| owner::is_controlled_by(&**pod, &**self.set) && is_member(self.set, pod));
        pods
    }

    /// The set's revisions.
    pub async fn history(&self) -> Result<History> {
        let spec = self.set.spec.as_ref().ok_or_else(|| Error::Object("a StatefulSet without spec".to_owned()))?;
        let selector = adopt::selector(&spec.selector)?;
        let view = &self.context.views.revisions;
        let wanted = |revision: &ControllerRevision| adopt::selects(&selector, revision);
        let claim = Claim::new(&self.context.client, &**self.set);
        let held = claim.of(view, view.within(&self.key().namespace), wanted).await?;
        let collisions = self.set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let parent = Parent { object: &**self.set, template: &spec.template, collisions, label: HASH };
        revision::settle(self.context, &parent, held).await
    }

    /// The revision of pods that are not updated yet. At the start it is the newest.
    fn current<'h>(&self, history: &'h History) -> &'h ControllerRevision {
        let name = self.set.status.as_ref().and_then(|status| status.current_revision.as_deref());
        name.and_then(|name| history.find(name)).unwrap_or(&history.newest)
    }

    /// Does what is planned.
    pub async fn carry_out(&self, plan: Plan, history: &History) -> Result<()> {
        for stage in plan.stages {
            write::slow_start(stage, |step| self.take(step, history)).await?;
        }
        Ok(())
    }

    async fn take(&self, step: Step, history: &History) -> Result<()> {
        match step {
            Step::Make(ordinal) => self.make(ordinal, history).await,
            Step::Tend(pod, condemned) => self.tend(&pod, condemned).await,
            Step::Delete(pod) => self.delete(&pod).await,
        }
    }

    /// Claims come before the pod that uses them.
    async fn make(&self, ordinal: i32, history: &History) -> Result<()> {
        let name = identity::pod_name(self.set, ordinal);
        let claims = &self.context.views.claims;
        let held = |claim: String| claims.get(&Key::new(&self.key().namespace, claim));
        if identity::claim_names(self.set, &name).filter_map(held).any(|claim| retention::is_stale(&claim, &name)) {
            return Ok(());
        }
        let outcome = match self.make_claims(&name).await {
            Ok(()) => self.make_pod(ordinal, history).await,
            failed => failed,
        };
        self.report("create", &name, outcome)
    }

    async fn make_pod(&self, ordinal: i32, history: &History) -> Result<()> {
        let (revision, template) = self.revision_of(ordinal, history)?;
        let pod = identity::pod(self.set, &template, &revision, ordinal);
        write::create(&self.context.client, &self.context.views.pods, &pod).await.map(drop)
    }

    /// In a rolling update the pods below the partition stay what they were.
    fn revision_of(&self, ordinal: i32, history: &History) -> Result<(String, PodTemplateSpec)> {
        let spec = self.set.spec.clone().unwrap_or_default();
        let held = self.set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or(0);
        let below = plan::partition(&spec).unwrap_or(held);
        let is_current = !plan::is_on_delete(&spec) && ordinal < plan::ordinals(&spec).start.saturating_add(below);
        let revision = if is_current { self.current(history) } else { &history.newest };
        Ok((revision.name_any(), revision::template(revision)?))
    }

    async fn make_claims(&self, pod: &str) -> Result<()> {
        let claims = &self.context.views.claims;
        for claim in identity::claims(self.set, pod) {
            if claims.get(&Key::of(&claim)).is_some() {
                continue;
            }
            let outcome = write::create(&self.context.client, claims, &claim).await;
            let (about, claim, set) = (self.set.object_ref(&()), claim.name_any(), self.set.name_any());
            match &outcome {
                Ok(_) => {
                    let note = format!("create Claim {claim} Pod {pod} in StatefulSet {set} success");
                    self.context.events.normal(about, "SuccessfulCreate", note);
                }
                Err(error) => {
                    let why = error.message();
                    let note = format!("create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {why}");
                    self.context.events.warning(about, "FailedCreate", note);
                }
            }
            outcome?;
        }
        Ok(())
    }

    async fn tend(&self, pod: &Pod, condemned: bool) -> Result<()> {
        if !condemned && !plan::is_terminating(pod) && pods::phase(pod) == "Pending" {
            self.make_claims(&pod.name_any()).await?;
        }
        let lost = identity::lost_labels(self.set, pod);
        if !lost.is_empty() {
            let patch = json!({"metadata": {"uid": pod.uid(), "labels": lost}});
            let outcome = write::merge(&self.context.client, &self.context.views.pods, pod, &patch).await;
            self.report("update", &pod.name_any(), outcome.map(drop))?;
        }
        self.retain_claims(pod, condemned).await
    }

    async fn retain_claims(&self, pod: &Pod, condemned: bool) -> Result<()> {
        let claims = &self.context.views.claims;
        for name in identity::claim_names(self.set, &pod.name_any()) {
            let Some(claim) = claims.get(&Key::new(&self.key().namespace, &name)) else { continue };
            match retention::owners(self.set, pod, condemned, &claim) {
                Owners::Right => {}
                Owners::Taken => {
                    let note = format!(
                        "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a managing controller, \
                         the retention policy is ignored for this claim"
                    );
                    self.context.events.warning(self.set.object_ref(&()), "ConflictingController", note);
                }
                Owners::Change(owners) => {
                    let version = claim.resource_version();
                    let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": owners}});
                    write::merge(&self.context.client, claims, &*claim, &patch).await?;
                }
            }
        }
        Ok(())
    }

    async fn delete(&self, pod: &Pod) -> Result<()> {
        let outcome = write::delete(&self.context.client, &self.context.views.pods, pod).await;
        self.report("delete", &pod.name_any(), outcome)
    }

    /// Tells of it in kube-controller-manager's words.
    fn report(&self, verb: &str, pod: &str, outcome: Result<()>) -> Result<()> {
        let (about, set) = (self.set.object_ref(&()), self.set.name_any());
        let reason = |outcome: &str| match verb {
            "create" => format!("{outcome}Create"),
            "update" => format!("{outcome}Update"),
            _ => format!("{outcome}Delete"),
        };
        match &outcome {
            Ok(()) => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} successful");
                self.context.events.normal(about, &reason("Successful"), note);
            }
            Err(error) if error.is_namespace_terminating() => return Ok(()),
            // Somebody else's pod, or an earlier one that is not gone yet, has the name: it is tried again.
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {}", error.message());
                self.context.events.warning(about, &reason("Failed"), note);
            }
        }
        outcome
    }

    /// Says how things stand, if that changed.
    pub async fn write_status(&self, history: &History, now: Timestamp) -> Result<()> {
        let (current, newest) = (self.current(history).name_any(), history.newest.name_any());
        self.say(&Revisions { current: &current, newest: &newest, collisions: history.collisions }, now).await
    }

    /// Says what is left of a set that is being deleted. The garbage collector takes its pods and revisions: none is made again.
    pub async fn see_off(&self) -> Result<()> {
        let Some(status) = &self.set.status else { return Ok(()) };
        let (Some(current), Some(newest)) = (&status.current_revision, &status.update_revision) else { return Ok(()) };
        let collisions = status.collision_count.unwrap_or(0);
        match self.say(&Revisions { current, newest, collisions }, Timestamp::now()).await {
            Err(error) if error.is_not_found() => Ok(()),
            outcome => outcome,
        }
    }

    async fn say(&self, revisions: &Revisions<'_>, now: Timestamp) -> Result<()> {
        let status = Some(status::status(self.set, &self.seen(), revisions, now));
        if self.set.status == status {
            return Ok(());
        }
        let set = StatefulSet { status, ..(**self.set).clone() };
        write::status(&self.context.client, &self.context.views.stateful_sets, &set).await.map(drop)
    }

    /// Forgets revisions that nobody needs.
    pub async fn truncate(&self, history: &History) -> Result<()> {
        let pods = self.seen();
        let of_pods = pods.iter().filter_map(|pod| pod.labels().get(revision::POD_LABEL).cloned());
        let live: HashSet<String> = of_pods.chain([self.current(history).name_any()]).collect();
        let limit = self.set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        history.truncate(self.context, &live, limit).await
    }
}
