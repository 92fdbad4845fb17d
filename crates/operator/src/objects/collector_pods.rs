//! The pods of collectors, as their watch shows them. Read-only.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt as _, runtime::reflector::Store};

use crate::model::names::{self, CollectorTier};

#[derive(Clone)]
pub struct CollectorPods(Store<Pod>);

impl CollectorPods {
    pub fn new(pods: Store<Pod>) -> Self {
        Self(pods)
    }

    /// Waits until the pods have been listed. For a single caller: a store of kube wakes only the last of several.
    pub async fn wait_listed(&self) {
        // A watch that ends before it listed anything ends with the operator.
        let _ = self.0.wait_until_ready().await;
    }

    pub fn all(&self) -> Vec<Arc<Pod>> {
        self.0.state()
    }

    /// The pods of a tier that are pending, running or being deleted. A pod that has ended runs no collector.
    pub fn of_tier(&self, tier: CollectorTier) -> Vec<Arc<Pod>> {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let has_ended = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
        let is_of = |pod: &Pod| pod.labels().get(names::NAME_LABEL).map(String::as_str) == Some(tier.name());
        self.0.state().into_iter().filter(|pod| is_of(pod) && !has_ended(pod)).collect()
    }
}
