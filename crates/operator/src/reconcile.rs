//! Reconciles one pipeline, step by step: fetch → validate → slot → layer (build and apply) → status.
//!
//! All pipelines are reconciled at once, and each waits for the layer. So futures that send requests are boxed,
//! and exist only while they do.
//!
//! *Guaranteed*: only a valid pipeline takes a slot, and nothing else in the cluster is changed before. A
//! pipeline that holds a slot and becomes invalid keeps its last valid spec. May use all folders but `admission` and
//! `process`.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Client, ResourceExt as _, runtime::controller::Action};
use kubewake_api::{ResolvedReferences, TelemetryPipeline, ValidPipeline};
use kubewake_trail::{Trail, events::EventPublisher};
use tokio::sync::Semaphore;

use self::{
    retry_backoff::RetryBackoff, slot_step::SlotStep, status::PipelineFacts, status_step::StatusStep,
    validation::FetchedPipeline,
};
use crate::{
    feedback::{
        collector_readiness::CollectorReadiness,
        delivery_health::DeliveryHealthCache,
        shutdown_losses::{self, ShutdownLosses},
    },
    layer::{CollectorReconciler, LayerFailure, LayerOutcome},
    model::{names::CollectorTier, pipeline_key::PipelineKey},
    objects::{apply::ServerSideApplier, object_cache::ObjectCacheWriter},
    pipeline::{
        cluster_view::ClusterView,
        last_valid,
        pipeline_cache::{PipelineCacheWriter, PipelineState},
        pipeline_stores::PipelineKind,
        slot_lock::{self, Slot},
        source_watcher::SourceWatcher,
    },
    runtime::{
        failure_cause::FailureCause,
        metrics::{OperatorMetrics, ReconcileStep},
    },
};

mod retry_backoff;
mod slot_step;
pub mod status;
mod status_event;
mod status_patch;
mod status_step;
pub mod telemetry;
#[cfg(test)]
mod tests;
mod validation;

/// Writes in flight at once, over all pipelines. Each takes a connection of its own, which stays open for a
/// while and costs a tenth of a megabyte.
const MAX_CONCURRENT_WRITES: usize = 8;

/// Why a reconcile failed, by the step that failed.
#[derive(Debug, thiserror::Error)]
pub enum PipelineReconcileError {
    /// It is not known whether there is a slot.
    #[error(transparent)]
    Slot(#[from] slot_lock::SlotLockError),
    /// The run of the layer failed; the message is that of the status.
    #[error("{words}", words = .0.message)]
    Layer(LayerFailure),
    #[error("failed to write the status")]
    Status(#[source] Box<kube::Error>),
}

impl PipelineReconcileError {
    fn step_and_cause(&self) -> (ReconcileStep, FailureCause) {
        match self {
            Self::Slot(error) => (ReconcileStep::Slot, error.into()),
            Self::Layer(failure) => (ReconcileStep::Layer, failure.cause),
            Self::Status(source) => (ReconcileStep::Status, FailureCause::from(&**source)),
        }
    }
}

/// What the reconciles of all pipelines share, beside their steps.
pub struct ReconcilerParts {
    pub client: Client,
    pub namespace: String,
    /// The interval of reconciles of a pipeline without events.
    pub resync: Duration,
    pub trail: Trail,
    pub events: EventPublisher,
    pub view: ClusterView,
    pub sources: Arc<SourceWatcher>,
    pub pipeline_cache: PipelineCacheWriter,
    pub objects: ObjectCacheWriter,
    pub applier: ServerSideApplier,
    pub layer: Arc<CollectorReconciler>,
    pub delivery_health: Arc<DeliveryHealthCache>,
    pub losses: Arc<ShutdownLosses>,
    pub metrics: Arc<OperatorMetrics>,
}

/// Reconciles pipelines of all kinds. It alone writes validations, slots, last valid specs and statuses of pipelines.
pub struct PipelineReconciler {
    view: ClusterView,
    sources: Arc<SourceWatcher>,
    pipeline_cache: PipelineCacheWriter,
    slot_step: SlotStep,
    applier: ServerSideApplier,
    layer: Arc<CollectorReconciler>,
    delivery_health: Arc<DeliveryHealthCache>,
    losses: Arc<ShutdownLosses>,
    status_step: StatusStep,
    write_permits: Arc<Semaphore>,
    backoff: RetryBackoff,
    metrics: Arc<OperatorMetrics>,
    resync: Duration,
}

impl PipelineReconciler {
    pub fn new(parts: ReconcilerParts) -> Self {
        let settings = parts.view.settings.clone();
        let write_permits = Arc::new(Semaphore::new(MAX_CONCURRENT_WRITES));
        let slot_step = SlotStep::new(parts.client.clone(), &parts.namespace, settings, parts.objects);
        let status_step = StatusStep::new(parts.client, parts.trail, parts.events, Arc::clone(&write_permits));
        Self {
            view: parts.view,
            sources: parts.sources,
            pipeline_cache: parts.pipeline_cache,
            slot_step,
            applier: parts.applier,
            layer: parts.layer,
            delivery_health: parts.delivery_health,
            losses: parts.losses,
            status_step,
            write_permits,
            backoff: RetryBackoff::default(),
            metrics: parts.metrics,
            resync: parts.resync,
        }
    }

    /// Reconciles a pipeline that is not being deleted.
    async fn reconcile<K: PipelineKind>(
        &self,
        object: &K,
        owner: OwnerReference,
    ) -> Result<Action, PipelineReconcileError> {
        let pipeline = object.pipeline();
        let _timer = self.metrics.reconcile(pipeline.signal);
        let id = PipelineKey::from(&pipeline);

        let fetched = self.fetch(&id, &pipeline).await;
        let load_recorded = || last_valid::load_last_valid(&self.view.objects, object);
        let validated = fetched.validate(load_recorded, Timestamp::now());
        let slot = self.slot_step.acquire(pipeline.signal, &owner, validated.slot_claim()).await;
        if matches!(slot, Ok(Some(Slot::Held))) && validated.is_valid() {
            self.save_last_valid(object, &owner, validated.resolved()).await;
        }
        let state = validated.into_state(owner, slot.as_ref().ok().copied().flatten());
        // Stored even if the slot is not known, so that waiters for the cache proceed: the layer reads the locks
        // itself.
        self.pipeline_cache.insert(id.clone(), state.clone());
        slot?;
        // A pipeline that was deleted meanwhile, and maybe created again, has a run or a deletion event of its own.
        let Some(outcome) = self.layer.reconcile_for(&id, &pipeline.uid).await else {
            return Ok(Action::await_change());
        };
        let last_loss = self.update_status(object, &pipeline, &id, &state, &outcome).await?;
        let reads_logs = state.valid.as_ref().is_some_and(|valid| valid.reads_logs());
        if let Some(failure) = outcome.failure_for(reads_logs).cloned() {
            return Err(PipelineReconcileError::Layer(failure));
        }
        self.backoff.reset(&pipeline.uid);
        Ok(Action::requeue(next_resync(&state, last_loss, self.resync, Timestamp::now())))
    }

    /// Writes the status of a pipeline that is being deleted. Nothing else is done for it: it no longer counts as a
    /// holder, and the layer continues without it.
    async fn mark_terminating<K: PipelineKind>(&self, object: &K) -> Result<Action, PipelineReconcileError> {
        let pipeline = object.pipeline();
        self.pipeline_cache.remove(&PipelineKey::from(&pipeline), &pipeline.uid);
        let before = self.status_step.newest(object);
        let status = status::terminating_status(before.as_ref(), object.meta(), Timestamp::now());
        let written = self.status_step.write(object, before.as_ref(), status, false).await;
        written.map_err(|error| PipelineReconcileError::Status(Box::new(error)))?;
        Ok(Action::await_change())
    }

    /// Reads the values that a pipeline references, each through a watch, and the last validation.
    async fn fetch(&self, id: &PipelineKey, pipeline: &TelemetryPipeline) -> FetchedPipeline {
        let resolved = Arc::new(self.sources.resolve(&pipeline.references()).await);
        // The caches hold the lock, the last valid spec and the number of slots, which the next steps need.
        self.view.wait_synced().await;
        let before = self.pipeline_cache.reader().get(id, &pipeline.uid);
        FetchedPipeline { pipeline: pipeline.clone(), resolved, before }
    }

    /// Records a valid pipeline for an operator that starts later. If that fails, nothing changes while this
    /// operator runs.
    async fn save_last_valid<K: PipelineKind>(
        &self,
        object: &K,
        owner: &OwnerReference,
        resolved: &ResolvedReferences,
    ) {
        let record = last_valid::record_secret(&self.view.objects, object, owner, resolved, Timestamp::now());
        let Some(desired) = record else { return };
        // `acquire` fails only on a closed semaphore; this one is never closed.
        let _permit = self.write_permits.acquire().await;
        match Box::pin(self.applier.apply(&desired)).await {
            Ok(true) => self.metrics.count_write(desired.kind),
            Ok(false) => {}
            Err(error) => {
                self.metrics.count_failure(ReconcileStep::LastValid, FailureCause::from(&error));
                let kind = K::kind(&());
                let error = error.message();
                tracing::warn!(%kind, name = object.name_any(), error, "failed to save the last valid spec");
            }
        }
    }

    /// Writes the status that follows from a run of the layer. Returns the time of the last loss in it.
    async fn update_status<K: PipelineKind>(
        &self,
        object: &K,
        pipeline: &TelemetryPipeline,
        id: &PipelineKey,
        state: &PipelineState,
        outcome: &LayerOutcome,
    ) -> Result<Option<Timestamp>, PipelineReconcileError> {
        let settings = self.view.settings.current();
        let tiers = state.valid.as_ref().map(|valid| needed_tiers(valid)).unwrap_or_default();
        let readiness = CollectorReadiness::from_caches(&self.view.objects, &self.view.agent_objects, tiers);
        let facts = PipelineFacts {
            id,
            generation: object.meta().generation,
            backend: state.valid.as_ref().map(|valid| valid.backend().to_owned()).unwrap_or_default(),
            pipeline: state,
            outcome,
            collectors: &readiness.with_pods(&self.view.pods, &settings),
            health: self.delivery_health.health_of(id, &pipeline.uid),
            slots: settings.slots(pipeline.signal),
            warnings: settings.warnings(pipeline),
            losses: self.losses.uncounted(&pipeline.uid),
        };
        let before = self.status_step.newest(object);
        let status = status::status(before.as_ref(), &facts, Timestamp::now());
        self.metrics.state(id, status.state);
        let last_loss = status.dropped_at_shutdown.as_ref().map(|drops| drops.last_time.0);
        let written = self.status_step.write(object, before.as_ref(), status, facts.collectors.are_stuck()).await;
        written.map_err(|error| PipelineReconcileError::Status(Box::new(error)))?;
        self.losses.mark_counted(&pipeline.uid, facts.losses.len());
        Ok(last_loss)
    }
}

/// The tiers that carry a pipeline.
fn needed_tiers(pipeline: &ValidPipeline) -> Vec<CollectorTier> {
    let needs = |tier: &CollectorTier| match tier {
        CollectorTier::Gateway => pipeline.receives_otlp(),
        CollectorTier::Sticky => pipeline.is_sticky(),
        CollectorTier::Agent => pipeline.reads_logs(),
    };
    CollectorTier::ALL.into_iter().filter(needs).collect()
}

/// Reconciles one pipeline; the steps are those of the module.
pub async fn reconcile<K: PipelineKind>(
    object: Arc<K>,
    reconciler: Arc<PipelineReconciler>,
) -> Result<Action, PipelineReconcileError> {
    if object.meta().deletion_timestamp.is_some() {
        return reconciler.mark_terminating(&*object).await;
    }
    match object.owner_ref(&()) {
        Some(owner) => reconciler.reconcile(&*object, owner).await,
        // An object without a uid or a name is none of an API server.
        None => Ok(Action::await_change()),
    }
}

/// Retries with exponential backoff.
pub fn error_policy<K: PipelineKind>(
    object: Arc<K>,
    error: &PipelineReconcileError,
    reconciler: Arc<PipelineReconciler>,
) -> Action {
    let kind = K::kind(&());
    let meta = object.meta();
    let (step, why) = error.step_and_cause();
    reconciler.metrics.count_failure(step, why);
    let cause = error as &dyn std::error::Error;
    let live_uids = || reconciler.view.pipelines.live_uids().into_values().collect();
    let delay = reconciler.backoff.record_failure(meta.uid.as_deref().unwrap_or_default(), live_uids);
    tracing::warn!(%kind, name = ?meta.name, error = cause, "reconcile failed, retrying in {delay:?}");
    Action::requeue(delay)
}

/// The delay until the next reconcile without events: bounded by `resync`, and by the times at which the status
/// must change.
fn next_resync(entry: &PipelineState, last_loss: Option<Timestamp>, resync: Duration, now: Timestamp) -> Duration {
    // A recent loss ceases to be recent.
    let forgotten =
        last_loss.and_then(|at| at.checked_add(shutdown_losses::RECENT_LOSS_WINDOW).ok()).filter(|at| *at > now);
    let recheck = entry.valid.as_ref().and_then(|valid| valid.next_recheck(now));
    // A time in the past, as of a certificate that has expired, causes no reconcile.
    let left =
        [recheck, forgotten].into_iter().flatten().filter_map(|at| Duration::try_from(at.duration_since(now)).ok());
    left.fold(resync, Duration::min)
}
