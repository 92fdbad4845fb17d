//! Eviction of pods from nodes with `NoExecute` taints.
//!
//! *Guaranteed*: a pod that does not tolerate such a taint is deleted, with its own grace period; a pod that
//! tolerates it for a time is deleted after this time. *Not done*: persistence of that time; after a restart it
//! begins anew, as with kube-controller-manager.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, Pod, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use kubewake_runtime::lock::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::pod_gc::bound_node;
use crate::{
    controller::{ControllerContext, FIELD_MANAGER, ResourceController, write_through},
    error::Result,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
    scheduler::node_eligibility,
};

/// The longest requeue delay: a toleration may last longer than a clock can represent.
const MAX_REQUEUE_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The controller. Its keys are those of nodes.
#[derive(Debug)]
pub struct TaintEvictionController {
    context: ControllerContext,
    /// For each node, the pods with a limited toleration, by uid, and since when it counts.
    tolerated_since: Mutex<HashMap<NamespacedKey, HashMap<String, Instant>>>,
}

impl ResourceController for TaintEvictionController {
    const NAME: &'static str = "taint-eviction-controller";

    fn new(context: ControllerContext) -> Self {
        Self { context, tolerated_since: Mutex::default() }
    }

    fn listen(&self, queue: &WorkQueue<NamespacedKey>) {
        let to = queue.clone();
        let views = &self.context.informers;
        views.nodes.on_change(move |change| {
            let [old, new] =
                [&change.old, &change.new].map(|node| node.as_deref().map(no_execute_taints).unwrap_or_default());
            if let Some(node) = change.latest().filter(|_| old != new) {
                to.add(NamespacedKey::from_object(&**node));
            }
        });
        let to = queue.clone();
        let nodes = views.nodes.clone();
        views.pods.on_change(move |change| {
            let node = change.latest().and_then(|pod| bound_node(pod));
            if let Some(key) =
                node.filter(|key| nodes.get(key).is_some_and(|node| !no_execute_taints(&node).is_empty()))
            {
                to.add(key);
            }
        });
    }

    async fn reconcile(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let mut leaving = Vec::new();
        let mut next = None;
        for (pod, left) in self.pods_to_evict(&key) {
            match left {
                Duration::ZERO => leaving.push(pod),
                left => next = Some(left.min(next.unwrap_or(MAX_REQUEUE_DELAY))),
            }
        }
        write_through::slow_start_batch(leaving, |pod| async move { self.evict(&pod).await }).await?;
        Ok(next)
    }
}

impl TaintEvictionController {
    /// The pods on this node with a limited toleration, each with the remaining time.
    fn pods_to_evict(&self, key: &NamespacedKey) -> Vec<(Arc<Pod>, Duration)> {
        let mut all = self.tolerated_since.lock();
        let before = all.remove(key).unwrap_or_default();
        let node = self.context.informers.nodes.get(key).filter(|node| !no_execute_taints(node).is_empty());
        let Some(node) = node else { return Vec::new() };
        let mut seen = HashMap::new();
        let mut limited = Vec::new();
        for pod in self.context.informers.pods.all() {
            if bound_node(&pod).as_ref() != Some(key) || pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            if let Some(stay) = pod.spec.as_ref().and_then(|spec| node_eligibility::remaining_toleration(spec, &node)) {
                let uid = pod.uid().unwrap_or_default();
                let since = before.get(&uid).copied().unwrap_or_else(Instant::now);
                seen.insert(uid, since);
                limited.push((pod, stay.saturating_sub(since.elapsed())));
            }
        }
        all.insert(key.clone(), seen);
        limited
    }

    async fn evict(&self, pod: &Pod) -> Result<()> {
        let note = format!("Marking for deletion Pod {}", NamespacedKey::from_object(pod));
        self.context.events.record_normal(pod.object_ref(&()), "TaintManagerEviction", note);
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &pod.namespace().unwrap_or_default());
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let evicted = async {
            pods.patch_status(&pod.name_any(), &params, &Patch::Strategic(disruption_condition(pod))).await?;
            write_through::delete(&self.context.client, &self.context.informers.pods, pod).await
        };
        match evicted.await {
            // The pod was deleted in the meantime. One that was created again is a conflict, which is retried.
            Err(error) if error.is_not_found() => Ok(()),
            evicted => evicted,
        }
    }
}

fn disruption_condition(pod: &Pod) -> serde_json::Value {
    let condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "DeletionByTaintManager",
        "message": "Taint manager: deleting due to NoExecute taint",
        "lastTransitionTime": Time(Timestamp::now()),
        "observedGeneration": pod.metadata.generation,
    });
    json!({ "metadata": { "uid": pod.uid() }, "status": { "conditions": [condition] } })
}

/// The `NoExecute` taints of the node.
fn no_execute_taints(node: &Node) -> Vec<&Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
    taints.filter(|taint| taint.effect == "NoExecute").collect()
}

#[cfg(test)]
mod tests;
