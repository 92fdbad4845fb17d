//! One look at one DaemonSet.

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

use super::{backoff::Backoff, node_name, plan::Plan, pod, scene::Scene};
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
    queue::Again,
};

/// One look.
pub struct Work<'a> {
    /// What it works with.
    pub context: &'a Context,
    /// Of pods that end by themselves.
    pub backoff: &'a Backoff,
    /// The set.
    pub set: &'a Arc<DaemonSet>,
}

impl Work<'_> {
    /// Does what is to be done now.
    pub async fn look(&self) -> Result<Again> {
        if self.set.spec.as_ref().is_some_and(|spec| spec.selector == LabelSelector::default()) {
            let note = "This daemon set is selecting all pods. A non-empty selector is required.";
            self.context.events.warning(self.set.object_ref(&()), "SelectingAll", note);
            return Ok(None);
        }
        // The garbage collector may have taken its revisions already: nothing could be said of it.
        if self.set.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let history = self.history().await?;
        let hash = history.newest.labels().get(revision::POD_LABEL).cloned().unwrap_or_default();
        let (pods, now) = (self.pods().await?, Timestamp::now());
        let nodes = self.context.views.nodes.all();
        let scene = Scene::new(self.set, &hash, &nodes, &pods, now);
        let (plan, soonest) = scene.map(|scene| (scene.plan(), scene.soonest())).unwrap_or_default();
        let (retry, done) = self.carry_out(plan, &hash).await;
        self.write_status(&history, &hash, now).await?;
        done?;
        self.truncate(&history).await?;
        Ok([soonest, retry].into_iter().flatten().min())
    }

    fn namespace(&self) -> String {
        self.set.namespace().unwrap_or_default()
    }

    fn spec(&self) -> Result<&DaemonSetSpec> {
        self.set.spec.as_ref().ok_or_else(|| Error::Object("a DaemonSet without spec".to_owned()))
    }

    async fn pods(&self) -> Result<Vec<Arc<Pod>>> {
        let (view, selector) = (&self.context.views.pods, adopt::selector(&self.spec()?.selector)?);
        let claim = Claim::new(&self.context.client, &**self.set);
        claim.of(view, view.within(&self.namespace()), |pod| adopt::selects(&selector, pod)).await
    }

    /// The set's pods as they are seen now, after what was done to them.
    fn seen(&self) -> Vec<Arc<Pod>> {
        let mut pods = self.context.views.pods.within(&self.namespace());
        pods.retain(|pod| owner::is_controlled_by(&**pod, &**self.set));
        pods
    }

    async fn history(&self) -> Result<History> {
        let spec = self.spec()?;
        let (view, selector) = (&self.context.views.revisions, adopt::selector(&spec.selector)?);
        let wanted = |revision: &ControllerRevision| adopt::selects(&selector, revision);
        let claim = Claim::new(&self.context.client, &**self.set);
        let held = claim.of(view, view.within(&self.namespace()), wanted).await?;
        let collisions = self.set.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
        let parent = Parent { object: &**self.set, template: &spec.template, collisions, label: revision::POD_LABEL };
        revision::settle(self.context, &parent, held).await
    }

    /// Answers when to try again what was put off, and whether all else succeeded.
    async fn carry_out(&self, plan: Plan, hash: &str) -> (Again, Result<()>) {
        let (mut delete, mut retry) = (plan.delete, None);
        for pod in plan.ended {
            match self.replace_ended(&pod) {
                Ok(()) => delete.push(pod),
                Err(pause) => retry = Some(retry.map_or(pause, |retry: Duration| retry.min(pause))),
            }
        }
        let made = write::slow_start(plan.make, |node| self.make(node, hash)).await;
        let deleted = write::slow_start(delete, |pod| self.delete(pod)).await;
        (retry, made.and(deleted))
    }

    /// Only failures are put off.
    fn replace_ended(&self, pod: &Pod) -> Result<(), Duration> {
        let (about, node, key) = (self.set.object_ref(&()), node_name(pod), Key::of(pod));
        if pods::phase(pod) == "Failed" {
            self.backoff.try_now(&self.set.uid().unwrap_or_default(), node)?;
            let note = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
            self.context.events.warning(about, "FailedDaemonPod", note);
        } else {
            let note = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
            self.context.events.normal(about, "SucceededDaemonPod", note);
        }
        Ok(())
    }

    async fn make(&self, node: String, hash: &str) -> Result<()> {
        let Some(pod) = pod::pod(self.set, hash, &node) else { return Ok(()) };
        let about = self.set.object_ref(&());
        match write::create(&self.context.client, &self.context.views.pods, &pod).await {
            Ok(pod) => {
                self.context.events.normal(about, "SuccessfulCreate", format!("Created pod: {}", pod.name_any()));
                Ok(())
            }
            Err(error) if error.is_namespace_terminating() => Ok(()),
            Err(error) => {
                self.context.events.warning(about, "FailedCreate", format!("Error creating: {}", error.message()));
                Err(error)
            }
        }
    }

    async fn delete(&self, pod: Arc<Pod>) -> Result<()> {
        let about = self.set.object_ref(&());
        let outcome = write::delete(&self.context.client, &self.context.views.pods, &*pod).await;
        match &outcome {
            Ok(()) => self.context.events.normal(about, "SuccessfulDelete", format!("Deleted pod: {}", pod.name_any())),
            Err(error) => {
                self.context.events.warning(about, "FailedDelete", format!("Error deleting: {}", error.message()));
            }
        }
        outcome
    }

    async fn write_status(&self, history: &History, hash: &str, now: Timestamp) -> Result<()> {
        let (pods, nodes) = (self.seen(), self.context.views.nodes.all());
        let Some(scene) = Scene::new(self.set, hash, &nodes, &pods, now) else { return Ok(()) };
        let mut status = scene.status(self.set.status.clone().unwrap_or_default());
        status.observed_generation = self.set.metadata.generation;
        status.collision_count = Some(history.collisions).filter(|count| *count > 0);
        if self.set.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let set = DaemonSet { status: Some(status), ..(**self.set).clone() };
        write::status(&self.context.client, &self.context.views.daemon_sets, &set).await.map(drop)
    }

    /// Pods name their revision by its hash.
    async fn truncate(&self, history: &History) -> Result<()> {
        let pods = self.seen();
        let hashes: BTreeSet<_> = pods.iter().filter_map(|pod| pod.labels().get(revision::POD_LABEL)).collect();
        let is_live = |revision: &&Arc<ControllerRevision>| {
            revision.labels().get(revision::POD_LABEL).is_some_and(|hash| hashes.contains(hash))
        };
        let live: HashSet<String> = history.old.iter().filter(is_live).map(|revision| revision.name_any()).collect();
        let limit = self.set.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        history.truncate(self.context, &live, limit).await
    }
}
