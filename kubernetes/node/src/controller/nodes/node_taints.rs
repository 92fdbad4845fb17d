//! Taints that mirror the conditions of a node, so that schedulers need to know only taints.
//!
//! The API server gives a new node the taint `not-ready`: no pod is bound to it before it is ready.

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    controller::{ControllerContext, FIELD_MANAGER, ResourceController},
    error::Result,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

const NO_SCHEDULE: &str = "NoSchedule";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that are bad when they are true.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

#[derive(Debug)]
pub struct NodeTaintController(ControllerContext);

impl ResourceController for NodeTaintController {
    const NAME: &'static str = "node-controller";

    fn new(context: ControllerContext) -> Self {
        Self(context)
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let to = queue.clone();
        self.0.informers.nodes.on_change(move |change| {
            if let Some(node) = &change.new {
                to.add(NamespacedKey::from_object(&**node));
            }
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let Some(node) = self.0.informers.nodes.get(&key) else { return Ok(None) };
        if let Some(taints) = updated_taints(&node) {
            // With the resource version, so that no other writer's taint is lost; a conflict is retried.
            let patch =
                json!({ "metadata": { "resourceVersion": node.resource_version() }, "spec": { "taints": taints } });
            let nodes: Api<Node> = Api::all(self.0.client.clone());
            let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            let written = nodes.patch(&key.name, &params, &Patch::Merge(patch)).await?;
            self.0.informers.nodes.record_write(written);
        }
        Ok(None)
    }
}

/// The desired taints of the node, if they differ from the existing ones.
fn updated_taints(node: &Node) -> Option<Vec<Taint>> {
    let held = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let wanted = desired_taints(node);
    let mut taints = held.clone();
    taints.retain(|taint| {
        taint.effect != NO_SCHEDULE || !is_managed_taint(&taint.key) || wanted.contains(&taint.key.as_str())
    });
    for key in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == NO_SCHEDULE) {
            taints.push(Taint { key: key.to_owned(), effect: NO_SCHEDULE.to_owned(), ..Taint::default() });
        }
    }
    (taints != held).then_some(taints)
}

fn desired_taints(node: &Node) -> Vec<&'static str> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let status = |kind: &str| conditions.iter().find(|one| one.type_ == kind).map(|one| one.status.as_str());
    let mut wanted = match status("Ready") {
        Some("True") => vec![],
        Some("Unknown") => vec![UNREACHABLE],
        _ => vec![NOT_READY],
    };
    wanted.extend(PRESSURES.iter().filter(|(kind, _)| status(kind) == Some("True")).map(|(_, key)| *key));
    if node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true)) {
        wanted.push(UNSCHEDULABLE);
    }
    wanted
}

fn is_managed_taint(key: &str) -> bool {
    [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key) || PRESSURES.iter().any(|(_, ours)| *ours == key)
}

#[cfg(test)]
mod tests;
