//! The state that all reconciles and runs of the operator share.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::{Client, Resource, ResourceExt as _, runtime::reflector::Store};
use kubewake_api::{
    CollectorSettings, Signal,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TelemetryStatus, TracePipeline},
};
use kubewake_runtime::lock::Mutex;
use kubewake_trail::PendingWrites;
use tokio::sync::watch;

use crate::{
    feedback::{
        delivery::health_assessment::CollectorTier, delivery_health::DeliveryHealthCache,
        shutdown_losses::ShutdownLosses,
    },
    model::names,
    objects::object_cache::ObjectCache,
    pipeline::{
        pipeline_cache::{PipelineCache, PipelineKey, PipelineState},
        source_watcher::{ReferencedSource, SourceWatcher},
    },
    reconcile::PipelineKind,
    runtime::{metrics::OperatorMetrics, resync_trigger::ResyncTrigger},
};

#[derive(Clone, Debug)]
pub struct OperatorOptions {
    /// The namespace of the collectors, the operator's Lease and the locks.
    pub namespace: String,
    /// The collectors' image, unless a Telemetry names one.
    pub image: String,
    /// The interval of reconciles of a pipeline without events.
    pub resync: Duration,
}

/// The operator's clients, caches and settings.
pub struct OperatorState {
    /// A client whose calls are traced.
    pub client: Client,
    pub options: OperatorOptions,
    pub resync_trigger: ResyncTrigger,
    pub object_cache: Arc<ObjectCache>,
    pub source_watcher: SourceWatcher,
    /// The result of each pipeline's last validation.
    pub pipeline_cache: PipelineCache,
    /// Delivery health of pipelines, as collectors report it.
    pub delivery_health: Arc<DeliveryHealthCache>,
    /// Losses that collectors reported when they ended.
    pub shutdown_losses: Arc<ShutdownLosses>,
    pub pods: Store<Pod>,
    pub pipelines: PipelineStores,
    /// Whether all caches are synced.
    pub seen: watch::Sender<bool>,
    pub telemetries: Store<Telemetry>,
    /// Statuses of the Telemetry that were written and that the watch has not shown yet.
    pub pending_statuses: PendingWrites<TelemetryStatus>,
    /// Why the last run of the layer failed, if it did.
    pub layer_failure: watch::Sender<Option<String>>,
    /// The last valid settings, which stay in force while the Telemetry is invalid.
    pub last_settings: Mutex<Option<CollectorSettings>>,
    pub metrics: Arc<OperatorMetrics>,
}

/// The pipelines of all kinds, from their watches.
pub struct PipelineStores {
    pub traces: Store<TracePipeline>,
    pub logs: Store<LogPipeline>,
    pub metrics: Store<MetricPipeline>,
}

impl PipelineStores {
    /// All objects that pipelines name, also pipelines that were not reconciled yet: the watch of such an
    /// object must not end.
    fn referenced_sources(&self) -> BTreeSet<ReferencedSource> {
        let mut named = sources_referenced_by(&self.traces.state());
        named.extend(sources_referenced_by(&self.logs.state()));
        named.extend(sources_referenced_by(&self.metrics.state()));
        named
    }

    /// The uids of all pipelines that are not being deleted.
    fn live_uids(&self) -> BTreeMap<PipelineKey, String> {
        let mut uids = live_uids_of(Signal::Traces, &self.traces.state());
        uids.extend(live_uids_of(Signal::Logs, &self.logs.state()));
        uids.extend(live_uids_of(Signal::Metrics, &self.metrics.state()));
        uids
    }
}

fn sources_referenced_by<K: PipelineKind>(objects: &[Arc<K>]) -> BTreeSet<ReferencedSource> {
    let references = objects.iter().flat_map(|object| object.pipeline().references());
    references.map(|reference| ReferencedSource::from(&reference)).collect()
}

fn live_uids_of<K: Resource>(signal: Signal, objects: &[Arc<K>]) -> BTreeMap<PipelineKey, String> {
    let staying = objects.iter().filter(|object| object.meta().deletion_timestamp.is_none());
    staying.filter_map(|object| Some((PipelineKey { signal, name: object.name_any() }, object.uid()?))).collect()
}

impl OperatorState {
    /// Waits until all watches have listed their objects, and then wakes all callers of
    /// [`Self::wait_caches_synced`].
    ///
    /// For a single caller: a store of kube wakes only the last of several waiters.
    pub async fn sync_caches(&self) {
        // A watch that ends before it listed anything ends with the operator.
        let _ = future::join5(
            self.pipelines.traces.wait_until_ready(),
            self.pipelines.logs.wait_until_ready(),
            self.pipelines.metrics.wait_until_ready(),
            self.telemetries.wait_until_ready(),
            self.pods.wait_until_ready(),
        )
        .await;
        self.object_cache.wait_synced().await;
        self.seen.send_replace(true);
    }

    /// Waits until all watches have listed their objects, pods of collectors included.
    pub async fn wait_caches_synced(&self) {
        // The sender is a field of this value, so the wait cannot fail.
        let _ = self.seen.subscribe().wait_for(|seen| *seen).await;
    }

    /// The pods of a tier that are pending, running or being deleted. A pod that has ended runs no collector.
    pub fn collector_pods(&self, tier: CollectorTier) -> Vec<Arc<Pod>> {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let has_ended = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
        let is_of = |pod: &Pod| pod.labels().get(names::NAME_LABEL).map(String::as_str) == Some(tier.name());
        self.pods.state().into_iter().filter(|pod| is_of(pod) && !has_ended(pod)).collect()
    }

    /// Waits until all caches are synced and every pipeline has been examined.
    pub async fn wait_pipelines_examined(&self) {
        self.wait_caches_synced().await;
        self.pipeline_cache.wait_complete(|| self.pipelines.live_uids()).await;
    }

    /// Returns the cached state of the pipelines that exist, and drops that of all others.
    pub fn prune_and_list_pipelines(&self) -> BTreeMap<PipelineKey, Arc<PipelineState>> {
        let present = self.pipeline_cache.retain_and_list(|| self.pipelines.live_uids());
        self.metrics.retain(|id| present.contains_key(id));
        let there = self.all_pipeline_uids();
        self.shutdown_losses.retain(|uid| there.contains(uid));
        self.source_watcher.retain_named(|| self.pipelines.referenced_sources());
        present
    }

    /// The Telemetry `default`, if it exists.
    pub fn telemetry(&self) -> Option<Arc<Telemetry>> {
        self.telemetries.state().into_iter().find(|telemetry| telemetry.name_any() == "default")
    }

    /// The settings of the collectors: those of the Telemetry, the last valid ones if it is invalid now, or
    /// its valid part if it never was valid.
    pub fn resolve_settings(&self) -> CollectorSettings {
        let namespace = &self.options.namespace;
        let mut last = self.last_settings.lock();
        let new = match self.telemetry() {
            None => CollectorSettings::new(namespace),
            Some(telemetry) => match (CollectorSettings::from_spec_lenient(&telemetry.spec, namespace), &*last) {
                // The status of the Telemetry reports its problems.
                ((_, problems), Some(last)) if !problems.is_empty() => last.clone(),
                ((settings, _), _) => settings,
            },
        };
        *last = Some(new.clone());
        new
    }

    /// The uids of all pipelines that are not being deleted.
    pub fn live_pipeline_uids(&self) -> BTreeSet<String> {
        self.pipelines.live_uids().into_values().collect()
    }

    /// The uids of all pipelines, also of those that are being deleted.
    pub fn all_pipeline_uids(&self) -> BTreeSet<String> {
        let PipelineStores { traces, logs, metrics } = &self.pipelines;
        let mut uids: BTreeSet<String> = traces.state().iter().filter_map(|object| object.uid()).collect();
        uids.extend(logs.state().iter().filter_map(|object| object.uid()));
        uids.extend(metrics.state().iter().filter_map(|object| object.uid()));
        uids
    }

    /// References to all pipelines, for events.
    pub fn pipeline_references(&self) -> Vec<ObjectReference> {
        let PipelineStores { traces, logs, metrics } = &self.pipelines;
        let mut references: Vec<_> = traces.state().iter().map(|object| object.object_ref(&())).collect();
        references.extend(logs.state().iter().map(|object| object.object_ref(&())));
        references.extend(metrics.state().iter().map(|object| object.object_ref(&())));
        references
    }

    /// Whether there is a pipeline that is not being deleted.
    pub fn has_pipelines(&self) -> bool {
        !self.pipelines.live_uids().is_empty()
    }

    /// Sets why the last run of the layer failed, or that it did not.
    pub fn set_layer_failure(&self, failure: Option<&str>) {
        self.layer_failure.send_if_modified(|last| {
            let is_new = last.as_deref() != failure;
            if is_new {
                *last = failure.map(str::to_owned);
            }
            is_new
        });
    }
}
