//! The running components of an engine, and those that are being drained.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use kubewake_config::{ComponentId, PipelineId, model};
use tokio::{task::JoinSet, time::Instant};

use super::{ApplyError, EngineOptions, EngineOverview};
use crate::{
    components::{AuthProviders, ExporterNode, Receiver},
    core::{Budget, DestinationLabels, Pipeline, PipelineGone, PipelineSet, Processor},
    telemetry,
};

/// The identity of a component: its settings, its files, and those of the credentials that it uses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComponentIdentity<S> {
    pub(super) settings: S,
    pub(super) fingerprint: u64,
    pub(super) auth: Vec<(model::ExtensionConfig, u64)>,
}

#[derive(Clone)]
pub(super) struct RunningExtension {
    pub(super) identity: ComponentIdentity<model::ExtensionConfig>,
    pub(super) auth: AuthProviders,
}

pub(super) struct RunningProcessor {
    pub(super) id: ComponentId,
    pub(super) settings: model::ProcessorConfig,
    pub(super) node: Arc<dyn Processor>,
}

pub(super) struct RunningExporter {
    pub(super) id: ComponentId,
    pub(super) identity: ComponentIdentity<model::ExporterConfig>,
    pub(super) destination: DestinationLabels,
    pub(super) node: Arc<dyn ExporterNode>,
}

pub(super) struct RunningPipeline {
    pub(super) pipeline: Arc<Pipeline>,
    /// Tells pipelines with the same id apart, if the document sets it.
    pub(super) uid: Option<String>,
    /// The uids of the pipelines in other collectors for which it carries data.
    pub(super) carries: Vec<String>,
    /// The `memory_limiter` whose budget it is charged to.
    pub(super) limiter: Option<ComponentId>,
    pub(super) processors: Vec<RunningProcessor>,
    pub(super) exporters: Vec<RunningExporter>,
}

pub(super) struct RunningReceiver {
    pub(super) identity: ComponentIdentity<model::ReceiverConfig>,
    pub(super) pipelines: Arc<PipelineSet>,
    pub(super) node: Arc<dyn Receiver>,
}

pub(super) struct RunningGraph {
    pub(super) auth: BTreeMap<ComponentId, RunningExtension>,
    pub(super) default_budget: Arc<Budget>,
    pub(super) budgets: BTreeMap<ComponentId, Arc<Budget>>,
    pub(super) pipelines: BTreeMap<PipelineId, RunningPipeline>,
    pub(super) receivers: BTreeMap<ComponentId, RunningReceiver>,
    pub(super) stopped: bool,
}

/// What a change is planned against. It holds no pipeline, because the end waits until nothing refers to one,
/// and a plan may take longer than that.
pub(super) struct GraphSnapshot {
    pub(super) auth: BTreeMap<ComponentId, RunningExtension>,
    pub(super) pipelines: BTreeMap<PipelineId, PipelineSnapshot>,
    pub(super) receivers: BTreeMap<ComponentId, ReceiverSnapshot>,
}

pub(super) struct PipelineSnapshot {
    uid: Option<String>,
    pub(super) processors: Vec<(ComponentId, model::ProcessorConfig)>,
    pub(super) exporters: Vec<(ComponentId, ComponentIdentity<model::ExporterConfig>)>,
}

pub(super) struct ReceiverSnapshot {
    pub(super) identity: ComponentIdentity<model::ReceiverConfig>,
    pub(super) node: Arc<dyn Receiver>,
}

/// Whether a document means a pipeline with this uid by the same id. Two different uids mean different pipelines.
fn is_same_uid(uid: Option<&str>, wiring: &model::PipelineConfig) -> bool {
    uid.is_none() || wiring.uid.is_none() || uid == wiring.uid.as_deref()
}

impl PipelineSnapshot {
    fn new(pipeline: &RunningPipeline) -> Self {
        let processors = pipeline.processors.iter().map(|step| (step.id.clone(), step.settings.clone()));
        let exporters = pipeline.exporters.iter().map(|exporter| (exporter.id.clone(), exporter.identity.clone()));
        Self { uid: pipeline.uid.clone(), processors: processors.collect(), exporters: exporters.collect() }
    }

    pub(super) fn is_same_pipeline(&self, wiring: &model::PipelineConfig) -> bool {
        is_same_uid(self.uid.as_deref(), wiring)
    }
}

impl RunningPipeline {
    pub(super) fn is_same_pipeline(&self, wiring: &model::PipelineConfig) -> bool {
        is_same_uid(self.uid.as_deref(), wiring)
    }
}

impl RunningGraph {
    pub(super) fn new(options: &EngineOptions) -> Self {
        // A fifth is reserved for requests in progress, as the Collector's limiter does by default.
        let default_budget = Budget::new(options.default_budget, options.default_budget / 5);
        Self {
            auth: BTreeMap::new(),
            default_budget,
            budgets: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            receivers: BTreeMap::new(),
            stopped: false,
        }
    }

    pub(super) fn overview(&self) -> EngineOverview {
        let pipelines = self.pipelines.iter().map(|(id, p)| telemetry::PipelineInfo {
            id: id.clone(),
            uid: p.uid.clone(),
            carries: p.carries.clone(),
            processors: p.processors.iter().map(|step| step.id.clone()).collect(),
            exporters: p.exporters.iter().map(|o| (o.id.clone(), o.destination.clone())).collect(),
        });
        let listeners = self.receivers.iter().flat_map(|(id, r)| {
            r.node.listeners().into_iter().map(move |(protocol, address)| (id.clone(), protocol, address))
        });
        EngineOverview { pipelines: pipelines.collect(), listeners: listeners.collect() }
    }

    pub(super) fn snapshot(&self) -> GraphSnapshot {
        let pipelines = self.pipelines.iter().map(|(id, pipeline)| (id.clone(), PipelineSnapshot::new(pipeline)));
        let receivers = self.receivers.iter().map(|(id, receiver)| {
            let snapshot = ReceiverSnapshot { identity: receiver.identity.clone(), node: receiver.node.clone() };
            (id.clone(), snapshot)
        });
        GraphSnapshot { auth: self.auth.clone(), pipelines: pipelines.collect(), receivers: receivers.collect() }
    }

    /// No document can be applied after the end has begun.
    pub(super) fn check_not_stopped(&self) -> Result<(), Vec<ApplyError>> {
        if self.stopped {
            let message = "the collector is stopping".into();
            return Err(vec![ApplyError { path: "service".into(), message }]);
        }
        Ok(())
    }

    /// Removes all components, to be drained. No document can be applied afterwards.
    pub(super) fn retire_all(&mut self) -> RetiredComponents {
        self.stopped = true;
        let mut retired = RetiredComponents::default();
        retired.receivers.extend(std::mem::take(&mut self.receivers).into_values().map(|r| r.node));
        std::mem::take(&mut self.pipelines).into_values().for_each(|pipeline| retired.add_pipeline(pipeline));
        retired
    }
}

/// Components that were removed and may still hold data.
#[derive(Default)]
pub(super) struct RetiredComponents {
    pub(super) receivers: Vec<Arc<dyn Receiver>>,
    pipelines: Vec<PipelineGone>,
    /// In the order in which data flows through them.
    processors: Vec<Arc<dyn Processor>>,
    exporters: Vec<Arc<dyn ExporterNode>>,
}

/// The fraction of the drain time for requests in progress: one third. A slow client must not cost queued data
/// its delivery.
const REQUEST_DRAIN_DIVISOR: u32 = 3;

/// Passing data to consumers that take nothing any more takes no time.
const FINAL_FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

impl RetiredComponents {
    pub(super) fn is_empty(&self) -> bool {
        self.receivers.is_empty()
            && self.pipelines.is_empty()
            && self.processors.is_empty()
            && self.exporters.is_empty()
    }

    pub(super) fn add_pipeline(&mut self, pipeline: RunningPipeline) {
        self.pipelines.push(pipeline.pipeline.watch_gone());
        self.add_components(pipeline.processors, pipeline.exporters);
    }

    /// Adds components that a remaining pipeline no longer uses.
    pub(super) fn add_components(&mut self, steps: Vec<RunningProcessor>, outlets: Vec<RunningExporter>) {
        steps.iter().for_each(|s| s.node.retire());
        self.processors.extend(steps.into_iter().map(|s| s.node));
        outlets.iter().for_each(|o| o.node.retire());
        self.exporters.extend(outlets.into_iter().map(|o| o.node));
    }

    /// Adds components of an earlier change. Their processors come first, since they may lead to the ones
    /// removed now.
    pub(super) fn add_earlier(&mut self, earlier: RetiredComponents) {
        let RetiredComponents { receivers, pipelines, processors: steps, exporters: outlets } = earlier;
        self.receivers.extend(receivers);
        self.pipelines.extend(pipelines);
        self.processors.splice(0..0, steps);
        self.exporters.extend(outlets);
    }

    /// Called after draining: releases all components except those that callers with an old reference may still
    /// use.
    pub(super) fn release_unused(&mut self) {
        self.receivers.clear();
        self.pipelines.clear();
        // In the order of the flow, since each processor holds a reference to the next.
        self.processors.retain(|processor| Arc::strong_count(processor) > 1);
        self.exporters.retain(|exporter| Arc::strong_count(exporter) > 1);
    }

    /// Lets requests in progress end, then flushes processors, then drains exporter queues. It can be started
    /// again after it was cancelled.
    pub(super) async fn drain(&self, deadline: Instant) {
        let now = Instant::now();
        self.drain_receivers(now + deadline.saturating_duration_since(now) / REQUEST_DRAIN_DIVISOR).await;
        let in_time = tokio::time::timeout_at(deadline, self.flush_processors()).await.is_ok();
        self.for_each_exporter(|outlet| async move { outlet.drain(deadline).await }).await;
        if !in_time {
            // Data left in a processor has nowhere to go: the halted exporters count it as dropped.
            self.for_each_exporter(|outlet| async move { outlet.halt().await }).await;
            let _ = tokio::time::timeout(FINAL_FLUSH_TIMEOUT, self.flush_processors()).await;
        }
    }

    async fn drain_receivers(&self, deadline: Instant) {
        self.receivers.iter().for_each(|receiver| receiver.shutdown());
        let closed = async {
            for receiver in &self.receivers {
                receiver.wait_closed().await;
            }
        };
        if tokio::time::timeout_at(deadline, closed).await.is_err() {
            tracing::warn!("closing the connections that did not end in time");
            self.receivers.iter().for_each(|receiver| receiver.abort());
        }
        let gone = async {
            for pipeline in &self.pipelines {
                pipeline.wait().await;
            }
        };
        let _ = tokio::time::timeout_at(deadline, gone).await;
    }

    async fn flush_processors(&self) {
        for step in &self.processors {
            step.flush().await;
        }
    }

    async fn for_each_exporter<F>(&self, end: impl Fn(Arc<dyn ExporterNode>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut ends: JoinSet<()> = self.exporters.iter().cloned().map(end).collect();
        while ends.join_next().await.is_some() {}
    }
}
