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

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client, ResourceExt as _};
use kubewake_api::Signal;
use tokio::{
    sync::{Mutex, watch},
    time::Instant,
};

use self::{
    agents::{AgentInputs, PipelineStates},
    build::BuildContext,
    error::LayerError,
    rendering::RenderedLayer,
};
use crate::{
    feedback::{deleted_pipelines::PipelineCleanup, delivery_health::DeliveryHealthCache},
    model::{names, object_kind::ObjectKind, pipeline_key::PipelineKey},
    objects::{apply::ServerSideApplier, find_object},
    pipeline::{
        cluster_view::ClusterView,
        pipeline_cache::{CacheCompletion, PipelineCache, PipelineState},
        slot_lock::SlotLock,
    },
    runtime::{failure_cause::FailureCause, metrics::OperatorMetrics},
};

mod agents;
mod anchor_owners;
mod build;
mod error;
mod kubelet_nudge;
pub mod orphans;
mod rendering;
mod sweep;
mod write;

/// Longer than a kubelet takes to update the volumes of its pods: after that a collector that does not report
/// its document has the newest.
pub const OBSOLETE_RETENTION: Duration = Duration::from_secs(180);
/// Attempts per run when an error is transient, such as a document that somebody else wrote.
const MAX_RUN_ATTEMPTS: usize = 3;
/// The delay before the next attempt.
const RETRY_DELAY: Duration = Duration::from_millis(100);

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
    /// Why the collectors on the nodes could not be reconciled. It concerns only the pipelines that read logs.
    pub agent_failure: Option<LayerFailure>,
}

#[derive(Clone, Debug)]
pub struct LayerFailure {
    /// The message for a status.
    pub message: String,
    pub cause: FailureCause,
    /// Whether a retry may succeed in a moment.
    is_transient: bool,
}

impl From<&LayerError> for LayerFailure {
    fn from(error: &LayerError) -> Self {
        Self { message: error.message(), cause: FailureCause::from(error), is_transient: error.is_transient() }
    }
}

#[cfg(test)]
impl LayerFailure {
    /// A failure that stays, with this message.
    pub(crate) fn example(message: &str) -> Self {
        Self { message: message.to_owned(), cause: FailureCause::Invalid, is_transient: false }
    }
}

impl LayerOutcome {
    /// Why a pipeline may not be in effect, if it is not known to be: `reads_logs` if it needs the agents.
    pub fn failure_for(&self, reads_logs: bool) -> Option<&LayerFailure> {
        self.failure.as_ref().or(self.agent_failure.as_ref().filter(|_| reads_logs))
    }
}

/// What the layer depends on, beside pipelines and settings.
#[derive(Clone, Debug)]
pub struct LayerOptions {
    /// The namespace of the collectors.
    pub namespace: String,
    /// The namespace of the collectors on the nodes.
    pub agent_namespace: String,
    /// The collectors' image, unless a Telemetry names one.
    pub image: String,
}

/// Runs one reconcile of the layer at a time, on request. It alone writes the objects of the layer.
pub struct CollectorReconciler {
    pub client: Client,
    pub options: LayerOptions,
    pub view: ClusterView,
    pub pipeline_cache: Arc<PipelineCache>,
    pub delivery_health: Arc<DeliveryHealthCache>,
    pub cleanup: Arc<PipelineCleanup>,
    pub applier: ServerSideApplier,
    /// For the agents' namespace.
    pub agent_applier: ServerSideApplier,
    pub metrics: Arc<OperatorMetrics>,
    pub runs: LayerRuns,
}

/// The requests for runs, and the results.
#[derive(Default)]
pub struct LayerRuns {
    requested: AtomicU64,
    last: Mutex<LastRun>,
    /// Why the last run failed, if it did.
    failure: watch::Sender<Option<String>>,
}

#[derive(Default)]
struct LastRun {
    /// The last request that this run covers.
    covers: u64,
    outcome: Arc<LayerOutcome>,
    /// The time of the last write of a document.
    documents_written: Option<Instant>,
    /// The time of the last write of the agents' document.
    agent_document_written: Option<Instant>,
    rendered: Option<RenderedLayer>,
}

/// The state that a run reads before it writes.
struct LayerInputs {
    documents: BTreeMap<&'static str, ConfigMap>,
    agents: Result<AgentInputs, LayerError>,
    locks: Vec<ConfigMap>,
    has_anchor: bool,
}

impl CollectorReconciler {
    /// Waits for a run that starts after this call, and returns its result.
    pub async fn reconcile(&self) -> Arc<LayerOutcome> {
        self.reconcile_as(None).await.unwrap_or_default()
    }

    /// The same for the run of a pipeline; `None` if that pipeline was deleted meanwhile.
    pub async fn reconcile_for(&self, id: &PipelineKey, uid: &str) -> Option<Arc<LayerOutcome>> {
        self.reconcile_as(Some((id, uid))).await
    }

    async fn reconcile_as(&self, own: Option<(&PipelineKey, &str)>) -> Option<Arc<LayerOutcome>> {
        let LayerRuns { requested, last, .. } = &self.runs;
        let ticket = requested.fetch_add(1, Ordering::SeqCst) + 1;
        self.view.wait_synced().await;
        let completion = self.pipeline_cache.wait_complete(|| self.view.pipelines.live_uids(), own).await;
        if completion == CacheCompletion::Ended {
            return None;
        }
        let mut last = last.lock().await;
        if last.covers >= ticket {
            return Some(Arc::clone(&last.outcome));
        }
        let covers = requested.load(Ordering::SeqCst);
        // Boxed, or the future of every caller that waits here would have room for it.
        let outcome = Box::pin(self.run_with_retries(&mut last)).await;
        self.set_failure(outcome.failure_for(true).map(|failure| failure.message.as_str()));
        last.covers = covers;
        last.outcome = Arc::new(outcome);
        Some(Arc::clone(&last.outcome))
    }

    /// Why the last run failed, if it did.
    pub fn failure(&self) -> watch::Receiver<Option<String>> {
        self.runs.failure.subscribe()
    }

    /// Forgets the failure of the last run, where no pipeline is left that it could concern.
    pub fn clear_failure(&self) {
        self.set_failure(None);
    }

    fn set_failure(&self, failure: Option<&str>) {
        self.runs.failure.send_if_modified(|last| {
            let is_new = last.as_deref() != failure;
            if is_new {
                *last = failure.map(str::to_owned);
            }
            is_new
        });
    }

    async fn run_with_retries(&self, last: &mut LastRun) -> LayerOutcome {
        let mut outcome = LayerOutcome::default();
        for attempt in 1..=MAX_RUN_ATTEMPTS {
            self.metrics.count_layer_run();
            outcome = LayerOutcome::default();
            outcome.failure = self.run(&mut outcome, last).await.err().map(|error| LayerFailure::from(&error));
            let failures: Vec<&LayerFailure> = outcome.failure.iter().chain(&outcome.agent_failure).collect();
            if failures.is_empty() {
                return outcome;
            }
            if attempt == MAX_RUN_ATTEMPTS || !failures.iter().any(|failure| failure.is_transient) {
                for failure in failures {
                    tracing::warn!(error = failure.message, "failed to reconcile the collector layer");
                }
                break;
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
        self.metrics.count_layer_failure();
        outcome
    }

    async fn run(&self, outcome: &mut LayerOutcome, last: &mut LastRun) -> Result<(), LayerError> {
        let read = self.read().await?;
        self.cleanup.forget_deleted();
        let entries = self.pipeline_cache.list(&self.view.pipelines.live_uids());
        let holders = slot_holders(&read.locks, &entries);
        let LastRun { rendered, documents_written: written, agent_document_written, .. } = last;
        let rendered = self.render(&holders, rendered)?;
        outcome.refused = rendered.refused.clone();
        outcome.rendered = rendered.valid.keys().cloned().collect();
        let layer = &rendered.layer;
        outcome.documents = layer.documents().map(|it| it.hash.clone()).collect();
        let keepers = anchor_owners::select_owners(&entries, &holders);
        if keepers.is_empty() {
            return self.sweep_all().await;
        }
        if holders.is_empty() {
            // A waiting pipeline is about to take over a slot. Until then nothing changes.
            return Ok(());
        }
        let agents = self.reconcile_agents(&entries, &holders, read.agents, layer, agent_document_written);
        // Boxed, or this future would have room for it all the time.
        outcome.agent_failure = Box::pin(agents).await;
        let anchor = build::anchor_object(&self.options.namespace, &keepers);
        let around = BuildContext {
            namespace: self.options.namespace.clone(),
            anchor: self.ensure_anchor(&self.applier, &anchor, read.has_anchor).await?,
            anchor_owners: keepers,
            settings: self.view.settings.current(),
            image: self.options.image.clone(),
        };
        // Rights first: collectors use them as soon as they have read the document that needs them.
        let (rights, others) = build::layer_objects(&around, layer).into_iter().partition(|it| it.kind.is_rbac());
        let min_replicas = around.settings.min_replicas;
        let mut wanted = self.apply(rights, min_replicas).await?;
        wanted.extend(agents::needed_rights(layer));
        wanted.extend(self.write_documents(&around, layer, &read.documents, written).await?);
        wanted.insert((ObjectKind::ConfigMap, names::LAYER_CONFIG_MAP.to_owned()));
        wanted.extend(self.apply(others, min_replicas).await?);
        let given_up = written.is_some_and(|written| written.elapsed() >= OBSOLETE_RETENTION);
        self.sweep_unneeded(layer, &wanted, given_up).await?;
        kubelet_nudge::annotate_pods(&self.client, &self.options.namespace, &self.view.pods, layer).await;
        Ok(())
    }

    /// Renders the documents, or reuses the last ones if neither pipelines nor settings changed.
    fn render<'a>(
        &self,
        holders: &PipelineStates,
        last: &'a mut Option<RenderedLayer>,
    ) -> Result<&'a RenderedLayer, LayerError> {
        let valid = |entry: &PipelineState| entry.valid.clone().filter(|valid| valid.is_rendered());
        let asked = holders.iter().filter_map(|(id, entry)| Some((id.clone(), valid(entry)?))).collect();
        let settings = self.view.settings.current();
        let new = match last.take() {
            Some(last) if last.is_current_for(&asked, &settings) => last,
            before => RenderedLayer::new(asked, settings, before.as_ref())?,
        };
        Ok(last.insert(new))
    }

    /// Reads documents before locks: then a document is written only if no slot changed hands in between and
    /// another operator acted on it.
    async fn read(&self) -> Result<LayerInputs, LayerError> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.options.namespace);
        let agents = self.read_agents().await;
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
        Ok(LayerInputs { documents, agents, locks, has_anchor: anchor.is_some() })
    }
}

/// The pipelines that hold a slot by the locks that were just read.
fn slot_holders(locks: &[ConfigMap], entries: &PipelineStates) -> PipelineStates {
    let uids: BTreeSet<&str> =
        locks.iter().flat_map(ConfigMap::owner_references).map(|owner| owner.uid.as_str()).collect();
    let holds = |entry: &PipelineState| uids.contains(entry.owner.uid.as_str());
    entries.iter().filter(|(_, entry)| holds(entry)).map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
}
