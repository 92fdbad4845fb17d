//! The pipelines of all kinds, as their watches show them. Read-only.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::Arc,
};

use futures_util::future;
use k8s_openapi::{ClusterResourceScope, api::core::v1::ObjectReference};
use kube::{Resource, ResourceExt as _, core::object::HasStatus, runtime::reflector::Store};
use kubewake_api::{
    Signal, TelemetryPipeline,
    v1alpha1::{LogPipeline, MetricPipeline, PipelineStatus, TracePipeline},
};
use serde::{Serialize, de::DeserializeOwned};

use super::source_watcher::ReferencedSource;
use crate::model::pipeline_key::PipelineKey;

/// A kind of pipeline resource.
pub trait PipelineKind:
    Resource<DynamicType = (), Scope = ClusterResourceScope>
    + HasStatus<Status = PipelineStatus>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Converts to a pipeline of any kind.
    fn pipeline(&self) -> TelemetryPipeline;
}

impl<K> PipelineKind for K
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + HasStatus<Status = PipelineStatus>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    for<'a> TelemetryPipeline: From<&'a K>,
{
    fn pipeline(&self) -> TelemetryPipeline {
        TelemetryPipeline::from(self)
    }
}

#[derive(Clone)]
pub struct PipelineStores {
    pub traces: Store<TracePipeline>,
    pub logs: Store<LogPipeline>,
    pub metrics: Store<MetricPipeline>,
}

impl PipelineStores {
    /// Waits until all kinds have been listed. For a single caller: a store of kube wakes only the last of several.
    pub async fn wait_listed(&self) {
        // A watch that ends before it listed anything ends with the operator.
        let _ = future::join3(
            self.traces.wait_until_ready(),
            self.logs.wait_until_ready(),
            self.metrics.wait_until_ready(),
        )
        .await;
    }

    /// The uids of all pipelines that are not being deleted.
    pub fn live_uids(&self) -> BTreeMap<PipelineKey, String> {
        let mut uids = live_uids_of(Signal::Traces, &self.traces.state());
        uids.extend(live_uids_of(Signal::Logs, &self.logs.state()));
        uids.extend(live_uids_of(Signal::Metrics, &self.metrics.state()));
        uids
    }

    /// Whether there is a pipeline that is not being deleted.
    pub fn has_live(&self) -> bool {
        !self.live_uids().is_empty()
    }

    /// The uids of all pipelines, also of those that are being deleted.
    pub fn all_uids(&self) -> BTreeSet<String> {
        let mut uids: BTreeSet<String> = self.traces.state().iter().filter_map(|object| object.uid()).collect();
        uids.extend(self.logs.state().iter().filter_map(|object| object.uid()));
        uids.extend(self.metrics.state().iter().filter_map(|object| object.uid()));
        uids
    }

    /// References to all pipelines, for events.
    pub fn object_references(&self) -> Vec<ObjectReference> {
        let mut references: Vec<_> = self.traces.state().iter().map(|object| object.object_ref(&())).collect();
        references.extend(self.logs.state().iter().map(|object| object.object_ref(&())));
        references.extend(self.metrics.state().iter().map(|object| object.object_ref(&())));
        references
    }

    /// All objects that pipelines reference, also pipelines that were not reconciled yet: the watch of such an
    /// object must not end.
    pub fn referenced_sources(&self) -> BTreeSet<ReferencedSource> {
        let mut sources = sources_referenced_by(&self.traces.state());
        sources.extend(sources_referenced_by(&self.logs.state()));
        sources.extend(sources_referenced_by(&self.metrics.state()));
        sources
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
