//! Reconciles one pipeline: resolves its references, validates it, takes a slot, waits for the layer, and
//! writes the status.
//!
//! All pipelines are reconciled at once, and each waits for the layer. So futures that send requests are boxed,
//! and exist only while they do.
//!
//! *Guaranteed*: only a valid pipeline takes a slot, and nothing else in the cluster is changed before. A
//! pipeline that holds a slot and becomes invalid keeps its last valid spec.

use std::{collections::HashMap, fmt::Debug, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{ClusterResourceScope, api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{Patch, PatchParams},
    core::object::HasStatus,
    runtime::controller::Action,
};
use kubewake_api::{ResolvedReferences, Signal, TelemetryPipeline, v1alpha1::PipelineStatus, validate};
use kubewake_runtime::lock::Mutex;
use kubewake_trail::{PendingWrites, Trail, events::EventPublisher};
use serde::{Serialize, de::DeserializeOwned};
use tokio::sync::Semaphore;

use crate::{
    context::OperatorState,
    feedback::{collector_readiness::CollectorReadiness, shutdown_losses},
    layer::{CollectorReconciler, LayerFailure},
    model::{names, object_kind::ObjectKind},
    objects::apply::ServerSideApplier,
    pipeline::{
        last_valid,
        pipeline_cache::{PipelineKey, PipelineState},
        slot_lock::{self, Slot, SlotLock},
    },
    reconcile::{status::PipelineFacts, status_event::StatusEvent, status_patch::status_patch},
    runtime::{failure_cause::FailureCause, metrics::ReconcileStep},
};

pub mod status;
pub mod status_event;
mod status_patch;
pub mod telemetry;
#[cfg(test)]
mod tests;

/// The first delay after a failure.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(500);
/// The longest delay: the time that a user waits after fixing something.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Writes in flight at once, over all pipelines. Each takes a connection of its own, which stays open for a
/// while and costs a tenth of a megabyte.
const MAX_CONCURRENT_WRITES: usize = 8;

pub trait PipelineKind:
    Resource<DynamicType = (), Scope = ClusterResourceScope>
    + HasStatus<Status = PipelineStatus>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Converts to a pipeline of any kind.
    fn pipeline(&self) -> TelemetryPipeline;
}

impl<K> PipelineKind for K
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + HasStatus<Status = PipelineStatus>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    for<'a> TelemetryPipeline: From<&'a K>,
{
    fn pipeline(&self) -> TelemetryPipeline {
        TelemetryPipeline::from(self)
    }
}

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

pub struct PipelineContext {
    state: Arc<OperatorState>,
    collector_reconciler: CollectorReconciler,
    trail: Trail,
    events: EventPublisher,
    applier: ServerSideApplier,
    slot_turn: tokio::sync::Mutex<()>,
    write_permits: Semaphore,
    /// Statuses that were written and that no watch has shown yet. A reconcile of the object from before would
    /// write the same status again, with another time in it.
    pending_statuses: PendingWrites<PipelineStatus>,
    failures: Mutex<HashMap<String, u32>>,
}

impl PipelineContext {
    pub fn new(state: Arc<OperatorState>, trail: Trail) -> Self {
        let events = trail.events(state.client.clone(), names::FIELD_MANAGER).distinct_by_note();
        let applier =
            ServerSideApplier::new(state.client.clone(), &state.options.namespace, Arc::clone(&state.object_cache));
        let collector_reconciler = CollectorReconciler::new(Arc::clone(&state), applier.clone());
        Self {
            collector_reconciler,
            state,
            trail,
            events,
            applier,
            slot_turn: tokio::sync::Mutex::default(),
            write_permits: Semaphore::new(MAX_CONCURRENT_WRITES),
            pending_statuses: PendingWrites::new(),
            failures: Mutex::default(),
        }
    }

    pub fn events(&self) -> &EventPublisher {
        &self.events
    }

    /// Waits for a run of the layer, and returns whether it succeeded.
    pub async fn settled(&self) -> bool {
        self.collector_reconciler.settled().await.failure.is_none()
    }

    /// Resolves and validates a pipeline, and takes a slot if it is valid.
    async fn examine_pipeline<K: PipelineKind>(
        &self,
        object: &K,
        pipeline: &TelemetryPipeline,
        owner: OwnerReference,
    ) -> (PipelineState, Result<(), PipelineReconcileError>) {
        let references = pipeline.references();
        let resolved = Arc::new(self.state.source_watcher.resolve(&references).await);
        self.state.object_cache.wait_synced().await;
        let before = self.state.pipeline_cache.get(&pipeline_key(pipeline), &pipeline.uid);
        let again = before.as_ref().and_then(|before| before.reusable_validation(pipeline.generation, &resolved));
        let checked = again.map_or_else(|| validate(pipeline, &resolved, Timestamp::now()).map(Arc::new), Ok);
        let (valid, problems) = match checked {
            Ok(valid) => (Some(valid), Vec::new()),
            // Fall back to the last valid spec so that a broken edit does not stop delivery.
            Err(problems) => match before {
                Some(before) => (before.valid.clone(), problems),
                None => (last_valid::load_last_valid(&self.state.object_cache, object).map(Arc::new), problems),
            },
        };
        let (slot, result) = match self.acquire_slot(pipeline.signal, &owner, problems.is_empty()).await {
            Ok(slot) => (slot, Ok(())),
            Err(error) => (None, Err(error)),
        };
        if slot == Some(Slot::Held) && problems.is_empty() {
            self.save_last_valid(object, &owner, &resolved).await;
        }
        let checked = Some((pipeline.generation, resolved));
        (PipelineState { owner, valid, problems, slot, checked }, result)
    }

    /// Records a valid pipeline for an operator that starts later. If that fails, nothing changes while this
    /// operator runs.
    async fn save_last_valid<K: PipelineKind>(
        &self,
        object: &K,
        owner: &OwnerReference,
        resolved: &ResolvedReferences,
    ) {
        let Some(desired) =
            last_valid::record_secret(&self.state.object_cache, object, owner, resolved, Timestamp::now())
        else {
            return;
        };
        // `acquire` fails only on a closed semaphore; this one is never closed.
        let _permit = self.write_permits.acquire().await;
        match Box::pin(self.applier.apply(&desired)).await {
            Ok(true) => self.state.metrics.count_write(desired.kind),
            Ok(false) => {}
            Err(error) => {
                self.state.metrics.count_failure(ReconcileStep::LastValid, FailureCause::from(&error));
                let kind = K::kind(&());
                let error = error.message();
                tracing::warn!(%kind, name = object.name_any(), error, "failed to save the last valid spec");
            }
        }
    }

    /// Whether the pipeline holds a slot. A free one is taken only if it `may`.
    async fn acquire_slot(
        &self,
        signal: Signal,
        owner: &OwnerReference,
        may: bool,
    ) -> Result<Option<Slot>, PipelineReconcileError> {
        // One at a time, as concurrent attempts of one operator would only conflict with each other.
        let _turn = self.slot_turn.lock().await;
        let slots = self.state.resolve_settings().slots(signal);
        let known = self.state.object_cache.get(ObjectKind::ConfigMap, slot_lock::name(signal));
        let known = known.and_then(|lock| serde_json::from_value::<ConfigMap>((*lock).clone()).ok());
        match known.and_then(|lock| slot_lock::slot_state(&lock, &owner.uid, slots)) {
            Some(Slot::Held) => Ok(Some(Slot::Held)),
            _ if !may => Ok(None),
            Some(Slot::Full) => Ok(Some(Slot::Full)),
            None => {
                let api = Api::namespaced(self.state.client.clone(), &self.state.options.namespace);
                let taken = Box::pin(SlotLock::new(api, signal).take(owner, slots)).await?;
                taken.lock.iter().for_each(|lock| self.state.object_cache.record_response(ObjectKind::ConfigMap, lock));
                Ok(Some(taken.slot))
            }
        }
    }

    /// Writes a status that has changed, and publishes an event if it is worth one.
    async fn update_status<K: PipelineKind>(
        &self,
        object: &K,
        before: Option<&PipelineStatus>,
        status: PipelineStatus,
        is_stuck: bool,
    ) -> Result<(), PipelineReconcileError> {
        if before == Some(&status) {
            return Ok(());
        }
        // `acquire` fails only on a closed semaphore; this one is never closed.
        let _permit = self.write_permits.acquire().await;
        let (api, patch) = (Api::<K>::all(self.state.client.clone()), Patch::Merge(status_patch(before, &status)));
        let answer =
            Box::pin(self.trail.patch_status(&api, object, &PatchParams::apply(names::FIELD_MANAGER), &patch)).await;
        let answer = match answer {
            // The pipeline was deleted meanwhile.
            Err(kube::Error::Api(answer)) if answer.code == 404 => return Ok(()),
            answer => answer.map_err(|error| PipelineReconcileError::Status(Box::new(error)))?,
        };
        self.pending_statuses.record(&answer, status.clone());
        Box::pin(StatusEvent::from(&status).with_stuck(is_stuck).publish_if_changed(
            before.map(StatusEvent::from),
            &self.events,
            object,
        ))
        .await;
        Ok(())
    }

    /// Counts consecutive failures. Entries of deleted pipelines are dropped when another pipeline begins to
    /// fail.
    fn count_failure(&self, uid: &str) -> u32 {
        let mut failures = self.failures.lock();
        if !failures.contains_key(uid) {
            let there = self.state.live_pipeline_uids();
            failures.retain(|uid, _| there.contains(uid));
        }
        let count = failures.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    fn reset_failures(&self, uid: &str) {
        self.failures.lock().remove(uid);
    }
}

/// Reconciles one pipeline; the steps are those of the module.
pub async fn reconcile<K: PipelineKind>(
    object: Arc<K>,
    context: Arc<PipelineContext>,
) -> Result<Action, PipelineReconcileError> {
    if object.meta().deletion_timestamp.is_some() {
        return mark_terminating(&*object, &context).await;
    }
    let Some(owner) = object.owner_ref(&()) else { return Ok(Action::await_change()) };
    let pipeline = object.pipeline();
    let world = &context.state;
    let _timer = world.metrics.reconcile(pipeline.signal);
    let id = pipeline_key(&pipeline);
    let (entry, slot) = context.examine_pipeline(&*object, &pipeline, owner).await;
    // Stored even if the slot is not known, so that waiters for the cache proceed: the layer reads the locks
    // itself.
    world.pipeline_cache.insert(id.clone(), entry.clone());
    slot?;
    let outcome = context.collector_reconciler.settled().await;
    let settings = world.resolve_settings();
    let is_sticky = entry.valid.as_ref().is_some_and(|valid| valid.is_sticky());
    let facts = PipelineFacts {
        id: &id,
        generation: object.meta().generation,
        backend: entry.valid.as_ref().map(|valid| valid.backend().to_owned()).unwrap_or_default(),
        pipeline: &entry,
        outcome: &outcome,
        collectors: &CollectorReadiness::from_cache(&world.object_cache, is_sticky).with_pods(&world.pods, &settings),
        health: world.delivery_health.health_of(&id, &pipeline.uid),
        slots: settings.slots(pipeline.signal),
        warnings: settings.warnings(&pipeline),
        losses: world.shutdown_losses.uncounted(&pipeline.uid),
    };
    let before = context.pending_statuses.newer_than(&*object).or_else(|| object.status().cloned());
    let status = status::status(before.as_ref(), &facts, Timestamp::now());
    world.metrics.state(&id, status.state);
    let last_loss = status.dropped_at_shutdown.as_ref().map(|drops| drops.last_time.0);
    context.update_status(&*object, before.as_ref(), status, facts.collectors.are_stuck()).await?;
    world.shutdown_losses.mark_counted(&pipeline.uid, facts.losses.len());
    if let Some(failure) = outcome.failure.clone() {
        return Err(PipelineReconcileError::Layer(failure));
    }
    context.reset_failures(&pipeline.uid);
    Ok(Action::requeue(next_resync(&entry, last_loss, world.options.resync, Timestamp::now())))
}

/// Writes the status of a pipeline that is being deleted. Nothing else is done for it: it no longer counts as a
/// holder, and the layer continues without it.
async fn mark_terminating<K: PipelineKind>(
    object: &K,
    context: &PipelineContext,
) -> Result<Action, PipelineReconcileError> {
    let before = context.pending_statuses.newer_than(object).or_else(|| object.status().cloned());
    let status = status::terminating_status(before.as_ref(), object.meta(), Timestamp::now());
    context.update_status(object, before.as_ref(), status, false).await?;
    Ok(Action::await_change())
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

fn pipeline_key(pipeline: &TelemetryPipeline) -> PipelineKey {
    PipelineKey { signal: pipeline.signal, name: pipeline.name.clone() }
}

/// Retries with exponential backoff.
pub fn error_policy<K: PipelineKind>(
    object: Arc<K>,
    error: &PipelineReconcileError,
    context: Arc<PipelineContext>,
) -> Action {
    let kind = K::kind(&());
    let meta = object.meta();
    let (step, why) = error.step_and_cause();
    context.state.metrics.count_failure(step, why);
    let cause = error as &dyn std::error::Error;
    let doublings = context.count_failure(meta.uid.as_deref().unwrap_or_default()).min(10) - 1;
    let delay = (MIN_RETRY_DELAY * 2_u32.pow(doublings)).min(MAX_RETRY_DELAY);
    tracing::warn!(%kind, name = ?meta.name, error = cause, "reconcile failed, retrying in {delay:?}");
    Action::requeue(delay)
}
