//! Taints that say what a node's conditions say, so that schedulers need to know only taints.
//!
//! A node comes with the taint `not-ready`, which the API server gives it: no pod is bound to it before it says that it is ready.

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{
    controller::{Context, Controller, MANAGER},
    error::Result,
    key::Key,
    queue::{Again, Queue},
};

const EFFECT: &str = "NoSchedule";
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that are bad when they hold.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
];

/// The controller.
#[derive(Debug)]
pub struct Taints(Context);

impl Controller for Taints {
    const NAME: &'static str = "node-controller";

    fn new(context: Context) -> Self {
        Self(context)
    }

    fn listen(&self, queue: &Queue<Key>) {
        let to = queue.clone();
        self.0.views.nodes.on_change(move |change| {
            if let Some(node) = &change.new {
                to.add(Key::of(&**node));
            }
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        let Some(node) = self.0.views.nodes.get(&key) else { return Ok(None) };
        if let Some(taints) = changed(&node) {
            // Nobody's taints get lost: who was faster wins, and this is tried again.
            let patch =
                json!({ "metadata": { "resourceVersion": node.resource_version() }, "spec": { "taints": taints } });
            let nodes: Api<Node> = Api::all(self.0.client.clone());
            let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let written = nodes.patch(&key.name, &params, &Patch::Merge(patch)).await?;
            self.0.views.nodes.note(written);
        }
        Ok(None)
    }
}

/// The taints that the node should have, if they are not those that it has.
fn changed(node: &Node) -> Option<Vec<Taint>> {
    let held = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    let wanted = wanted(node);
    let mut taints = held.clone();
    taints.retain(|taint| taint.effect != EFFECT || !is_ours(&taint.key) || wanted.contains(&taint.key.as_str()));
    for key in wanted {
        if !taints.iter().any(|taint| taint.key == key && taint.effect == EFFECT) {
            taints.push(Taint { key: key.to_owned(), effect: EFFECT.to_owned(), ..Taint::default() });
        }
    }
    (taints != held).then_some(taints)
}

fn wanted(node: &Node) -> Vec<&'static str> {
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

fn is_ours(key: &str) -> bool {
    [NOT_READY, UNREACHABLE, UNSCHEDULABLE].contains(&key) || PRESSURES.iter().any(|(_, ours)| *ours == key)
}

#[cfg(test)]
mod tests;
