//! Reconciles the collectors on the nodes, which have a namespace of their own.
//!
//! *Guaranteed*: a failure concerns only the pipelines that read logs of containers; all others are unaffected,
//! also in a cluster that lacks the agents' namespace or the operator's rights in it. The Secret of the agents
//! holds only values of pipelines that read logs. With the last of these the garbage collector removes the
//! namespace's anchor and with it everything else, whether an operator runs or not. *Assumed*: the namespace is
//! part of the manifests; the operator does not create it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kubewake_api::{CollectorConfigs, RenderedDocument, Signal};
use tokio::time::Instant;

use super::{
    CollectorReconciler, LayerFailure, OBSOLETE_RETENTION, anchor_owners,
    build::{self, BuildContext},
    error::LayerError,
    kubelet_nudge, orphans,
};
use crate::{
    feedback::delivery_health::DocumentAgreement,
    model::{
        names::{self, CollectorTier, ManagedPart},
        object_kind::ObjectKind,
        pipeline_key::PipelineKey,
    },
    objects::{apply::DesiredObject, find_object},
    pipeline::pipeline_cache::PipelineState,
};

/// What every failure of the agents ends with: it is most likely an installation of an older version.
const INSTALLATION_HELP: &str = "the manifests of this version contain the namespace of the agents and the operator's Role in it: see whether they are applied";

/// The state of the agents' namespace that a run reads before the locks.
pub(super) struct AgentInputs {
    document: Option<ConfigMap>,
    has_anchor: bool,
}

/// The pipelines of a run.
pub(super) type PipelineStates = BTreeMap<PipelineKey, Arc<PipelineState>>;

impl CollectorReconciler {
    /// Reads the agents' document and anchor; nothing if the cluster has neither agents nor LogPipelines.
    pub(super) async fn read_agents(&self) -> Result<AgentInputs, LayerError> {
        let has_pipelines = self.view.pipelines.live_uids().keys().any(|id| id.signal == Signal::Logs);
        if !has_pipelines && self.view.agent_objects.keys(ManagedPart::Layer).is_empty() {
            return Ok(AgentInputs { document: None, has_anchor: false });
        }
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), &self.options.agent_namespace);
        let find = async |name| find_object(&api, name).await.map_err(|error| LayerError::Read(Box::new(error)));
        let document = find(names::AGENT).await?;
        let anchor = find(names::LAYER_CONFIG_MAP).await?;
        Ok(AgentInputs { document, has_anchor: anchor.is_some() })
    }

    /// Reconciles the agents, and returns why that failed, if it did.
    pub(super) async fn reconcile_agents(
        &self,
        entries: &PipelineStates,
        holders: &PipelineStates,
        read: Result<AgentInputs, LayerError>,
        layer: &CollectorConfigs,
        written: &mut Option<Instant>,
    ) -> Option<LayerFailure> {
        let result = match &layer.agent {
            Some(document) => self.apply_agents(entries, holders, read, layer, document, written).await,
            None => self.sweep_agents(entries).await,
        };
        let failure = LayerFailure::from(&result.err()?);
        // Without a document there are no agents that anybody waits for.
        let help = if layer.agent.is_some() { format!("; {INSTALLATION_HELP}") } else { String::new() };
        Some(LayerFailure { message: format!("{}{help}", failure.message), ..failure })
    }

    async fn apply_agents(
        &self,
        entries: &PipelineStates,
        holders: &PipelineStates,
        read: Result<AgentInputs, LayerError>,
        layer: &CollectorConfigs,
        document: &RenderedDocument,
        written: &mut Option<Instant>,
    ) -> Result<(), LayerError> {
        let read = read?;
        if !self.view.agent_objects.is_synced() {
            return Err(LayerError::Unwatched(self.options.agent_namespace.clone()));
        }
        let owners = anchor_owners::select_owners(&reading(entries), &reading(holders));
        let anchor = build::anchor_object(&self.options.agent_namespace, &owners);
        let around = BuildContext {
            namespace: self.options.agent_namespace.clone(),
            anchor: self.ensure_anchor(&self.agent_applier, &anchor, read.has_anchor).await?,
            anchor_owners: owners,
            settings: self.view.settings.current(),
            image: self.options.image.clone(),
        };
        self.apply(build::agent_rights(&around), 0).await?;
        let (accounts, others) = build::agent_objects(&around).into_iter().partition(|it| it.kind.is_rbac());
        let mut wanted = self.apply_in_agent_namespace(accounts).await?;
        wanted.insert((ObjectKind::ConfigMap, names::LAYER_CONFIG_MAP.to_owned()));

        let live = self.view.agent_objects.get(ObjectKind::Secret, names::AGENT);
        let live: Option<Secret> = live.and_then(|live| serde_json::from_value((*live).clone()).ok());
        let is_read = self.agreement(CollectorTier::Agent, document) == DocumentAgreement::All;
        let stay = written.is_none_or(|written| written.elapsed() < OBSOLETE_RETENTION) && !is_read;
        let staying = build::retained_values(live.as_ref(), read.document.iter(), stay);
        let secret = build::values_secret(&around, names::AGENT, &layer.agent_secrets, &staying);
        wanted.extend(self.apply_in_agent_namespace(vec![secret]).await?);

        let map = build::document_config_map(&around, names::AGENT, document);
        let changed = self.agent_applier.replace(read.document.as_ref(), &map).await?;
        self.count_write(ObjectKind::ConfigMap, changed);
        if changed || written.is_none() {
            *written = Some(Instant::now());
        }
        wanted.insert((map.kind, map.name));
        wanted.extend(self.apply_in_agent_namespace(others).await?);
        self.sweep_agents_beside(&wanted).await?;
        kubelet_nudge::annotate_pods(&self.client, &self.options.agent_namespace, &self.view.pods, layer).await;
        Ok(())
    }

    async fn apply_in_agent_namespace(
        &self,
        objects: Vec<DesiredObject>,
    ) -> Result<BTreeSet<(ObjectKind, String)>, LayerError> {
        let mut applied = BTreeSet::new();
        for desired in objects {
            // A kind that the cluster lacks is skipped.
            if self.view.agent_objects.has_listed(desired.kind) {
                self.record_write(desired.kind, self.agent_applier.apply(&desired).await)?;
            }
            applied.insert((desired.kind, desired.name));
        }
        Ok(applied)
    }

    /// Removes the agents, as no pipeline needs them. If one that no watch event has shown yet may need them they stay.
    async fn sweep_agents(&self, entries: &PipelineStates) -> Result<(), LayerError> {
        if self.view.agent_objects.keys(ManagedPart::Layer).is_empty() {
            return Ok(());
        }
        let unseen = async || {
            let found = orphans::has_unwatched_pipeline(&self.client, &self.view.pipelines).await;
            found.map_err(|error| LayerError::List(Box::new(error)))
        };
        if reading(entries).is_empty() && unseen().await? {
            return Ok(());
        }
        self.sweep_agents_beside(&BTreeSet::new()).await
    }

    /// Deletes all objects of the agents' namespace that are not in `wanted`.
    pub(super) async fn sweep_agents_beside(&self, wanted: &BTreeSet<(ObjectKind, String)>) -> Result<(), LayerError> {
        for (kind, name) in self.view.agent_objects.keys(ManagedPart::Layer) {
            if !wanted.contains(&(kind, name.clone())) {
                self.record_write(kind, self.agent_applier.delete(kind, &name).await)?;
            }
        }
        Ok(())
    }
}

/// The cluster-scoped objects that a layer needs for its agents.
pub(super) fn needed_rights(layer: &CollectorConfigs) -> impl Iterator<Item = (ObjectKind, String)> {
    let kinds = [ObjectKind::ClusterRole, ObjectKind::ClusterRoleBinding];
    kinds.into_iter().filter(|_| layer.agent.is_some()).map(|kind| (kind, names::AGENT.to_owned()))
}

/// The pipelines that read logs of containers.
fn reading(entries: &PipelineStates) -> PipelineStates {
    let reads = |entry: &PipelineState| entry.valid.as_ref().is_some_and(|valid| valid.reads_logs());
    entries.iter().filter(|(_, entry)| reads(entry)).map(|(id, entry)| (id.clone(), Arc::clone(entry))).collect()
}
