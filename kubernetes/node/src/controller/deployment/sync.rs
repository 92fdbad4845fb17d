//! One sync of one Deployment.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::{
    api::apps::v1::{Deployment, DeploymentStatus, ReplicaSet, ReplicaSetSpec},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::{Api, Resource, ResourceExt, api::ObjectMeta};
use serde_json::{Value, json};

use super::{
    conditions::{
        self, DEPLOYMENT_PAUSED, DEPLOYMENT_RESUMED, NEW_REPLICA_SET_CREATED, NEW_REPLICA_SET_FOUND,
        PROGRESS_DEADLINE_EXCEEDED, PROGRESSING, REPLICA_SET_CREATE_ERROR,
    },
    creation_order,
    limits::RolloutLimits,
    revision::{self, REVISION_ANNOTATION},
    status::{self, OwnedReplicaSets},
    template,
};
use crate::{
    controller::{
        ControllerContext, owner_reference, replicaset::desired_replicas, status::StatusPatch, write_through,
    },
    error::{ClusterError, Result},
    queue::RequeueAfter,
};

/// The state of a sync, and the status that results from it.
pub(super) struct DeploymentSync<'a> {
    pub context: &'a ControllerContext,
    pub deployment: &'a Deployment,
    pub limits: RolloutLimits,
    /// The ReplicaSet with the current template, if it exists.
    pub new: Option<Arc<ReplicaSet>>,
    /// All other ReplicaSets, oldest first.
    pub old: Vec<Arc<ReplicaSet>>,
    new_status: DeploymentStatus,
    revision: Option<String>,
    now: Timestamp,
}

/// Whether a sync handled the rollout, so that its progress is evaluated.
enum SyncScope {
    Rollout,
    Scaling,
}

impl<'a> DeploymentSync<'a> {
    pub fn new(
        context: &'a ControllerContext,
        deployment: &'a Deployment,
        mut sets: Vec<Arc<ReplicaSet>>,
        now: Timestamp,
    ) -> Self {
        sets.sort_by_cached_key(|set| creation_order(set));
        let new = template::find_replica_set(&template::current_template(deployment), &sets).cloned();
        sets.retain(|set| new.as_ref().is_none_or(|new| new.uid() != set.uid()));
        let limits = RolloutLimits::for_deployment(deployment);
        let new_status = deployment.status.clone().unwrap_or_default();
        Self { context, deployment, limits, new, old: sets, new_status, revision: None, now }
    }

    /// Takes the next step and writes the status.
    pub async fn run(mut self) -> Result<RequeueAfter> {
        let looked = match self.sync_replica_sets().await {
            Ok(looked) => looked,
            Err(error) => {
                self.write_status(self.new_status.clone()).await?;
                return Err(error);
            }
        };
        let sets = OwnedReplicaSets { new: self.new.as_ref(), old: &self.old };
        let mut status = status::count_replicas(self.deployment, &self.new_status, sets, self.now);
        let mut again = None;
        if let SyncScope::Rollout = looked {
            status::update_progress(self.deployment, &mut status, sets, self.now);
            again = status::next_deadline_check(self.deployment, &status, self.now);
        }
        self.write_status(status).await?;
        Ok(again)
    }

    async fn sync_replica_sets(&mut self) -> Result<SyncScope> {
        let is_paused = self.deployment.spec.as_ref().and_then(|spec| spec.paused).unwrap_or(false);
        if self.deployment.metadata.deletion_timestamp.is_some() {
            self.update_newest().await?;
            return Ok(SyncScope::Scaling);
        }
        self.update_paused_condition(is_paused);
        self.update_newest().await?;
        if is_paused {
            self.scale().await?;
            self.clean_up().await?;
            return Ok(SyncScope::Scaling);
        }
        if self.is_resized() {
            self.scale().await?;
            return Ok(SyncScope::Scaling);
        }
        if self.limits.is_rolling { self.sync_rolling_update().await } else { self.sync_recreate().await }?;
        Ok(SyncScope::Rollout)
    }

    async fn write_status(&self, mut status: DeploymentStatus) -> Result<()> {
        status.conditions = status.conditions.filter(|conditions| !conditions.is_empty());
        let mut update = StatusPatch::between(self.deployment.status.as_ref(), &status);
        if let Some(revision) = &self.revision
            && self.deployment.annotations().get(REVISION_ANNOTATION) != Some(revision)
        {
            update.set_annotation(REVISION_ANNOTATION, revision);
        }
        update.write(&self.context.client, &self.context.informers.deployments, self.deployment).await
    }

    /// A paused rollout does not exceed its deadline.
    fn update_paused_condition(&mut self, is_paused: bool) {
        let held = conditions::get_condition(&self.new_status, PROGRESSING);
        if status::progress_deadline(self.deployment).is_none()
            || conditions::has_reason(held, PROGRESS_DEADLINE_EXCEEDED)
        {
            return;
        }
        let (reason, message) = match (is_paused, conditions::has_reason(held, DEPLOYMENT_PAUSED)) {
            (true, false) => (DEPLOYMENT_PAUSED, "Deployment is paused"),
            (false, true) => (DEPLOYMENT_RESUMED, "Deployment is resumed"),
            _ => return,
        };
        self.set_progressing("Unknown", reason, message.to_owned());
    }

    fn set_progressing(&mut self, status: &str, reason: &str, message: String) {
        conditions::set_condition(
            &mut self.new_status,
            conditions::new_condition(PROGRESSING, status, reason, message, self.now),
        );
    }

    /// Updates the newest ReplicaSet: its revision, the Deployment's annotations, `minReadySeconds`.
    async fn update_newest(&mut self) -> Result<()> {
        let Some(new) = &self.new else { return Ok(()) };
        let annotations = revision::newest_annotations(new, self.deployment, self.highest_old_revision());
        let min_ready = self.min_ready_seconds();
        let held = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        let new = if annotations.is_empty() && held.unwrap_or(0) == min_ready.unwrap_or(0) {
            Arc::clone(new)
        } else {
            self.patch_replica_set(new, json!({ "minReadySeconds": min_ready.unwrap_or(0) }), annotations).await?
        };
        self.revision = new.annotations().get(REVISION_ANNOTATION).cloned();
        if status::progress_deadline(self.deployment).is_some()
            && conditions::get_condition(&self.new_status, PROGRESSING).is_none()
        {
            self.set_progressing("True", NEW_REPLICA_SET_FOUND, format!("Found new replica set {:?}", new.name_any()));
        }
        self.new = Some(new);
        Ok(())
    }

    fn highest_old_revision(&self) -> i64 {
        self.old.iter().map(|set| revision::revision_number(set)).max().unwrap_or(0)
    }

    fn min_ready_seconds(&self) -> Option<i32> {
        self.deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds)
    }

    /// Patches a ReplicaSet at the observed version.
    async fn patch_replica_set(
        &self,
        set: &ReplicaSet,
        spec: Value,
        annotations: BTreeMap<String, String>,
    ) -> Result<Arc<ReplicaSet>> {
        let metadata = json!({
            "uid": set.uid(), "resourceVersion": set.resource_version(), "annotations": annotations,
        });
        let patch = json!({ "metadata": metadata, "spec": spec });
        write_through::merge_patch(&self.context.client, &self.context.informers.replica_sets, set, &patch).await
    }

    /// Sets the size of a ReplicaSet. If the size is right already, nothing is written, except for outdated
    /// annotations with `always`. Returns whether the size has changed.
    pub async fn resize(&self, set: &mut Arc<ReplicaSet>, size: i64, always: bool) -> Result<bool> {
        let held = desired_replicas(set);
        let size = i32::try_from(size.max(0)).unwrap_or(i32::MAX);
        let annotations = revision::size_annotations(set, &self.limits);
        if held == size && (!always || annotations.is_empty()) {
            return Ok(false);
        }
        *set = self.patch_replica_set(set, json!({ "replicas": size }), annotations).await?;
        if held != size {
            let direction = if held < size { "up" } else { "down" };
            self.record_scaled(direction, &set.name_any(), held, size);
        }
        Ok(held != size)
    }

    fn record_scaled(&self, direction: &str, set: &str, from: i32, to: i32) {
        let note = format!("Scaled {direction} replica set {set} from {from} to {to}");
        self.context.events.record_normal(self.deployment.object_ref(&()), "ScalingReplicaSet", note);
    }

    /// Creates the ReplicaSet for the current template, unless it exists.
    pub async fn ensure_new_replica_set(&mut self) -> Result<()> {
        if self.new.is_some() {
            return Ok(());
        }
        let set = self.new_replica_set();
        let name = set.name_any();
        let size = desired_replicas(&set);
        match write_through::create(&self.context.client, &self.context.informers.replica_sets, &set).await {
            Ok(made) => {
                if size > 0 {
                    self.record_scaled("up", &name, 0, size);
                }
                self.revision = made.annotations().get(REVISION_ANNOTATION).cloned();
                self.new = Some(made);
                if status::progress_deadline(self.deployment).is_some() {
                    self.set_progressing("True", NEW_REPLICA_SET_CREATED, format!("Created new replica set {name:?}"));
                }
                Ok(())
            }
            Err(error) if error.already_exists() => self.take_existing(&name, error).await,
            Err(error) if error.is_namespace_terminating() => Err(error),
            Err(error) => {
                let message = format!("Failed to create new replica set {name:?}: {}", error.message());
                self.context.events.record_warning(
                    self.deployment.object_ref(&()),
                    REPLICA_SET_CREATE_ERROR,
                    message.clone(),
                );
                if status::progress_deadline(self.deployment).is_some() {
                    self.set_progressing("False", REPLICA_SET_CREATE_ERROR, message);
                }
                Err(error)
            }
        }
    }

    /// Handles an existing ReplicaSet of this name. Either it is ours and was seen late, or two templates have
    /// the same hash; then the next hash is tried.
    async fn take_existing(&mut self, name: &str, error: ClusterError) -> Result<()> {
        let api: Api<ReplicaSet> =
            Api::namespaced(self.context.client.clone(), &self.deployment.namespace().unwrap_or_default());
        let set = api.get_opt(name).await?;
        match set {
            Some(set)
                if owner_reference::is_controlled_by(&set, self.deployment)
                    && template::has_template(&set, &template::current_template(self.deployment)) =>
            {
                self.revision = set.annotations().get(REVISION_ANNOTATION).cloned();
                self.new = Some(self.context.informers.replica_sets.record_write(set));
                Ok(())
            }
            _ => {
                self.new_status.collision_count = Some(self.new_status.collision_count.unwrap_or(0).saturating_add(1));
                Err(error)
            }
        }
    }

    fn new_replica_set(&self) -> ReplicaSet {
        let spec = self.deployment.spec.clone().unwrap_or_default();
        let mut template = spec.template;
        let hash = template::template_hash(&template, self.new_status.collision_count);
        let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
        labels.insert(template::POD_TEMPLATE_HASH_LABEL.to_owned(), hash.clone());
        let labels = labels.clone();
        let mut match_labels = spec.selector.match_labels.unwrap_or_default();
        match_labels.insert(template::POD_TEMPLATE_HASH_LABEL.to_owned(), hash.clone());
        let selector = LabelSelector { match_labels: Some(match_labels), ..spec.selector };
        let metadata = ObjectMeta {
            name: Some(template::replica_set_name(&self.deployment.name_any(), &hash)),
            namespace: self.deployment.namespace(),
            labels: Some(labels),
            owner_references: Some(vec![owner_reference::controller_reference(self.deployment)]),
            ..ObjectMeta::default()
        };
        let replicas = i32::try_from(self.new_replica_set_size(0)).unwrap_or(i32::MAX);
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
        let mut annotations = revision::newest_annotations(&set, self.deployment, self.highest_old_revision());
        annotations.extend(revision::size_annotations(&set, &self.limits));
        set.metadata.annotations = Some(annotations);
        set
    }

    /// The desired pods of all ReplicaSets.
    pub fn total_replicas(&self) -> i64 {
        self.old.iter().chain(&self.new).map(|set| i64::from(desired_replicas(set))).sum()
    }
}
