//! Pods whose node is gone: nobody else would ever say that they ended.
//!
//! *Guarantees.* A pod is removed only if its node has been missing for the whole quarantine and the API server says so itself: a node
//! that registers late loses nothing.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    controller::{MANAGER, pods},
    error::{Error, Result},
    key::Key,
    queue::{Again, Queue},
    view::View,
    views::Views,
};

/// For logs.
const NAME: &str = "pod-garbage-collector";
/// Nodes at once.
const AT_ONCE: usize = 2;
/// How long kube-controller-manager waits for a node to come (back).
pub const QUARANTINE: Duration = Duration::from_secs(40);

/// Starts the collector.
pub fn start(client: &Client, views: &Views, quarantine: Duration, tasks: &mut JoinSet<()>) {
    let collector = Arc::new(Collector { client: client.clone(), views: views.clone() });
    let queue = Queue::default();
    listen(views, &queue, quarantine);
    tasks.spawn(queue.run(NAME, AT_ONCE, move |node| {
        let collector = Arc::clone(&collector);
        async move { collector.collect(&node).await }
    }));
}

/// Keys are those of nodes, and due when their quarantine ends.
fn listen(views: &Views, queue: &Queue<Key>, quarantine: Duration) {
    let to = queue.clone();
    views.nodes.on_change(move |change| {
        if let (Some(node), None) = (&change.old, &change.new) {
            to.add_after(Key::of(&**node), quarantine);
        }
    });
    let (to, nodes) = (queue.clone(), Arc::clone(&views.nodes));
    views.pods.on_change(move |change| {
        let node = change.new.as_ref().and_then(|pod| node_of(pod));
        if let Some(node) = node.filter(|node| is_missing(&nodes, node)) {
            to.add_after(node, quarantine);
        }
    });
}

struct Collector {
    client: Client,
    views: Views,
}

impl Collector {
    async fn collect(&self, node: &Key) -> Result<Again> {
        if !is_missing(&self.views.nodes, node) {
            return Ok(None);
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        if nodes.get_opt(&node.name).await?.is_some() {
            return Ok(None);
        }
        for pod in self.views.pods.all() {
            if node_of(&pod).as_ref() == Some(node) {
                self.remove(&pod).await?;
            }
        }
        Ok(None)
    }

    async fn remove(&self, pod: &Pod) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let removed = async {
            if !matches!(pods::phase(pod), "Succeeded" | "Failed") {
                let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
                pods.patch_status(&pod.name_any(), &params, &Patch::Strategic(failed(pod))).await?;
            }
            let at_once = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
                ..DeleteParams::default()
            };
            pods.delete(&pod.name_any(), &at_once).await?;
            Ok::<_, Error>(())
        };
        match removed.await {
            // It went by itself, or is another by now.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            removed => removed,
        }
    }
}

/// A pod that failed because its node is gone.
fn failed(pod: &Pod) -> serde_json::Value {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "PodGC: node no longer exists",
        "lastTransitionTime": Time(Timestamp::now()),
        "observedGeneration": pod.metadata.generation,
    });
    json!({ "metadata": { "uid": pod.uid() }, "status": { "phase": "Failed", "conditions": [condition] } })
}

/// The node that it is bound to.
pub(super) fn node_of(pod: &Pod) -> Option<Key> {
    let name = pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())?;
    Some(Key::new("", name))
}

fn is_missing(nodes: &View<Node>, node: &Key) -> bool {
    nodes.get(node).is_none()
}

#[cfg(test)]
mod tests;
