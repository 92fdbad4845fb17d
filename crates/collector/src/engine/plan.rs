//! The first phase of a change: everything that can fail, and nothing that shows.

use std::{collections::BTreeMap, sync::Arc};

use kubewake_config::{
    ComponentId, Document, PipelineId,
    model::{self, Extension},
};

use super::{
    ApplyError, print,
    running::{Identity, Running, RunningAuth},
};
use crate::{
    components::{self, Auth, BuildError, Built, PreparedReceiver, Role},
    extension::{ClientAuth, ServerAuth},
    net::sockets::Claims,
};

/// What is to happen to an exporter of a pipeline.
pub(super) enum OutletPlan {
    /// It stays as it is.
    Keep,
    /// It is new, or takes new settings.
    Set(Box<(Built, Identity<model::Exporter>)>),
}

/// What is to happen to a receiver.
pub(super) enum ReceiverPlan {
    /// It stays as it is.
    Keep,
    /// It is new, or takes new settings.
    Set(Box<(PreparedReceiver, Identity<model::Receiver>)>),
}

pub(super) struct Plan {
    pub(super) auth: BTreeMap<ComponentId, RunningAuth>,
    pub(super) budgets: BTreeMap<ComponentId, (u64, u64)>,
    pub(super) processors: BTreeMap<ComponentId, model::Processor>,
    pub(super) pipelines: BTreeMap<PipelineId, model::Pipeline>,
    pub(super) outlets: BTreeMap<(PipelineId, ComponentId), OutletPlan>,
    pub(super) receivers: BTreeMap<ComponentId, ReceiverPlan>,
}

/// Builds and binds what `document` needs beyond what runs.
pub(super) fn make(running: &Running, document: &Document, claims: &Claims) -> Result<Plan, Vec<ApplyError>> {
    let mut errors = Vec::new();
    let auth = plan_auth(running, document, &mut errors);
    let mut planner = Planner { running, document, auth: &auth, claims, errors };
    let outlets = planner.outlets();
    let budgets = planner.check_processors();
    let receivers = planner.receivers();
    if !planner.errors.is_empty() {
        return Err(planner.errors);
    }
    Ok(Plan {
        auth,
        budgets,
        processors: document.processors.clone(),
        pipelines: document.service.pipelines.clone(),
        outlets,
        receivers,
    })
}

fn report(errors: &mut Vec<ApplyError>, section: &str, id: &ComponentId, error: BuildError) {
    let error = ApplyError { path: format!("{section}::{id}"), message: error.0 };
    // A component is built for each pipeline, and fails in each; once is enough to hear it.
    if !errors.contains(&error) {
        errors.push(error);
    }
}

fn plan_auth(
    running: &Running,
    document: &Document,
    errors: &mut Vec<ApplyError>,
) -> BTreeMap<ComponentId, RunningAuth> {
    let mut out = BTreeMap::new();
    for id in &document.service.extensions {
        let Some(settings) = document.extensions.get(id) else { continue };
        let print = print::of(&components::extension_files(settings));
        let identity = Identity { settings: settings.clone(), print, auth: Vec::new() };
        let kept = running.auth.get(id).filter(|old| old.identity == identity);
        let auth = match kept {
            Some(old) => Ok(old.auth.clone()),
            None => components::build_auth(settings),
        };
        match auth {
            Ok(auth) => drop(out.insert(id.clone(), RunningAuth { identity, auth })),
            Err(error) => report(errors, "extensions", id, error),
        }
    }
    out
}

struct Planner<'a> {
    running: &'a Running,
    document: &'a Document,
    auth: &'a BTreeMap<ComponentId, RunningAuth>,
    claims: &'a Claims,
    errors: Vec<ApplyError>,
}

impl Planner<'_> {
    fn outlets(&mut self) -> BTreeMap<(PipelineId, ComponentId), OutletPlan> {
        let mut out = BTreeMap::new();
        for (pipeline, wiring) in &self.document.service.pipelines {
            for id in &wiring.exporters {
                let Some(settings) = self.document.exporters.get(id) else { continue };
                match self.outlet(pipeline, wiring, id, settings) {
                    Ok(plan) => drop(out.insert((pipeline.clone(), id.clone()), plan)),
                    Err(error) => report(&mut self.errors, "exporters", id, error),
                }
            }
        }
        out
    }

    fn outlet(
        &self,
        pipeline: &PipelineId,
        wiring: &model::Pipeline,
        id: &ComponentId,
        settings: &model::Exporter,
    ) -> Result<OutletPlan, BuildError> {
        let auth_id = components::exporter_auth(settings);
        let identity = Identity {
            settings: settings.clone(),
            print: print::of(&components::exporter_files(settings)),
            auth: auth_id.and_then(|id| self.auth_identity(id)).into_iter().collect(),
        };
        let old = self.running.pipelines.get(pipeline).filter(|old| old.is(wiring));
        let old = old.and_then(|old| old.outlets.iter().find(|o| o.id == *id));
        if old.is_some_and(|old| old.identity == identity) {
            return Ok(OutletPlan::Keep);
        }
        let auth = auth_id.map(|id| self.client_auth(id)).transpose()?;
        let built = components::build_exporter(settings, pipeline.signal, auth)?;
        Ok(OutletPlan::Set(Box::new((built, identity))))
    }

    fn receivers(&mut self) -> BTreeMap<ComponentId, ReceiverPlan> {
        let mut out = BTreeMap::new();
        let used = self.document.service.pipelines.values().flat_map(|p| &p.receivers);
        let used: std::collections::BTreeSet<_> = used.collect();
        for id in used {
            let Some(settings) = self.document.receivers.get(id) else { continue };
            match self.receiver(id, settings) {
                Ok(plan) => drop(out.insert(id.clone(), plan)),
                Err(error) => report(&mut self.errors, "receivers", id, error),
            }
        }
        out
    }

    fn receiver(&self, id: &ComponentId, settings: &model::Receiver) -> Result<ReceiverPlan, BuildError> {
        let identity = Identity {
            settings: settings.clone(),
            print: print::of(&components::receiver_files(settings)),
            auth: components::receiver_auth(settings).into_iter().filter_map(|id| self.auth_identity(id)).collect(),
        };
        let old = self.running.receivers.get(id);
        if let Some(old) = old.filter(|old| old.identity == identity) {
            old.receiver.addresses().iter().try_for_each(|(_, address)| self.claims.keep(*address))?;
            return Ok(ReceiverPlan::Keep);
        }
        let find = |id: &ComponentId| self.server_auth(id);
        let prepared = components::prepare_receiver(settings, old.map(|o| &o.receiver), &find, self.claims)?;
        Ok(ReceiverPlan::Set(Box::new((prepared, identity))))
    }

    /// The budgets of the limiters in use. A step that this build lacks is found here.
    fn check_processors(&mut self) -> BTreeMap<ComponentId, (u64, u64)> {
        let mut out = BTreeMap::new();
        for id in self.document.service.pipelines.values().flat_map(|p| &p.processors) {
            let Some(settings) = self.document.processors.get(id) else { continue };
            if let Err(error) = components::check_processor(settings) {
                report(&mut self.errors, "processors", id, error);
            }
            if let Role::Budget(limit, spike) = components::role(settings) {
                out.insert(id.clone(), (limit, spike));
            }
        }
        out
    }

    fn auth_identity(&self, id: &ComponentId) -> Option<(Extension, u64)> {
        self.auth.get(id).map(|auth| (auth.identity.settings.clone(), auth.identity.print))
    }

    fn client_auth(&self, id: &ComponentId) -> Result<Arc<dyn ClientAuth>, BuildError> {
        self.find(id, |auth| auth.client.clone())
    }

    fn server_auth(&self, id: &ComponentId) -> Result<Arc<dyn ServerAuth>, BuildError> {
        self.find(id, |auth| auth.server.clone())
    }

    fn find<T>(&self, id: &ComponentId, side: impl Fn(&Auth) -> Option<T>) -> Result<T, BuildError> {
        let found = self.auth.get(id).and_then(|entry| side(&entry.auth));
        found.ok_or_else(|| BuildError(format!("the authenticator {id} is not running, or not of this side")))
    }
}
