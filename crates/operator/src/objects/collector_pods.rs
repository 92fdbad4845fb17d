//! The pods of collectors, as their watch shows them. Read-only.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt as _, runtime::reflector::Store};

use crate::model::names::{self, CollectorTier};

/// The pods of the operator's namespace, and those of the agents' namespace.
#[derive(Clone)]
pub struct CollectorPods {
    system: Store<Pod>,
    agents: Store<Pod>,
}

impl CollectorPods {
    pub fn new(system: Store<Pod>, agents: Store<Pod>) -> Self {
        Self { system, agents }
    }

    /// Waits until the pods have been listed. For a single caller: a store of kube wakes only the last of several.
    pub async fn wait_listed(&self) {
        // A watch that ends before it listed anything ends with the operator.
        let _ = self.system.wait_until_ready().await;
        let _ = self.agents.wait_until_ready().await;
    }

    /// The pods of all tiers. A pod counts only in the namespace of its tier.
    pub fn all(&self) -> Vec<Arc<Pod>> {
        let is_agent = |pod: &Arc<Pod>| tier_of(pod) == Some(CollectorTier::Agent);
        let system = self.system.state().into_iter().filter(|pod| !is_agent(pod));
        system.chain(self.agents.state().into_iter().filter(is_agent)).collect()
    }

    /// The pods of a tier that are pending, running or being deleted. A pod that has ended runs no collector.
    pub fn of_tier(&self, tier: CollectorTier) -> Vec<Arc<Pod>> {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
        let has_ended = |pod: &Pod| matches!(phase(pod).as_deref(), Some("Succeeded" | "Failed"));
        self.all().into_iter().filter(|pod| tier_of(pod) == Some(tier) && !has_ended(pod)).collect()
    }
}

/// The tier that a pod belongs to by its label.
pub fn tier_of(pod: &Pod) -> Option<CollectorTier> {
    CollectorTier::from_name(pod.labels().get(names::NAME_LABEL)?)
}
