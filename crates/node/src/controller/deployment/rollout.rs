//! One look at one Deployment.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta};
use serde_json::{Value, json};

use super::{
    age,
    conditions::{self, CREATED, FOUND, NOT_CREATED, PAUSED, PROGRESSING, RESUMED, TIMED_OUT},
    limits::Limits,
    revision::{self, REVISION},
    status::{self, Sets},
    template,
};
use crate::{
    controller::{Context, owner, replicaset::wanted, status::Update, write},
    error::{Error, Result},
    queue::Again,
};

/// What is known of the Deployment, and the status that becomes of it.
pub(super) struct Rollout<'a> {
    pub context: &'a Context,
    pub deployment: &'a Deployment,
    pub limits: Limits,
    /// With the Deployment's template of now, if there is one.
    pub new: Option<Arc<ReplicaSet>>,
    /// All others, oldest first.
    pub old: Vec<Arc<ReplicaSet>>,
    draft: DeploymentStatus,
    revision: Option<String>,
    now: Timestamp,
}

/// Whether a look was about the rollout, so that its progress is judged.
enum Looked {
    AtRollout,
    AtSize,
}

impl<'a> Rollout<'a> {
    pub fn new(
        context: &'a Context,
        deployment: &'a Deployment,
        mut sets: Vec<Arc<ReplicaSet>>,
        now: Timestamp,
    ) -> Self {
        sets.sort_by_cached_key(|set| age(set));
        let new = template::find(&template::current(deployment), &sets).cloned();
        sets.retain(|set| new.as_ref().is_none_or(|new| new.uid() != set.uid()));
        let limits = Limits::of(deployment);
        let draft = deployment.status.clone().unwrap_or_default();
        Self { context, deployment, limits, new, old: sets, draft, revision: None, now }
    }

    /// Takes the next step, and writes the status.
    pub async fn run(mut self) -> Result<Again> {
        let looked = match self.step().await {
            Ok(looked) => looked,
            Err(error) => {
                self.write(self.draft.clone()).await?;
                return Err(error);
            }
        };
        let sets = Sets { new: self.new.as_ref(), old: &self.old };
        let mut status = status::count(self.deployment, &self.draft, sets, self.now);
        let mut again = None;
        if let Looked::AtRollout = looked {
            status::progress(self.deployment, &mut status, sets, self.now);
            again = status::next_check(self.deployment, &status, self.now);
        }
        self.write(status).await?;
        Ok(again)
    }

    async fn step(&mut self) -> Result<Looked> {
        let is_paused = self.deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or(false);
        if self.deployment.metadata.deletion_timestamp.is_some() {
            self.renew().await?;
            return Ok(Looked::AtSize);
        }
        self.note_pause(is_paused);
        self.renew().await?;
        if is_paused {
            self.scale().await?;
            self.clean_up().await?;
            return Ok(Looked::AtSize);
        }
        if self.is_resized() {
            self.scale().await?;
            return Ok(Looked::AtSize);
        }
        if self.limits.is_rolling { self.roll().await } else { self.recreate().await }?;
        Ok(Looked::AtRollout)
    }

    async fn write(&self, mut status: DeploymentStatus) -> Result<()> {
        status.conditions = status.conditions.filter(|conditions| !conditions.is_empty());
        let mut update = Update::between(self.deployment.status.as_ref(), &status);
        if let Some(revision) = &self.revision
            && self.deployment.annotations().get(REVISION) != Some(revision)
        {
            update.annotate(REVISION, revision);
        }
        update.write(&self.context.client, &self.context.views.deployments, self.deployment).await
    }

    /// A rollout that somebody stops does not run out of time.
    fn note_pause(&mut self, is_paused: bool) {
        let held = conditions::get(&self.draft, PROGRESSING);
        if status::deadline(self.deployment).is_none() || conditions::is(held, TIMED_OUT) {
            return;
        }
        let (reason, message) = match (is_paused, conditions::is(held, PAUSED)) {
            (true, false) => (PAUSED, "Deployment is paused"),
            (false, true) => (RESUMED, "Deployment is resumed"),
            _ => return,
        };
        self.set_progressing("Unknown", reason, message.to_owned());
    }

    fn set_progressing(&mut self, status: &str, reason: &str, message: String) {
        conditions::set(&mut self.draft, conditions::new(PROGRESSING, status, reason, message, self.now));
    }

    /// Brings what the newest ReplicaSet remembers up to date: its revision, the Deployment's annotations, how long is ready.
    async fn renew(&mut self) -> Result<()> {
        let Some(new) = &self.new else { return Ok(()) };
        let annotations = revision::newest(new, self.deployment, self.highest_old());
        let min_ready = self.min_ready_seconds();
        let held = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        let new = if annotations.is_empty() && held.unwrap_or(0) == min_ready.unwrap_or(0) {
            Arc::clone(new)
        } else {
            self.change(new, json!({ "minReadySeconds": min_ready.unwrap_or(0) }), annotations).await?
        };
        self.revision = new.annotations().get(REVISION).cloned();
        if status::deadline(self.deployment).is_some() && conditions::get(&self.draft, PROGRESSING).is_none() {
            self.set_progressing("True", FOUND, format!("Found new replica set {:?}", new.name_any()));
        }
        self.new = Some(new);
        Ok(())
    }

    fn highest_old(&self) -> i64 {
        self.old.iter().map(|set| revision::of(set)).max().unwrap_or(0)
    }

    fn min_ready_seconds(&self) -> Option<i32> {
        self.deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds)
    }

    /// Changes a ReplicaSet, unless somebody has since.
    async fn change(
        &self,
        set: &ReplicaSet,
        spec: Value,
        annotations: BTreeMap<String, String>,
    ) -> Result<Arc<ReplicaSet>> {
        let metadata = json!({
            "uid": set.uid(), "resourceVersion": set.resource_version(), "annotations": annotations,
        });
        let patch = json!({ "metadata": metadata, "spec": spec });
        write::merge(&self.context.client, &self.context.views.replica_sets, set, &patch).await
    }

    /// Gives a ReplicaSet this size. Without `always` nothing is written if it has the size already; with it, the
    /// annotations are brought up to date also then. Returns whether the size has changed.
    pub async fn resize(&self, set: &mut Arc<ReplicaSet>, size: i64, always: bool) -> Result<bool> {
        let (held, size) = (wanted(set), i32::try_from(size.max(0)).unwrap_or(i32::MAX));
        let annotations = revision::sizes(set, &self.limits);
        if held == size && (!always || annotations.is_empty()) {
            return Ok(false);
        }
        *set = self.change(set, json!({ "replicas": size }), annotations).await?;
        if held != size {
            let direction = if held < size { "up" } else { "down" };
            self.tell_scaled(direction, &set.name_any(), held, size);
        }
        Ok(held != size)
    }

    fn tell_scaled(&self, direction: &str, set: &str, from: i32, to: i32) {
        let note = format!("Scaled {direction} replica set {set} from {from} to {to}");
        self.context.events.normal(self.deployment.object_ref(&()), "ScalingReplicaSet", note);
    }

    /// Makes the ReplicaSet for the template of now, unless there is one.
    pub async fn create_new(&mut self) -> Result<()> {
        if self.new.is_some() {
            return Ok(());
        }
        let set = self.new_set();
        let (name, size) = (set.name_any(), wanted(&set));
        match write::create(&self.context.client, &self.context.views.replica_sets, &set).await {
            Ok(made) => {
                if size > 0 {
                    self.tell_scaled("up", &name, 0, size);
                }
                self.revision = made.annotations().get(REVISION).cloned();
                self.new = Some(made);
                if status::deadline(self.deployment).is_some() {
                    self.set_progressing("True", CREATED, format!("Created new replica set {name:?}"));
                }
                Ok(())
            }
            Err(error) if error.already_exists() => self.take_existing(&name, error).await,
            Err(error) if error.is_namespace_terminating() => Err(error),
            Err(error) => {
                let message = format!("Failed to create new replica set {name:?}: {}", error.message());
                self.context.events.warning(self.deployment.object_ref(&()), NOT_CREATED, message.clone());
                if status::deadline(self.deployment).is_some() {
                    self.set_progressing("False", NOT_CREATED, message);
                }
                Err(error)
            }
        }
    }

    /// One of this name is there. It is ours, seen late, or two templates have the same hash: then the next hash is tried.
    async fn take_existing(&mut self, name: &str, error: Error) -> Result<()> {
        let api: Api<ReplicaSet> =
            Api::namespaced(self.context.client.clone(), &self.deployment.namespace().unwrap_or_default());
        let set = api.get_opt(name).await?;
        match set {
            Some(set)
                if owner::is_controlled_by(&set, self.deployment)
                    && template::has(&set, &template::current(self.deployment)) =>
            {
                self.revision = set.annotations().get(REVISION).cloned();
                self.new = Some(self.context.views.replica_sets.note(set));
                Ok(())
            }
            _ => {
                self.draft.collision_count = Some(self.draft.collision_count.unwrap_or(0).saturating_add(1));
                Err(error)
            }
        }
    }

    fn new_set(&self) -> ReplicaSet {
        let spec = self.deployment.spec.clone().unwrap_or_default();
        let mut template = spec.template;
        let hash = template::hash(&template, self.draft.collision_count);
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(template::HASH.to_owned(), hash.clone());
        let labels = labels.clone();
        let mut match_labels = spec.selector.match_labels.unwrap_or_default();
        match_labels.insert(template::HASH.to_owned(), hash.clone());
        let selector = LabelSelector { match_labels: Some(match_labels), ..spec.selector };
        let metadata = ObjectMeta {
            name: Some(template::name(&self.deployment.name_any(), &hash)),
            namespace: self.deployment.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![owner::reference(self.deployment)]),
            ..ObjectMeta::default()
        };
        let replicas = i32::try_from(self.size_of_new(0)).unwrap_or(i32::MAX);
        let mut set = ReplicaSet {
            metadata,
            spec: Some(ReplicaSetSpec {
                replicas: Some(replicas),
                min_ready_seconds: spec.min_ready_seconds,
                selector,
                template: Some(template),
            }),
            status: None,
        };
        let mut annotations = revision::newest(&set, self.deployment, self.highest_old());
        annotations.extend(revision::sizes(&set, &self.limits));
        set.metadata.annotations = Some(annotations);
        set
    }

    /// Pods that are asked for now, in all ReplicaSets.
    pub fn total(&self) -> i64 {
        self.old.iter().chain(&self.new).map(|set| i64::from(wanted(set))).sum()
    }
}
