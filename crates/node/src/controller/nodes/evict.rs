//! Pods that a `NoExecute` taint sends away from their node.
//!
//! *Guarantees.* A pod that does not tolerate such a taint is deleted, with its own grace period; one that tolerates it for a time, when
//! it has been seen there for so long. *Not done*: to remember that time beyond the end of the process; it begins anew then,
//! as with kube-controller-manager.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, Pod, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::time::Instant;

use super::orphans::node_of;
use crate::{
    controller::{Context, Controller, MANAGER, write},
    error::Result,
    key::Key,
    queue::{Again, Queue},
    scheduler::eligible,
};

/// The longest time until a node is looked at again: pods may tolerate a taint for longer than a clock goes.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The controller. Its keys are those of nodes.
#[derive(Debug)]
pub struct Evictions {
    context: Context,
    /// Of each node, the pods that may stay only for a time, by uid, and since when.
    seen: Mutex<HashMap<Key, HashMap<String, Instant>>>,
}

impl Controller for Evictions {
    const NAME: &'static str = "taint-eviction-controller";

    fn new(context: Context) -> Self {
        Self { context, seen: Mutex::default() }
    }

    fn listen(&self, queue: &Queue<Key>) {
        let (to, views) = (queue.clone(), &self.context.views);
        views.nodes.on_change(move |change| {
            let [old, new] = [&change.old, &change.new].map(|node| node.as_deref().map(evicting).unwrap_or_default());
            if let Some(node) = change.latest().filter(|_| old != new) {
                to.add(Key::of(&**node));
            }
        });
        let (to, nodes) = (queue.clone(), views.nodes.clone());
        views.pods.on_change(move |change| {
            let node = change.latest().and_then(|pod| node_of(pod));
            if let Some(key) = node.filter(|key| nodes.get(key).is_some_and(|node| !evicting(&node).is_empty())) {
                to.add(key);
            }
        });
    }

    async fn reconcile(&self, key: Key) -> Result<Again> {
        let (mut leaving, mut next) = (Vec::new(), None);
        for (pod, left) in self.limited(&key) {
            match left {
                Duration::ZERO => leaving.push(pod),
                left => next = Some(left.min(next.unwrap_or(LONGEST))),
            }
        }
        write::slow_start(leaving, |pod| async move { self.evict(&pod).await }).await?;
        Ok(next)
    }
}

impl Evictions {
    /// The pods that may not stay for ever on this node, each with the time that is left to it.
    fn limited(&self, key: &Key) -> Vec<(Arc<Pod>, Duration)> {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.remove(key).unwrap_or_default();
        let node = self.context.views.nodes.get(key).filter(|node| !evicting(node).is_empty());
        let Some(node) = node else { return Vec::new() };
        let (mut seen, mut limited) = (HashMap::new(), Vec::new());
        for pod in self.context.views.pods.all() {
            if node_of(&pod).as_ref() != Some(key) || pod.metadata.deletion_timestamp.is_some() {
                continue;
            }
            if let Some(stay) = pod.spec.as_ref().and_then(|spec| eligible::may_stay(spec, &node)) {
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
        let note = format!("Marking for deletion Pod {}", Key::of(pod));
        self.context.events.normal(pod.object_ref(&()), "TaintManagerEviction", note);
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &pod.namespace().unwrap_or_default());
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let evicted = async {
            pods.patch_status(&pod.name_any(), &params, &Patch::Strategic(disrupted(pod))).await?;
            write::delete(&self.context.client, &self.context.views.pods, pod).await
        };
        match evicted.await {
            // It went by itself. One that is another by now is a conflict: it is looked at again.
            Err(error) if error.is_not_found() => Ok(()),
            evicted => evicted,
        }
    }
}

fn disrupted(pod: &Pod) -> serde_json::Value {
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

/// The taints of the node that send pods away.
fn evicting(node: &Node) -> Vec<&Taint> {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
    taints.filter(|taint| taint.effect == "NoExecute").collect()
}

#[cfg(test)]
mod tests;
