//! What every reconcile and every run has at hand.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::future;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, ResourceExt as _,
    runtime::reflector::Store,
};
use kubewake_api::{
    Settings, Signal,
    v1alpha1::{LogPipeline, MetricPipeline, Telemetry, TracePipeline},
};

use crate::{
    bell::Bell,
    desk::{Desk, Entry, Id},
    live::Live,
    metrics::Metrics,
    secrets::Sources,
    verdicts::Verdicts,
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
    /// The collectors' pods.
    pub pods: Store<Pod>,
    /// The pipelines.
    pub pipelines: Pipelines,
    /// How collectors run.
    pub telemetry: Store<Telemetry>,
    /// What held before the Telemetry was not valid any more.
    pub last_settings: Mutex<Option<Settings>>,
    /// Whether Prometheus' operator is there.
    pub has_pod_monitors: bool,
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
    /// The uid of each.
    fn uids(&self) -> BTreeMap<Id, String> {
        let mut uids = BTreeMap::new();
        let mut add = |signal, name, uid: Option<String>| {
            uids.extend(uid.map(|uid| (Id { signal, name }, uid)));
        };
        self.traces.state().iter().for_each(|it| add(Signal::Traces, it.name_any(), it.uid()));
        self.logs.state().iter().for_each(|it| add(Signal::Logs, it.name_any(), it.uid()));
        self.metrics.state().iter().for_each(|it| add(Signal::Metrics, it.name_any(), it.uid()));
        uids
    }
}

impl World {
    /// Waits until everything was seen once, and every pipeline looked at.
    pub async fn complete(&self) {
        // A watch that ends without having shown anything ends with the operator.
        let _ = future::join5(
            self.pipelines.traces.wait_until_ready(),
            self.pipelines.logs.wait_until_ready(),
            self.pipelines.metrics.wait_until_ready(),
            self.telemetry.wait_until_ready(),
            self.pods.wait_until_ready(),
        )
        .await;
        self.live.synced().await;
        self.desk.complete(|| self.pipelines.uids()).await;
    }

    /// What was found of the pipelines that are there.
    pub fn present(&self) -> BTreeMap<Id, Arc<Entry>> {
        self.desk.of(&self.pipelines.uids())
    }

    /// How collectors run: by the Telemetry, by what it said when it was valid the last time, or by default.
    pub fn settings(&self) -> Settings {
        let namespace = &self.options.namespace;
        let telemetry = self.telemetry.state().into_iter().find(|telemetry| telemetry.name_any() == "default");
        let mut last = self.last_settings.lock().unwrap_or_else(PoisonError::into_inner);
        let new = match telemetry.map(|telemetry| Settings::of(&telemetry.spec, namespace)) {
            None => Settings::new(namespace),
            Some(Ok(settings)) => settings,
            Some(Err(problems)) => {
                for problem in problems {
                    tracing::warn!(kind = "Telemetry", name = "default", %problem, "it is not valid, and what it said before holds");
                }
                last.clone().unwrap_or_else(|| Settings::new(namespace))
            }
        };
        *last = Some(new.clone());
        new
    }
}
