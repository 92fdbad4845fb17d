//! The first phase of a change: everything that can fail, without visible effects.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use kubewake_config::{
    CollectorDocument, ComponentId, PipelineId,
    model::{self, ExtensionConfig},
};

use super::{
    ApplyError, fingerprint, flow_order,
    running_graph::{ComponentIdentity, ConnectorKey, GraphSnapshot, RunningExtension},
};
use crate::{
    components::{
        AuthProviders, BuildError, ComponentTables, ConnectorContext, ExporterContext, ExtensionContext,
        PreparedConnector, PreparedExporter, PreparedNode, PreparedProcessor, PreparedReceiver, ProcessorContext,
        ReceiverContext,
    },
    extension::{ClientAuth, ServerAuth},
    net::listener_pool::AddressClaims,
};

/// The planned change of an exporter in a pipeline.
pub(super) enum ExporterPlan {
    /// The exporter is unchanged.
    Keep,
    /// The exporter is new, or takes new settings.
    Set(Box<(PreparedExporter, ComponentIdentity<model::ExporterConfig>)>),
}

/// The planned change of a connector for one signal that comes in.
pub(super) enum ConnectorPlan {
    /// The connector is unchanged.
    Keep,
    /// The connector is new, or takes new settings.
    Set(Box<(PreparedConnector, ComponentIdentity<model::ConnectorConfig>)>),
}

/// The planned change of a processor in a pipeline.
pub(super) enum ProcessorPlan {
    /// No node of its own: the budget that the pipeline is charged to.
    MemoryBudget,
    /// The processor is unchanged.
    Keep,
    /// The processor is new, or takes new settings.
    Set(PreparedNode, model::ProcessorConfig),
}

/// The planned change of a receiver.
pub(super) enum ReceiverPlan {
    /// The receiver is unchanged.
    Keep,
    /// The receiver is new, or takes new settings.
    Set(Box<(PreparedReceiver, ComponentIdentity<model::ReceiverConfig>)>),
}

pub(super) struct GraphPlan {
    pub(super) auth: BTreeMap<ComponentId, RunningExtension>,
    pub(super) budgets: BTreeMap<ComponentId, (u64, u64)>,
    pub(super) processors: BTreeMap<(PipelineId, ComponentId), ProcessorPlan>,
    pub(super) pipelines: BTreeMap<PipelineId, model::PipelineConfig>,
    /// How many connectors data has passed at most when it comes to a pipeline.
    pub(super) depths: BTreeMap<PipelineId, usize>,
    pub(super) exporters: BTreeMap<(PipelineId, ComponentId), ExporterPlan>,
    pub(super) connectors: BTreeMap<ConnectorKey, ConnectorPlan>,
    pub(super) receivers: BTreeMap<ComponentId, ReceiverPlan>,
}

/// What a plan uses beside the document and the running graph.
pub(super) struct PlanEnvironment {
    pub(super) tables: ComponentTables,
    pub(super) claims: Arc<AddressClaims>,
    pub(super) state_root: Option<PathBuf>,
}

/// Builds and binds what `document` needs beyond the running graph. It may wait for files and name servers.
pub(super) fn plan_graph(
    running: &GraphSnapshot,
    document: &CollectorDocument,
    environment: &PlanEnvironment,
) -> Result<GraphPlan, Vec<ApplyError>> {
    let mut errors = Vec::new();
    let auth = plan_auth(running, document, environment, &mut errors);
    let mut planner = GraphPlanner { running, document, auth: &auth, environment, errors };
    let exporters = planner.plan_exporters();
    let connectors = planner.plan_connectors();
    let PlannedProcessors { budgets, processors } = planner.plan_processors();
    let receivers = planner.plan_receivers();
    if !planner.errors.is_empty() {
        return Err(planner.errors);
    }
    let pipelines = document.service.pipelines.clone();
    let depths = flow_order::pipeline_depths(document);
    Ok(GraphPlan { auth, budgets, processors, pipelines, depths, exporters, connectors, receivers })
}

fn push_error(errors: &mut Vec<ApplyError>, section: &str, id: &ComponentId, error: BuildError) {
    let error = ApplyError { path: format!("{section}::{id}"), message: error.0 };
    // A component is built for each pipeline and fails in each; report it once.
    if !errors.contains(&error) {
        errors.push(error);
    }
}

fn plan_auth(
    running: &GraphSnapshot,
    document: &CollectorDocument,
    environment: &PlanEnvironment,
    errors: &mut Vec<ApplyError>,
) -> BTreeMap<ComponentId, RunningExtension> {
    let mut out = BTreeMap::new();
    for id in &document.service.extensions {
        let Some(settings) = document.extensions.get(id) else { continue };
        let print = fingerprint::combined_fingerprint(&settings.files());
        let identity = ComponentIdentity { settings: settings.clone(), fingerprint: print, extensions: Vec::new() };
        let kept = running.auth.get(id).filter(|old| old.identity == identity);
        let built = match kept {
            Some(old) => Ok((old.auth.clone(), old.state_directory.clone())),
            None => (environment.tables.extension)(settings, &ExtensionContext { id })
                .and_then(|extension| Ok((extension.build_auth()?, extension.state_directory()))),
        };
        match built {
            Ok((auth, state_directory)) => {
                out.insert(id.clone(), RunningExtension { identity, auth, state_directory });
            }
            Err(error) => push_error(errors, "extensions", id, error),
        }
    }
    out
}

/// The planned processors, and the budgets of the limiters in use.
#[derive(Default)]
struct PlannedProcessors {
    budgets: BTreeMap<ComponentId, (u64, u64)>,
    processors: BTreeMap<(PipelineId, ComponentId), ProcessorPlan>,
}

impl PlannedProcessors {
    fn add(
        &mut self,
        pipeline: &PipelineId,
        id: &ComponentId,
        settings: &model::ProcessorConfig,
        plan: Option<PreparedProcessor>,
    ) {
        let plan = match plan {
            None => ProcessorPlan::Keep,
            Some(PreparedProcessor::Node(node)) => ProcessorPlan::Set(node, settings.clone()),
            Some(PreparedProcessor::MemoryBudget { limit, spike }) => {
                self.budgets.insert(id.clone(), (limit, spike));
                ProcessorPlan::MemoryBudget
            }
        };
        self.processors.insert((pipeline.clone(), id.clone()), plan);
    }
}

struct GraphPlanner<'a> {
    running: &'a GraphSnapshot,
    document: &'a CollectorDocument,
    auth: &'a BTreeMap<ComponentId, RunningExtension>,
    environment: &'a PlanEnvironment,
    errors: Vec<ApplyError>,
}

impl GraphPlanner<'_> {
    fn plan_exporters(&mut self) -> BTreeMap<(PipelineId, ComponentId), ExporterPlan> {
        let mut out = BTreeMap::new();
        for (pipeline, wiring) in &self.document.service.pipelines {
            for id in &wiring.exporters {
                let Some(settings) = self.document.exporters.get(id) else { continue };
                match self.plan_exporter(pipeline, wiring, id, settings) {
                    Ok(plan) => drop(out.insert((pipeline.clone(), id.clone()), plan)),
                    Err(error) => push_error(&mut self.errors, "exporters", id, error),
                }
            }
        }
        out
    }

    fn plan_exporter(
        &self,
        pipeline: &PipelineId,
        wiring: &model::PipelineConfig,
        id: &ComponentId,
        settings: &model::ExporterConfig,
    ) -> Result<ExporterPlan, BuildError> {
        let auth_id = settings.auth_extension_ids().into_iter().next();
        let identity = ComponentIdentity {
            settings: settings.clone(),
            fingerprint: fingerprint::combined_fingerprint(&settings.files()),
            extensions: auth_id.and_then(|id| self.extension_identity(id)).into_iter().collect(),
        };
        let old = self.running.pipelines.get(pipeline).filter(|old| old.is_same_pipeline(wiring));
        let old = old.and_then(|old| old.exporters.iter().find(|(known, _)| known == id));
        if old.is_some_and(|(_, old)| *old == identity) {
            return Ok(ExporterPlan::Keep);
        }
        let auth = auth_id.map(|id| self.client_auth(id)).transpose()?;
        let built = (self.environment.tables.exporter)(settings, &ExporterContext { id, pipeline, auth })?;
        Ok(ExporterPlan::Set(Box::new((built, identity))))
    }

    fn plan_connectors(&mut self) -> BTreeMap<ConnectorKey, ConnectorPlan> {
        let mut out = BTreeMap::new();
        for (pipeline, wiring) in &self.document.service.pipelines {
            for id in &wiring.exporters {
                let Some(settings) = self.document.connectors.get(id) else { continue };
                let key = (id.clone(), pipeline.signal);
                if out.contains_key(&key) {
                    continue;
                }
                match self.plan_connector(&key, settings) {
                    Ok(plan) => drop(out.insert(key, plan)),
                    Err(error) => push_error(&mut self.errors, "connectors", id, error),
                }
            }
        }
        out
    }

    fn plan_connector(
        &self,
        key: &ConnectorKey,
        settings: &model::ConnectorConfig,
    ) -> Result<ConnectorPlan, BuildError> {
        let identity = ComponentIdentity {
            settings: settings.clone(),
            fingerprint: fingerprint::combined_fingerprint(&settings.files()),
            extensions: Vec::new(),
        };
        if self.running.connectors.get(key).is_some_and(|old| *old == identity) {
            return Ok(ConnectorPlan::Keep);
        }
        let (id, input) = key;
        let prepared = (self.environment.tables.connector)(settings, &ConnectorContext { id, input: *input })?;
        Ok(ConnectorPlan::Set(Box::new((prepared, identity))))
    }

    fn plan_receivers(&mut self) -> BTreeMap<ComponentId, ReceiverPlan> {
        let mut out = BTreeMap::new();
        let used = self.document.service.pipelines.values().flat_map(|p| &p.receivers);
        let used: BTreeSet<_> = used.collect();
        for id in used {
            let Some(settings) = self.document.receivers.get(id) else { continue };
            match self.plan_receiver(id, settings) {
                Ok(plan) => drop(out.insert(id.clone(), plan)),
                Err(error) => push_error(&mut self.errors, "receivers", id, error),
            }
        }
        out
    }

    fn plan_receiver(&self, id: &ComponentId, settings: &model::ReceiverConfig) -> Result<ReceiverPlan, BuildError> {
        let identity = ComponentIdentity {
            settings: settings.clone(),
            fingerprint: fingerprint::combined_fingerprint(&settings.files()),
            extensions: {
                let used = settings.auth_extension_ids().into_iter().chain(settings.storage_extension_id());
                used.filter_map(|id| self.extension_identity(id)).collect()
            },
        };
        let old = self.running.receivers.get(id);
        if let Some(old) = old.filter(|old| old.identity == identity) {
            let mut listeners = old.node.listeners().into_iter();
            listeners.try_for_each(|(_, address)| self.environment.claims.claim(address))?;
            return Ok(ReceiverPlan::Keep);
        }
        let storage = settings.storage_extension_id().map(|id| self.storage_directory(id)).transpose()?;
        let context = ReceiverContext {
            id,
            auth: &|id| self.server_auth(id),
            claims: &self.environment.claims,
            previous: old.map(|old| &*old.node),
            state_root: storage.as_deref().or(self.environment.state_root.as_deref()),
        };
        let prepared = (self.environment.tables.receiver)(settings, &context)?;
        Ok(ReceiverPlan::Set(Box::new((prepared, identity))))
    }

    fn plan_processors(&mut self) -> PlannedProcessors {
        let mut out = PlannedProcessors::default();
        for (pipeline, wiring) in &self.document.service.pipelines {
            for id in &wiring.processors {
                let Some(settings) = self.document.processors.get(id) else { continue };
                match self.plan_processor(pipeline, wiring, id, settings) {
                    Ok(plan) => out.add(pipeline, id, settings, plan),
                    Err(error) => push_error(&mut self.errors, "processors", id, error),
                }
            }
        }
        out
    }

    /// `None` if the running processor has these settings already.
    fn plan_processor(
        &self,
        pipeline: &PipelineId,
        wiring: &model::PipelineConfig,
        id: &ComponentId,
        settings: &model::ProcessorConfig,
    ) -> Result<Option<PreparedProcessor>, BuildError> {
        let old = self.running.pipelines.get(pipeline).filter(|old| old.is_same_pipeline(wiring));
        let old = old.and_then(|old| old.processors.iter().find(|(known, _)| known == id));
        if old.is_some_and(|(_, old)| old == settings) {
            return Ok(None);
        }
        (self.environment.tables.processor)(settings, &ProcessorContext { id, signal: pipeline.signal }).map(Some)
    }

    fn extension_identity(&self, id: &ComponentId) -> Option<(ExtensionConfig, u64)> {
        self.auth.get(id).map(|auth| (auth.identity.settings.clone(), auth.identity.fingerprint))
    }

    fn storage_directory(&self, id: &ComponentId) -> Result<PathBuf, BuildError> {
        let found = self.auth.get(id).and_then(|entry| entry.state_directory.clone());
        found.ok_or_else(|| BuildError(format!("there is no running extension {id} that keeps state")))
    }

    fn client_auth(&self, id: &ComponentId) -> Result<Arc<dyn ClientAuth>, BuildError> {
        self.find_auth(id, |auth| auth.client.clone())
    }

    fn server_auth(&self, id: &ComponentId) -> Result<Arc<dyn ServerAuth>, BuildError> {
        self.find_auth(id, |auth| auth.server.clone())
    }

    fn find_auth<T>(&self, id: &ComponentId, side: impl Fn(&AuthProviders) -> Option<T>) -> Result<T, BuildError> {
        let found = self.auth.get(id).and_then(|entry| side(&entry.auth));
        found.ok_or_else(|| {
            BuildError(format!("there is no running authenticator {id} for this side of the connection"))
        })
    }
}
