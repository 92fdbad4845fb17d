//! What every reconcile and every run has at hand.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future;
use k8s_openapi::api::core::v1::Pod;
use kube::{Client, Resource, ResourceExt as _, runtime::reflector::Store};
use kubewake_api::{
    Settings, Signal,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TelemetryStatus, TracePipeline},
};
use tokio::sync::watch;

use crate::{
    bell::Bell,
    delivery::judge::Tier,
    desk::{Desk, Entry, Id},
    live::Live,
    losses::Losses,
    metrics::Metrics,
    names,
    reconcile::PipelineKind,
    secrets::{Source, Sources},
    verdicts::Verdicts,
    written::Written,
};

/// How the operator works.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it makes collectors, and where its Lease and its locks are.
    pub namespace: String,
    /// The collectors' image, unless a Telemetry names one.
    pub image: String,
    /// How long a pipeline is left alone when nothing happens.
    pub resync: Duration,
}

/// What is known of the cluster.
pub struct World {
    /// Calls of this are traced.
    pub client: Client,
    /// How to work.
    pub options: Options,
    /// Says that something happened.
    pub bell: Bell,
    /// What was made.
    pub live: Arc<Live>,
    /// What pipelines name.
    pub sources: Sources,
    /// What was found of pipelines.
    pub desk: Desk,
    /// What collectors say of pipelines.
    pub verdicts: Arc<Verdicts>,
    /// What collectors dropped when they ended.
    pub losses: Arc<Losses>,
    /// The collectors' pods.
    pub pods: Store<Pod>,
    /// The pipelines.
    pub pipelines: Pipelines,
    /// Whether all watches have shown what there is.
    pub seen: watch::Sender<bool>,
    /// How collectors run.
    pub telemetries: Store<Telemetry>,
    /// What was said of it.
    pub written: Written<TelemetryStatus>,
    /// Why the layer is not as it should be, if it is not.
    pub failure: watch::Sender<Option<String>>,
    /// What held before the Telemetry was not valid any more.
    pub last_settings: Mutex<Option<Settings>>,
    /// What was done, counted.
    pub metrics: Arc<Metrics>,
}

/// All pipelines as watches show them.
pub struct Pipelines {
    /// Those of traces.
    pub traces: Store<TracePipeline>,
    /// Those of logs.
    pub logs: Store<LogPipeline>,
    /// Those of metrics.
    pub metrics: Store<MetricPipeline>,
}

impl Pipelines {
    /// All objects that they name, also those that nobody has looked at yet: a watch for one of these must not end.
    fn named(&self) -> BTreeSet<Source> {
        let mut named = named_by(&self.traces.state());
        named.extend(named_by(&self.logs.state()));
        named.extend(named_by(&self.metrics.state()));
        named
    }

    /// The uid of each that is not going.
    fn uids(&self) -> BTreeMap<Id, String> {
        let mut uids = uids_of(Signal::Traces, &self.traces.state());
        uids.extend(uids_of(Signal::Logs, &self.logs.state()));
        uids.extend(uids_of(Signal::Metrics, &self.metrics.state()));
        uids
    }
}

fn named_by<K: PipelineKind>(objects: &[Arc<K>]) -> BTreeSet<Source> {
    let references = objects.iter().flat_map(|object| object.pipeline().references());
    references.map(|reference| Source::from(&reference)).collect()
}

fn uids_of<K: Resource>(signal: Signal, objects: &[Arc<K>]) -> BTreeMap<Id, String> {
    let staying = objects.iter().filter(|object| object.meta().deletion_timestamp.is_none());
    staying.filter_map(|object| Some((Id { signal, name: object.name_any() }, object.uid()?))).collect()
}

impl World {
    /// Waits for all watches to have shown what there is, and lets everybody go on who waits for that.
    ///
    /// For one caller only: of several who wait for one of kube's stores, it wakes the last.
    pub async fn see(&self) {
        // A watch that ends without having shown anything ends with the operator.
        let _ = future::join5(
            self.pipelines.traces.wait_until_ready(),
            self.pipelines.logs.wait_until_ready(),
            self.pipelines.metrics.wait_until_ready(),
            self.telemetries.wait_until_ready(),
            self.pods.wait_until_ready(),
        )
        .await;
        self.live.synced().await;
        self.seen.send_replace(true);
    }

    /// Waits until all watches have shown what there is, those of the collectors' pods included.
    pub async fn all_seen(&self) {
        // It ends only with this value itself.
        let _ = self.seen.subscribe().wait_for(|seen| *seen).await;
    }

    /// The pods of a tier, as far as they run, are about to, or are ending. One that has ended runs no collector.
    pub fn pods_of(&self, tier: Tier) -> Vec<Arc<Pod>> {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let has_ended = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
        let is_of = |pod: &Pod| pod.labels().get(names::NAME).map(String::as_str) == Some(tier.name());
        self.pods.state().into_iter().filter(|pod| is_of(pod) && !has_ended(pod)).collect()
    }

    /// Waits until everything was seen once, and every pipeline looked at.
    pub async fn complete(&self) {
        self.all_seen().await;
        self.desk.complete(|| self.pipelines.uids()).await;
    }

    /// What was found of the pipelines that are there. What was known of others is forgotten.
    pub fn present(&self) -> BTreeMap<Id, Arc<Entry>> {
        let present = self.desk.of(|| self.pipelines.uids());
        self.metrics.retain(|id| present.contains_key(id));
        let there = self.all_uids();
        self.losses.retain(|uid| there.contains(uid));
        self.sources.retain(|| self.pipelines.named());
        present
    }

    /// The Telemetry, if there is one.
    pub fn telemetry(&self) -> Option<Arc<Telemetry>> {
        self.telemetries.state().into_iter().find(|telemetry| telemetry.name_any() == "default")
    }

    /// How collectors run: by the Telemetry, by what it said when it was valid the last time, or by what makes sense of it.
    pub fn settings(&self) -> Settings {
        let namespace = &self.options.namespace;
        let mut last = self.last_settings.lock().unwrap_or_else(PoisonError::into_inner);
        let new = match self.telemetry() {
            None => Settings::new(namespace),
            Some(telemetry) => match (Settings::as_far_as_possible(&telemetry.spec, namespace), &*last) {
                // Its status says so.
                ((_, problems), Some(last)) if !problems.is_empty() => last.clone(),
                ((settings, _), _) => settings,
            },
        };
        *last = Some(new.clone());
        new
    }

    /// The uids of all pipelines that are not going.
    pub fn uids(&self) -> BTreeSet<String> {
        self.pipelines.uids().into_values().collect()
    }

    /// The uids of all pipelines, also of those that are going.
    pub fn all_uids(&self) -> BTreeSet<String> {
        let Pipelines { traces, logs, metrics } = &self.pipelines;
        let mut uids: BTreeSet<String> = traces.state().iter().filter_map(|object| object.uid()).collect();
        uids.extend(logs.state().iter().filter_map(|object| object.uid()));
        uids.extend(metrics.state().iter().filter_map(|object| object.uid()));
        uids
    }

    /// Whether there is a pipeline that is not going.
    pub fn has_pipelines(&self) -> bool {
        !self.pipelines.uids().is_empty()
    }

    /// This is why the layer is not as it should be.
    pub fn note_failure(&self, failure: Option<&str>) {
        self.failure.send_if_modified(|last| {
            let is_new = last.as_deref() != failure;
            if is_new {
                *last = failure.map(str::to_owned);
            }
            is_new
        });
    }
}
