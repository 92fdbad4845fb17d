//! The first phase of a change: everything that can fail, without visible effects.

use std::{collections::BTreeMap, sync::Arc};

use kubewake_config::{
    CollectorDocument, ComponentId, PipelineId,
    model::{self, ExtensionConfig},
};

use super::{
    ApplyError, fingerprint,
    running_graph::{ComponentIdentity, RunningExtension, RunningGraph},
};
use crate::{
    components::{self, AuthProviders, BuildError, PreparedExporter, PreparedReceiver, ProcessorRole},
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
    pub(super) processors: BTreeMap<ComponentId, model::ProcessorConfig>,
    pub(super) pipelines: BTreeMap<PipelineId, model::PipelineConfig>,
    pub(super) exporters: BTreeMap<(PipelineId, ComponentId), ExporterPlan>,
    pub(super) receivers: BTreeMap<ComponentId, ReceiverPlan>,
}

/// Builds and binds what `document` needs beyond the running graph.
pub(super) fn plan_graph(
    running: &RunningGraph,
    document: &CollectorDocument,
    claims: &AddressClaims,
) -> Result<GraphPlan, Vec<ApplyError>> {
    let mut errors = Vec::new();
    let auth = plan_auth(running, document, &mut errors);
    let mut planner = GraphPlanner { running, document, auth: &auth, claims, errors };
    let outlets = planner.plan_exporters();
    let budgets = planner.check_processors();
    let receivers = planner.plan_receivers();
    refuse_connectors(document, &mut planner.errors);
    if !planner.errors.is_empty() {
        return Err(planner.errors);
    }
    Ok(GraphPlan {
        auth,
        budgets,
        processors: document.processors.clone(),
        pipelines: document.service.pipelines.clone(),
        exporters: outlets,
        receivers,
    })
}

fn push_error(errors: &mut Vec<ApplyError>, section: &str, id: &ComponentId, error: BuildError) {
    let error = ApplyError { path: format!("{section}::{id}"), message: error.0 };
    // A component is built for each pipeline and fails in each; report it once.
    if !errors.contains(&error) {
        errors.push(error);
    }
}

/// Refuses connectors, which documents may have and this engine cannot run.
fn refuse_connectors(document: &CollectorDocument, errors: &mut Vec<ApplyError>) {
    for id in document.connectors.keys() {
        push_error(errors, "connectors", id, BuildError("connectors are not supported by this build".to_owned()));
    }
}

fn plan_auth(
    running: &RunningGraph,
    document: &CollectorDocument,
    errors: &mut Vec<ApplyError>,
) -> BTreeMap<ComponentId, RunningExtension> {
    let mut out = BTreeMap::new();
    for id in &document.service.extensions {
        let Some(settings) = document.extensions.get(id) else { continue };
        let print = fingerprint::combined_fingerprint(&settings.files());
        let identity = ComponentIdentity { settings: settings.clone(), fingerprint: print, auth: Vec::new() };
        let kept = running.auth.get(id).filter(|old| old.identity == identity);
        let auth = match kept {
            Some(old) => Ok(old.auth.clone()),
            None => components::build_auth(settings),
        };
        match auth {
            Ok(auth) => drop(out.insert(id.clone(), RunningExtension { identity, auth })),
            Err(error) => push_error(errors, "extensions", id, error),
        }
    }
    out
}

struct GraphPlanner<'a> {
    running: &'a RunningGraph,
    document: &'a CollectorDocument,
    auth: &'a BTreeMap<ComponentId, RunningExtension>,
    claims: &'a AddressClaims,
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
            auth: auth_id.and_then(|id| self.auth_identity(id)).into_iter().collect(),
        };
        let old = self.running.pipelines.get(pipeline).filter(|old| old.is_same_pipeline(wiring));
        let old = old.and_then(|old| old.exporters.iter().find(|o| o.id == *id));
        if old.is_some_and(|old| old.identity == identity) {
            return Ok(ExporterPlan::Keep);
        }
        let auth = auth_id.map(|id| self.client_auth(id)).transpose()?;
        let built = components::prepare_exporter(settings, pipeline.signal, auth)?;
        Ok(ExporterPlan::Set(Box::new((built, identity))))
    }

    fn plan_receivers(&mut self) -> BTreeMap<ComponentId, ReceiverPlan> {
        let mut out = BTreeMap::new();
        let used = self.document.service.pipelines.values().flat_map(|p| &p.receivers);
        let used: std::collections::BTreeSet<_> = used.collect();
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
            auth: settings.auth_extension_ids().into_iter().filter_map(|id| self.auth_identity(id)).collect(),
        };
        let old = self.running.receivers.get(id);
        if let Some(old) = old.filter(|old| old.identity == identity) {
            old.node.addresses().iter().try_for_each(|(_, address)| self.claims.claim(*address))?;
            return Ok(ReceiverPlan::Keep);
        }
        let find = |id: &ComponentId| self.server_auth(id);
        let prepared = components::prepare_receiver(settings, old.map(|o| &o.node), &find, self.claims)?;
        Ok(ReceiverPlan::Set(Box::new((prepared, identity))))
    }

    /// The budgets of the limiters in use. Also reports processors that this build lacks.
    fn check_processors(&mut self) -> BTreeMap<ComponentId, (u64, u64)> {
        let mut out = BTreeMap::new();
        for id in self.document.service.pipelines.values().flat_map(|p| &p.processors) {
            let Some(settings) = self.document.processors.get(id) else { continue };
            if let Err(error) = components::check_processor(settings) {
                push_error(&mut self.errors, "processors", id, error);
            }
            if let ProcessorRole::MemoryBudget(limit, spike) = components::processor_role(settings) {
                out.insert(id.clone(), (limit, spike));
            }
        }
        out
    }

    fn auth_identity(&self, id: &ComponentId) -> Option<(ExtensionConfig, u64)> {
        self.auth.get(id).map(|auth| (auth.identity.settings.clone(), auth.identity.fingerprint))
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
