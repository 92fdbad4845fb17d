//! Everything that the operator watches, for readers.
//!
//! *Guaranteed*: nobody changes the cluster or a cache through this. The watches that fill the caches run in
//! `process`; an `ObjectCacheWriter`, a `SettingsWriter` and a `PipelineCacheWriter` are the rights to change them.

use std::{sync::Arc, time::Duration};

use kube::runtime::reflector::Store;
use kubewake_api::v1alpha1::Telemetry;
use tokio::{sync::watch, time::timeout};

use super::{
    pipeline_stores::PipelineStores,
    settings::{SettingsCache, default_telemetry},
};
use crate::objects::{collector_pods::CollectorPods, object_cache::ObjectCache};

/// How long the first run waits for the objects of the agents' namespace.
const AGENT_LIST_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct ClusterView {
    pub pipelines: PipelineStores,
    pub telemetries: Store<Telemetry>,
    /// The settings of the Telemetry, as far as they are valid.
    pub settings: SettingsCache,
    pub objects: Arc<ObjectCache>,
    /// The objects of the agents' namespace.
    pub agent_objects: Arc<ObjectCache>,
    pub pods: CollectorPods,
    /// Whether all watches have listed their objects.
    pub synced: watch::Receiver<bool>,
}

impl ClusterView {
    /// The Telemetry `default`, if it exists.
    pub fn telemetry(&self) -> Option<Arc<Telemetry>> {
        default_telemetry(&self.telemetries)
    }

    /// Waits until all watches have listed their objects. For a single caller, who then sets `synced` for all others.
    pub async fn wait_listed(&self) {
        self.pipelines.wait_listed().await;
        // A watch that ends before it listed anything ends with the operator.
        let _ = self.telemetries.wait_until_ready().await;
        self.pods.wait_listed().await;
        self.objects.wait_synced().await;
        // In a cluster without the operator's rights there it is never synced.
        let _ = timeout(AGENT_LIST_TIMEOUT, self.agent_objects.wait_synced()).await;
    }

    /// Waits until all watches have listed their objects, pods of collectors included.
    pub async fn wait_synced(&self) {
        // The sender lives as long as the operator leads.
        let _ = self.synced.clone().wait_for(|synced| *synced).await;
    }
}
