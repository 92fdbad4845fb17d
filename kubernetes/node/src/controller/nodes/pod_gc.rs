//! Garbage collection of pods whose node was deleted: no kubelet would ever report their end.
//!
//! *Guaranteed*: a pod is removed only if its node has been missing for the whole quarantine and the API server
//! confirms it: a node that registers late loses nothing.

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
    controller::{FIELD_MANAGER, pods},
    error::{ClusterError, Result},
    informer::SharedInformer,
    informers::InformerSet,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

const CONTROLLER_NAME: &str = "pod-garbage-collector";
const MAX_CONCURRENT_RECONCILES: usize = 2;
/// kube-controller-manager's waiting time for a node to come (back).
pub const ORPHAN_QUARANTINE: Duration = Duration::from_secs(40);

pub fn start(client: &Client, views: &InformerSet, quarantine: Duration, tasks: &mut JoinSet<()>) {
    let collector = Arc::new(PodGarbageCollector { client: client.clone(), informers: views.clone() });
    let queue = WorkQueue::default();
    listen(views, &queue, quarantine);
    tasks.spawn(queue.run_workers(CONTROLLER_NAME, MAX_CONCURRENT_RECONCILES, move |node| {
        let collector = Arc::clone(&collector);
        async move { collector.collect(&node).await }
    }));
}

/// The keys are those of nodes, due when their quarantine ends.
fn listen(views: &InformerSet, queue: &WorkQueue<NamespacedKey>, quarantine: Duration) {
    let to = queue.clone();
    views.nodes.on_change(move |change| {
        if let (Some(node), None) = (&change.old, &change.new) {
            to.add_after(NamespacedKey::from_object(&**node), quarantine);
        }
    });
    let to = queue.clone();
    let nodes = Arc::clone(&views.nodes);
    views.pods.on_change(move |change| {
        let node = change.new.as_ref().and_then(|pod| bound_node(pod));
        if let Some(node) = node.filter(|node| is_node_missing(&nodes, node)) {
            to.add_after(node, quarantine);
        }
    });
}

struct PodGarbageCollector {
    client: Client,
    informers: InformerSet,
}

impl PodGarbageCollector {
    async fn collect(&self, node: &NamespacedKey) -> Result<RequeueAfter> {
        if !is_node_missing(&self.informers.nodes, node) {
            return Ok(None);
        }
        let nodes: Api<Node> = Api::all(self.client.clone());
        if nodes.get_opt(&node.name).await?.is_some() {
            return Ok(None);
        }
        for pod in self.informers.pods.all() {
            if bound_node(&pod).as_ref() == Some(node) {
                self.remove(&pod).await?;
            }
        }
        Ok(None)
    }

    async fn remove(&self, pod: &Pod) -> Result<()> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let removed = async {
            if !matches!(pods::phase(pod), "Succeeded" | "Failed") {
                let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
                pods.patch_status(&pod.name_any(), &params, &Patch::Strategic(failed_status(pod))).await?;
            }
            let at_once = DeleteParams {
                grace_period_seconds: Some(0),
                preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
                ..DeleteParams::default()
            };
            pods.delete(&pod.name_any(), &at_once).await?;
            Ok::<_, ClusterError>(())
        };
        match removed.await {
            // The pod was deleted, or created again, in the meantime.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            removed => removed,
        }
    }
}

/// The status of a pod that failed because its node was deleted.
fn failed_status(pod: &Pod) -> serde_json::Value {
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

/// The node that a pod is bound to.
pub(super) fn bound_node(pod: &Pod) -> Option<NamespacedKey> {
    let name = pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())?;
    Some(NamespacedKey::new("", name))
}

fn is_node_missing(nodes: &SharedInformer<Node>, node: &NamespacedKey) -> bool {
    nodes.get(node).is_none()
}

#[cfg(test)]
mod tests;
