//! Deletes what deleted pipelines left behind: their slots, and the Secrets with their last valid specs.
//!
//! Usually the garbage collector deletes all of that with its owner, whether an operator runs or not. After a
//! deletion with `--cascade=orphan` it only removes the owner references, the objects stay, and nothing else
//! would ever look at them. So they are checked when an operator starts, and whenever something changes. For
//! the collector layer this requests a [run](crate::layer) where no pipeline is left whose reconcile would
//! request one.
//!
//! *Guaranteed*: objects of an existing pipeline are never deleted, even if no watch event has shown the
//! pipeline yet: the API server is asked. Objects that somebody changes meanwhile are kept. Only objects with
//! the operator's label and name are touched. *Not done*: a pipeline that is being deleted is left to whoever
//! deletes it.

use std::{collections::BTreeSet, pin::pin, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
};
use kubewake_api::{
    Signal,
    v1alpha1::{LogPipeline, MetricPipeline, TracePipeline},
};
use serde_json::Value;
use tokio::time::sleep;

use super::CollectorReconciler;
use crate::{
    model::{names::ManagedPart, object_kind::ObjectKind},
    objects::{
        apply::{self, ServerSideApplier},
        object_cache,
    },
    pipeline::{
        cluster_view::ClusterView,
        last_valid,
        pipeline_stores::PipelineStores,
        slot_lock::{self, SlotLock},
    },
    runtime::{
        error_message::{ErrorDisclosure, api_error_message},
        failure_cause::FailureCause,
        metrics::{OperatorMetrics, ReconcileStep},
        resync_trigger::ResyncTrigger,
    },
};

/// The delay before another attempt after a failure, if no event comes before.
const RETRY_DELAY: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
enum OrphanError {
    #[error(transparent)]
    Lock(#[from] slot_lock::SlotLockError),
    #[error(transparent)]
    Delete(#[from] apply::ObjectApplyError),
    #[error("failed to check whether the pipeline still exists")]
    Lookup(#[source] Box<kube::Error>),
}

impl OrphanError {
    fn failure_cause(&self) -> FailureCause {
        match self {
            Self::Lock(error) => error.into(),
            Self::Delete(error) => error.into(),
            Self::Lookup(error) => FailureCause::from(&**error),
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Delete(error) => error.message(),
            Self::Lock(slot_lock::SlotLockError::Api { source, .. }) | Self::Lookup(source) => {
                format!("{self}: {}", api_error_message(source, ErrorDisclosure::Full))
            }
            Self::Lock(slot_lock::SlotLockError::Contended(_)) => self.to_string(),
        }
    }
}

/// Deletes orphans. It alone releases slots and records of deleted pipelines.
pub struct OrphanCollector {
    pub client: Client,
    pub namespace: String,
    pub view: ClusterView,
    pub applier: ServerSideApplier,
    pub metrics: Arc<OperatorMetrics>,
}

impl OrphanCollector {
    /// Deletes orphans after each change. Runs for ever.
    pub async fn run(&self, layer: &CollectorReconciler, resync_trigger: &ResyncTrigger) {
        let mut triggers = pin!(resync_trigger.subscribe());
        loop {
            // No pipeline is left whose reconcile would request a run of the layer.
            let caches = [&self.view.objects, &self.view.agent_objects];
            let is_layer_left = !self.view.pipelines.has_live()
                && caches.iter().any(|cache| !cache.keys(ManagedPart::Layer).is_empty());
            let is_swept = !is_layer_left || layer.reconcile().await.failure.is_none();
            let is_cleared = self.collect_once().await;
            let retry =
                async { if is_swept && is_cleared { future::pending().await } else { sleep(RETRY_DELAY).await } };
            tokio::select! {
                _ = triggers.next() => {}
                () = retry => {}
            }
        }
    }

    /// Deletes what can be deleted now. Returns whether everything succeeded.
    async fn collect_once(&self) -> bool {
        let there = self.view.pipelines.all_uids();
        let mut is_done = true;
        let mut note = |kind: ObjectKind, name: &str, result: Result<bool, OrphanError>| match result {
            Ok(true) => {
                tracing::info!(?kind, name, "cleaned up an object of a deleted pipeline");
                self.metrics.count_write(kind);
            }
            Ok(false) => {}
            Err(error) => {
                is_done = false;
                self.metrics.count_failure(ReconcileStep::Orphans, error.failure_cause());
                tracing::warn!(
                    ?kind,
                    name,
                    error = error.message(),
                    "failed to clean up an object of a deleted pipeline"
                );
            }
        };
        for signal in Signal::ALL {
            note(ObjectKind::ConfigMap, slot_lock::name(signal), self.release_slots(signal, &there).await);
        }
        for (kind, name) in self.view.objects.keys(ManagedPart::LastValid) {
            if kind == ObjectKind::Secret && last_valid::is_record_name(&name) {
                note(kind, &name, self.delete_record(&name, &there).await);
            }
        }
        is_done
    }

    /// Releases the slots of deleted pipelines.
    async fn release_slots(&self, signal: Signal, there: &BTreeSet<String>) -> Result<bool, OrphanError> {
        let live = self.view.objects.get(ObjectKind::ConfigMap, slot_lock::name(signal));
        let lock = live.and_then(|live| serde_json::from_value::<ConfigMap>((*live).clone()).ok());
        let Some(lock) = lock else { return Ok(false) };
        let mut gone = BTreeSet::new();
        for owner in lock.owner_references() {
            if self.is_gone(owner, there).await? {
                gone.insert(owner.uid.clone());
            }
        }
        if gone.is_empty() && !lock.owner_references().is_empty() {
            return Ok(false);
        }
        let api = Api::namespaced(self.client.clone(), &self.namespace);
        Ok(SlotLock::new(api, signal).release_owners(&gone).await?)
    }

    /// Deletes the last valid spec of a deleted pipeline.
    async fn delete_record(&self, name: &str, there: &BTreeSet<String>) -> Result<bool, OrphanError> {
        let Some(secret) = self.view.objects.get(ObjectKind::Secret, name).filter(|secret| !is_owned(secret, there))
        else {
            return Ok(false);
        };
        let is_left = match last_valid::recorded_owner(&secret) {
            Some(owner) => self.is_gone(&owner, there).await?,
            // A record that cannot be read is of no use.
            None => true,
        };
        Ok(is_left && self.applier.delete_if_unchanged(ObjectKind::Secret, name).await?)
    }

    /// Whether the owner is a pipeline that no longer exists.
    async fn is_gone(&self, owner: &OwnerReference, there: &BTreeSet<String>) -> Result<bool, OrphanError> {
        let Some(resource) = pipeline_resource(owner).filter(|_| !there.contains(&owner.uid)) else { return Ok(false) };
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let found = api.get_metadata_opt(&owner.name).await.map_err(|error| OrphanError::Lookup(Box::new(error)))?;
        Ok(found.is_none_or(|found| found.metadata.uid.as_ref() != Some(&owner.uid)))
    }
}

/// Whether there is a pipeline that is not being deleted and that no watch event has shown yet.
///
/// # Errors
/// The API server's refusal.
pub(super) async fn has_unwatched_pipeline(client: &Client, pipelines: &PipelineStores) -> Result<bool, kube::Error> {
    for resource in pipeline_resources() {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let there = match api.list_metadata(&ListParams::default()).await {
            // A kind that is not defined has no objects.
            Err(kube::Error::Api(status)) if status.code == 404 => continue,
            there => there?,
        };
        let staying = there.iter().filter(|it| it.metadata.deletion_timestamp.is_none());
        let seen: BTreeSet<String> = pipelines.live_uids().into_values().collect();
        if staying.filter_map(|it| it.metadata.uid.as_ref()).any(|uid| !seen.contains(uid)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether one of its owners exists. Most objects have one, and need no further check.
fn is_owned(object: &Value, there: &BTreeSet<String>) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.filter_map(|owner| object_cache::text(owner, "/uid")).any(|uid| there.contains(uid))
}

/// The kind of an owner, if it is a kind of pipeline.
fn pipeline_resource(owner: &OwnerReference) -> Option<ApiResource> {
    let group = owner.api_version.split('/').next();
    pipeline_resources().into_iter().find(|resource| resource.kind == owner.kind && Some(&*resource.group) == group)
}

fn pipeline_resources() -> [ApiResource; 3] {
    [
        ApiResource::erase::<TracePipeline>(&()),
        ApiResource::erase::<LogPipeline>(&()),
        ApiResource::erase::<MetricPipeline>(&()),
    ]
}
