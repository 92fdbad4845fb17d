//! The running components of an engine, and those that are being drained.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use kubewake_config::{ComponentId, PipelineId, model};
use kubewake_otlp::Signal;
use tokio::sync::watch;

use super::{ApplyError, EngineOptions, EngineOverview, retired_components::RetiredComponents};
use crate::{
    components::{AuthProviders, Connector, ConnectorInput, ExporterNode, Receiver},
    core::{Budget, ConnectorOutput, DestinationLabels, Pipeline, PipelineSet, Processor},
    telemetry,
};

/// The identity of a component: its settings, its files, and those of the credentials that it uses.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ComponentIdentity<S> {
    pub(super) settings: S,
    pub(super) fingerprint: u64,
    /// The extensions that it uses: authenticators, and the storage of its state.
    pub(super) extensions: Vec<(model::ExtensionConfig, u64)>,
}

#[derive(Clone)]
pub(super) struct RunningExtension {
    pub(super) identity: ComponentIdentity<model::ExtensionConfig>,
    pub(super) auth: AuthProviders,
    /// The directory for the state of components that name it.
    pub(super) state_directory: Option<PathBuf>,
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

/// The id of a connector, and the signal that comes in. One connector runs for each.
pub(super) type ConnectorKey = (ComponentId, Signal);

#[derive(Clone)]
pub(super) struct RunningConnector {
    pub(super) identity: ComponentIdentity<model::ConnectorConfig>,
    pub(super) node: Arc<dyn Connector>,
    /// The pipelines that it feeds.
    pub(super) output: Arc<ConnectorOutput>,
    /// Closed when no input is left, so that no data can come any more.
    pub(super) inputs: Arc<watch::Sender<()>>,
    /// The depth of the deepest pipeline that feeds it.
    pub(super) depth: usize,
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
    /// The connectors that it feeds.
    pub(super) connectors: Vec<(ComponentId, Arc<ConnectorInput>)>,
    /// How many connectors data has passed at most when it comes here.
    pub(super) depth: usize,
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
    pub(super) connectors: BTreeMap<ConnectorKey, RunningConnector>,
    pub(super) receivers: BTreeMap<ComponentId, RunningReceiver>,
    pub(super) stopped: bool,
}

/// What a change is planned against. It holds no pipeline, because the end waits until nothing refers to one,
/// and a plan may take longer than that.
pub(super) struct GraphSnapshot {
    pub(super) auth: BTreeMap<ComponentId, RunningExtension>,
    pub(super) pipelines: BTreeMap<PipelineId, PipelineSnapshot>,
    pub(super) connectors: BTreeMap<ConnectorKey, ComponentIdentity<model::ConnectorConfig>>,
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
            connectors: BTreeMap::new(),
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
        let connectors = self.connectors.iter().map(|(key, connector)| (key.clone(), connector.identity.clone()));
        GraphSnapshot {
            auth: self.auth.clone(),
            pipelines: pipelines.collect(),
            connectors: connectors.collect(),
            receivers: receivers.collect(),
        }
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
        std::mem::take(&mut self.connectors).into_values().for_each(|connector| retired.add_connector(connector));
        retired
    }
}
