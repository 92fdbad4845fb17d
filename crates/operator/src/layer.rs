//! Reconciles the collector layer with all pipelines.
//!
//! A run covers all pipelines in the cache, so that one run serves any number of requests. Requests that arrive
//! during a run share the next one. The first run waits until every pipeline that existed at the start has been
//! examined, so that a restart drops none from a document.
//!
//! *Guaranteed*: a document holds only pipelines that hold a slot, and is written only if nobody wrote it since
//! the locks were read: an operator that was paused overwrites nothing. It is written only if the collector's
//! own rules accept it; a pipeline whose section they refuse is left out, and the others are unaffected. Values
//! and rights exist before the document that needs them. Old values stay until all collectors have read another
//! document, or for [`OBSOLETE_RETENTION`]. Objects that the documents no longer need are deleted once all
//! gateway collectors are known to have read the current document; while none was observed they stay for
//! [`OBSOLETE_RETENTION`]. The Service that senders use stays as long as a pipeline holds a slot or is about to
//! take one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, Resource as _, ResourceExt as _};
use kubewake_api::{CollectorConfigs, RenderedDocument, Signal};
use tokio::{sync::Mutex, time::Instant};

use crate::{
    context::OperatorState,
    feedback::{delivery::health_assessment::CollectorTier, delivery_health::DocumentAgreement},
    layer::build::BuildContext,
    model::{
        names::{self, ManagedPart},
        object_kind::ObjectKind,
    },
    objects::{
        apply::{self, DesiredObject, ServerSideApplier},
        object_lookup::find_object,
    },
    pipeline::{
        pipeline_cache::{PipelineKey, PipelineState},
        slot_lock::{self, SlotLock},
    },
    runtime::{
        error_message::{self, ErrorDisclosure},
        failure_cause::FailureCause,
        metrics::ReconcileStep,
    },
};

mod anchor_owners;
pub mod build;
mod kubelet_nudge;
pub mod orphans;
mod rendering;

use rendering::RenderedLayer;

/// Longer than a kubelet takes to update the volumes of its pods: after that a collector that does not report
/// its document has the newest.
pub const OBSOLETE_RETENTION: Duration = Duration::from_secs(180);
/// Attempts per run when an error is transient, such as a document that somebody else wrote.
const MAX_RUN_ATTEMPTS: usize = 3;
/// The delay before the next attempt.
const RETRY_DELAY: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// A lock cannot be read.
    #[error(transparent)]
    Lock(#[from] slot_lock::SlotLockError),
    /// A document or the anchor cannot be read.
    #[error("failed to read the collectors' configuration")]
    Read(#[source] Box<kube::Error>),
    /// The API server does not list the pipelines.
    #[error("failed to list the pipelines")]
    List(#[source] Box<kube::Error>),
    #[error(transparent)]
    Apply(#[from] apply::ObjectApplyError),
    /// The anchor, which owns all other objects, was deleted in between.
    #[error("ConfigMap {name} was deleted while the operator reconciled", name = names::LAYER_CONFIG_MAP)]
    AnchorLost,
    /// The collector's rules refuse the document, and no pipeline is at fault.
    #[error("the collectors would reject the configuration: {0}")]
    Refused(String),
}

#[derive(Debug, Default)]
pub struct LayerOutcome {
    /// The pipelines that are part of a document.
    pub rendered: BTreeSet<PipelineKey>,
    /// The hashes of the collectors' desired documents.
    pub documents: BTreeSet<String>,
    /// The pipelines whose current spec was refused, and why.
    pub refused: BTreeMap<PipelineKey, String>,
    /// Why the run failed, if it did.
    pub failure: Option<LayerFailure>,
}

#[derive(Clone, Debug)]
pub struct LayerFailure {
    /// The message for a status.
    pub message: String,
    pub cause: FailureCause,
}

/// Runs one reconcile of the layer at a time, on request.
pub struct CollectorReconciler {
    world: Arc<OperatorState>,
    applier: ServerSideApplier,
    requested: AtomicU64,
    last: Mutex<LastRun>,
}

#[derive(Default)]
struct LastRun {
    /// The last request that this run covers.
    covers: u64,
    outcome: Arc<LayerOutcome>,
    /// The time of the last write of a document.
    documents_written: Option<Instant>,
    rendered: Option<RenderedLayer>,
}

/// The state that a run reads before it writes.
struct LayerInputs {
    documents: BTreeMap<&'static str, ConfigMap>,
    locks: Vec<ConfigMap>,
    has_anchor: bool,
}

impl CollectorReconciler {
    pub fn new(world: Arc<OperatorState>, applier: ServerSideApplier) -> Self {
        Self { world, applier, requested: AtomicU64::new(0), last: Mutex::default() }
    }

    /// Waits for a run that starts after this call, and returns its result.
    pub async fn settled(&self) -> Arc<LayerOutcome> {
        let ticket = self.requested.fetch_add(1, Ordering::SeqCst) + 1;
        self.world.wait_pipelines_examined().await;
        let mut last = self.last.lock().await;
        if last.covers >= ticket {
            return Arc::clone(&last.outcome);
        }
        let covers = self.requested.load(Ordering::SeqCst);
        // Boxed, or the future of every caller that waits here would have room for it.
        let outcome = Box::pin(self.run_with_retries(&mut last)).await;
        self.world.set_layer_failure(outcome.failure.as_ref().map(|failure| failure.message.as_str()));
        last.covers = covers;
        last.outcome = Arc::new(outcome);
        Arc::clone(&last.outcome)
    }

    async fn run_with_retries(&self, last: &mut LastRun) -> LayerOutcome {
        let mut outcome = LayerOutcome::default();
        for attempt in 1..=MAX_RUN_ATTEMPTS {
            self.world.metrics.count_layer_run();
            outcome = LayerOutcome::default();
            let Err(error) = self.run(&mut outcome, last).await else { return outcome };
            let failure = outcome
                .failure
                .insert(LayerFailure { message: failure_message(&error), cause: FailureCause::from(&error) });
            if attempt == MAX_RUN_ATTEMPTS || !error.is_transient() {
                tracing::warn!(error = failure.message, "failed to reconcile the collector layer");
                break;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        self.world.metrics.count_layer_failure();
        outcome
    }

    async fn run(&self, outcome: &mut LayerOutcome, last: &mut LastRun) -> Result<(), LayerError> {
        let read = self.read().await?;
        let entries = self.world.prune_and_list_pipelines();
        let holders = slot_holders(&read.locks, &entries);
        let LastRun { rendered, documents_written: written, .. } = last;
        let rendered = self.render(&holders, rendered)?;
        outcome.refused = rendered.refused.clone();
        outcome.rendered = rendered.valid.keys().cloned().collect();
        let layer = &rendered.layer;
        outcome.documents = [&layer.gateway, &layer.sticky].into_iter().flatten().map(|it| it.hash.clone()).collect();
        let keepers = anchor_owners::select_owners(&entries, &holders);
        if keepers.is_empty() {
            return self.sweep_all().await;
        }
        if holders.is_empty() {
            // A waiting pipeline is about to take over a slot. Until then nothing changes.
            return Ok(());
        }
        let around = BuildContext {
            anchor: self.ensure_anchor(&keepers, &read).await?,
            anchor_owners: keepers,
            settings: self.world.resolve_settings(),
            image: self.world.options.image.clone(),
        };
        // Rights first: collectors use them as soon as they have read the document that needs them.
        let (rights, others) = build::layer_objects(&around, layer).into_iter().partition(|it| it.kind.is_rbac());
        let min_replicas = around.settings.min_replicas;
        let mut wanted = self.apply(rights, min_replicas).await?;
        wanted.extend(self.write_documents(&around, layer, &read, written).await?);
        wanted.insert((ObjectKind::ConfigMap, names::LAYER_CONFIG_MAP.to_owned()));
        wanted.extend(self.apply(others, min_replicas).await?);
        let given_up = written.is_some_and(|written| written.elapsed() >= OBSOLETE_RETENTION);
        self.sweep_unneeded(layer, &wanted, given_up).await?;
        kubelet_nudge::annotate_pods(&self.world, layer).await;
        Ok(())
    }

    /// Renders the documents, or reuses the last ones if neither pipelines nor settings changed.
    fn render<'a>(
        &self,
        holders: &BTreeMap<PipelineKey, Arc<PipelineState>>,
        last: &'a mut Option<RenderedLayer>,
    ) -> Result<&'a RenderedLayer, LayerError> {
        let valid = |entry: &PipelineState| entry.valid.clone().filter(|valid| valid.is_rendered());
        let asked = holders.iter().filter_map(|(id, entry)| Some((id.clone(), valid(entry)?))).collect();
        let settings = self.world.resolve_settings();
        let new = match last.take() {
            Some(last) if last.is_current_for(&asked, &settings) => last,
            before => RenderedLayer::new(asked, settings, before.as_ref())?,
        };
        Ok(last.insert(new))
    }

    /// Reads documents before locks: then a document is written only if no slot changed hands in between and
    /// another operator acted on it.
    async fn read(&self) -> Result<LayerInputs, LayerError> {
        let api = Api::<ConfigMap>::namespaced(self.world.client.clone(), &self.world.options.namespace);
        let mut documents = BTreeMap::new();
        for name in [names::GATEWAY, names::STICKY] {
            let document = find_object(&api, name).await.map_err(|error| LayerError::Read(Box::new(error)))?;
            documents.extend(document.map(|document| (name, document)));
        }
        let mut locks = Vec::new();
        for signal in [Signal::Traces, Signal::Logs, Signal::Metrics] {
            locks.extend(SlotLock::new(api.clone(), signal).read().await?);
        }
        let anchor =
            find_object(&api, names::LAYER_CONFIG_MAP).await.map_err(|error| LayerError::Read(Box::new(error)))?;
        Ok(LayerInputs { documents, locks, has_anchor: anchor.is_some() })
    }

    /// Applies the anchor, which owns all other namespaced objects, and returns it as an owner.
    async fn ensure_anchor(
        &self,
        keepers: &[OwnerReference],
        read: &LayerInputs,
    ) -> Result<OwnerReference, LayerError> {
        let OperatorState { object_cache: live, options, .. } = &*self.world;
        if !read.has_anchor {
            // The anchor is gone, although no watch event has shown it yet.
            live.remove_absent(ObjectKind::ConfigMap, names::LAYER_CONFIG_MAP);
        }
        let anchor = build::anchor_object(&options.namespace, keepers);
        self.count_write(ObjectKind::ConfigMap, self.applier.apply(&anchor).await?);
        let live = live.get(ObjectKind::ConfigMap, names::LAYER_CONFIG_MAP).ok_or(LayerError::AnchorLost)?;
        let live = serde_json::from_value::<ConfigMap>((*live).clone()).map_err(|_| LayerError::AnchorLost)?;
        live.owner_ref(&()).ok_or(LayerError::AnchorLost)
    }

    /// Applies objects, and returns their kinds and names.
    async fn apply(
        &self,
        objects: Vec<DesiredObject>,
        min_replicas: i32,
    ) -> Result<BTreeSet<(ObjectKind, String)>, LayerError> {
        let mut applied = BTreeSet::new();
        for desired in objects {
            // Kinds that the cluster lacks, or that were not listed yet, are skipped; existing objects of them
            // stay.
            if self.world.object_cache.has_listed(desired.kind) {
                let made = match desired.kind {
                    ObjectKind::Deployment => self.applier.apply_scaled(&desired, min_replicas).await,
                    _ => self.applier.apply(&desired).await,
                };
                self.record_write(desired.kind, made)?;
            }
            applied.insert((desired.kind, desired.name));
        }
        Ok(applied)
    }

    /// Writes the Secret with the values, and then the documents that refer to them, if there are any.
    async fn write_documents(
        &self,
        around: &BuildContext,
        layer: &CollectorConfigs,
        read: &LayerInputs,
        written: &mut Option<Instant>,
    ) -> Result<BTreeSet<(ObjectKind, String)>, LayerError> {
        if layer.gateway.is_none() {
            return Ok(BTreeSet::new());
        }
        let stay = written.is_none_or(|written| written.elapsed() < OBSOLETE_RETENTION) && !self.is_rolled_out(layer);
        let live = self.world.object_cache.get(ObjectKind::Secret, names::GATEWAY);
        let live: Option<Secret> = live.and_then(|live| serde_json::from_value((*live).clone()).ok());
        let staying = build::retained_values(live.as_ref(), read.documents.values(), stay);
        let secret = build::values_secret(around, layer, &staying);
        self.count_write(ObjectKind::Secret, self.applier.apply(&secret).await?);
        let mut wanted = BTreeSet::from([(ObjectKind::Secret, secret.name)]);
        for document in build::document_objects(around, layer) {
            let before = read.documents.get(document.name.as_str());
            let changed = self.applier.replace(before, &document).await?;
            self.count_write(ObjectKind::ConfigMap, changed);
            if changed || written.is_none() {
                *written = Some(Instant::now());
            }
            wanted.insert((ObjectKind::ConfigMap, document.name));
        }
        Ok(wanted)
    }

    /// Whether all collectors have read these documents. For a tier without a document its workload and pods
    /// must be gone.
    fn is_rolled_out(&self, layer: &CollectorConfigs) -> bool {
        let sticky = match &layer.sticky {
            Some(document) => self.agreement(CollectorTier::Sticky, document) == DocumentAgreement::All,
            None => {
                let has_set = self.world.object_cache.get(ObjectKind::StatefulSet, names::STICKY).is_some();
                !has_set && self.world.collector_pods(CollectorTier::Sticky).is_empty()
            }
        };
        let gateway = layer.gateway.as_ref().map(|document| self.agreement(CollectorTier::Gateway, document));
        sticky && gateway == Some(DocumentAgreement::All)
    }

    /// Whether the collectors of a tier have read a document: those of all current pods, also of those that are
    /// starting or being deleted.
    fn agreement(&self, tier: CollectorTier, document: &RenderedDocument) -> DocumentAgreement {
        let pods = self.world.collector_pods(tier);
        let uids = pods.iter().map(|pod| pod.metadata.uid.as_deref().unwrap_or_default());
        self.world.delivery_health.document_agreement(uids, document)
    }

    /// Removes objects that the documents no longer need. Collectors that have read only an earlier document
    /// still need its objects: rights, and the sticky tier.
    async fn sweep_unneeded(
        &self,
        layer: &CollectorConfigs,
        wanted: &BTreeSet<(ObjectKind, String)>,
        given_up: bool,
    ) -> Result<(), LayerError> {
        let Some(document) = &layer.gateway else {
            return self.sweep_in_order(wanted).await;
        };
        match self.agreement(CollectorTier::Gateway, document) {
            DocumentAgreement::All => self.sweep(wanted).await,
            DocumentAgreement::Unknown if given_up => self.sweep(wanted).await,
            DocumentAgreement::Unknown | DocumentAgreement::Behind => Ok(()),
        }
    }

    /// Removes collectors in the order of the data flow. The gateway drains into the sticky tier, which stays
    /// until the last gateway pod is gone. That is a pod event, and so triggers the next run.
    async fn sweep_in_order(&self, wanted: &BTreeSet<(ObjectKind, String)>) -> Result<(), LayerError> {
        let mut wanted = wanted.clone();
        if !self.world.collector_pods(CollectorTier::Gateway).is_empty() {
            let behind =
                self.world.object_cache.keys(ManagedPart::Layer).into_iter().filter(|(_, name)| name == names::STICKY);
            wanted.extend(behind);
        }
        self.sweep(&wanted).await
    }

    /// Removes all objects, as no pipeline keeps them. A pipeline that no watch event has shown yet takes them
    /// over instead.
    async fn sweep_all(&self) -> Result<(), LayerError> {
        let is_there = !self.world.object_cache.keys(ManagedPart::Layer).is_empty();
        let unseen = async || {
            orphans::has_unwatched_pipeline(&self.world).await.map_err(|error| LayerError::List(Box::new(error)))
        };
        if !is_there || unseen().await? {
            return Ok(());
        }
        self.sweep(&BTreeSet::new()).await
    }

    /// Deletes all objects of the layer that are not in `wanted`.
    async fn sweep(&self, wanted: &BTreeSet<(ObjectKind, String)>) -> Result<(), LayerError> {
        for (kind, name) in self.world.object_cache.keys(ManagedPart::Layer) {
            if !wanted.contains(&(kind, name.clone())) {
                self.record_write(kind, self.applier.delete(kind, &name).await)?;
            }
        }
        Ok(())
    }

    /// Counts a write. Failures for a kind that a cluster may lack fail no pipeline; the next run tries again.
    fn record_write(&self, kind: ObjectKind, made: Result<bool, apply::ObjectApplyError>) -> Result<(), LayerError> {
        match made {
            Err(error) if !ObjectKind::REQUIRED.contains(&kind) => {
                self.world.metrics.count_failure(ReconcileStep::Layer, FailureCause::from(&error));
                tracing::warn!(
                    error = error.message(),
                    "failed to write an optional object, and the collectors run without it"
                );
            }
            made => self.count_write(kind, made?),
        }
        Ok(())
    }

    fn count_write(&self, kind: ObjectKind, sent: bool) {
        if sent {
            self.world.metrics.count_write(kind);
        }
    }
}

impl LayerError {
    /// Whether a retry may succeed in a moment.
    fn is_transient(&self) -> bool {
        match self {
            Self::Apply(error) => error.is_transient(),
            Self::AnchorLost => true,
            Self::Lock(_) | Self::Read(_) | Self::List(_) | Self::Refused(_) => false,
        }
    }
}

/// The pipelines that hold a slot by the locks that were just read.
fn slot_holders(
    locks: &[ConfigMap],
    entries: &BTreeMap<PipelineKey, Arc<PipelineState>>,
) -> BTreeMap<PipelineKey, Arc<PipelineState>> {
    let uids: BTreeSet<&str> =
        locks.iter().flat_map(ConfigMap::owner_references).map(|owner| owner.uid.as_str()).collect();
    let holds = |entry: &PipelineState| uids.contains(entry.owner.uid.as_str());
    entries.iter().filter(|(_, entry)| holds(entry)).map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
}

fn failure_message(error: &LayerError) -> String {
    let said = match error {
        LayerError::Apply(error) => return error.message(),
        LayerError::Read(error) | LayerError::List(error) => error,
        LayerError::Lock(slot_lock::SlotLockError::Api { source, .. }) => source,
        LayerError::Lock(slot_lock::SlotLockError::Contended(_)) | LayerError::Refused(_) | LayerError::AnchorLost => {
            return error.to_string();
        }
    };
    format!("{error}: {}", error_message::api_error_message(said, ErrorDisclosure::Full))
}
