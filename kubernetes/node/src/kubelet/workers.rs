//! The workers of a node, one for each pod.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kubewake_runtime::lock::Mutex;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    NodeAgent, admission,
    pod::{PodUpdate, PodWorker, StatusCell, has_final_phase},
};
use crate::{informer::InformerChange, scheduler::resources::ResourceAmounts};

/// The workers of a node, by pod uid.
#[derive(Debug)]
pub(super) struct PodWorkers {
    node: Arc<NodeAgent>,
    all: Mutex<HashMap<String, PodWorkerHandle>>,
    pub(super) count: watch::Sender<usize>,
    runtime: tokio::runtime::Handle,
}

#[derive(Debug)]
struct PodWorkerHandle {
    updates: watch::Sender<PodUpdate>,
    status: Arc<StatusCell>,
    /// The resources that the pod uses; none if the node rejected it.
    holds: ResourceAmounts,
    task: JoinHandle<()>,
}

impl Drop for PodWorkerHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PodWorkers {
    pub(super) fn new(node: Arc<NodeAgent>) -> Self {
        let runtime = tokio::runtime::Handle::current();
        Self { node, all: Mutex::default(), count: watch::Sender::new(0), runtime }
    }

    /// Handles a change of a pod. A pod that was created again under the same name has another uid.
    pub(super) fn handle_change(&self, me: &Weak<Self>, change: &InformerChange<Pod>) {
        let uid = |pod: &Option<Arc<Pod>>| pod.as_ref().and_then(|pod| pod.uid());
        if let Some(old) = &change.old
            && uid(&change.old) != uid(&change.new)
        {
            self.update_pod(me, old, true);
        }
        if let Some(new) = &change.new {
            self.update_pod(me, new, false);
        }
    }

    fn update_pod(&self, me: &Weak<Self>, pod: &Arc<Pod>, gone: bool) {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let Some(uid) = pod.uid().filter(|_| node == Some(&self.node.options.name)) else { return };
        let told = PodUpdate { pod: Arc::clone(pod), gone };
        let mut all = self.all.lock();
        if let Some(worker) = all.get(&uid) {
            worker.updates.send_replace(told);
        } else if !gone && !self.node.is_stopping() {
            let (sender, receiver) = watch::channel(told);
            let refused = admission::admission_failure(pod, &self.node.allocatable(), &held_resources(&all));
            let holds =
                if refused.is_none() { ResourceAmounts::requested_by_pod(pod) } else { ResourceAmounts::default() };
            let worker = PodWorker::new(Arc::clone(&self.node), receiver, refused);
            let status = worker.status();
            let me = me.clone();
            let mine = uid.clone();
            let task = self.runtime.spawn(async move {
                worker.run().await;
                if let Some(workers) = me.upgrade() {
                    workers.remove_worker(&mine);
                }
            });
            all.insert(uid, PodWorkerHandle { updates: sender, status, holds, task });
            self.count.send_replace(all.len());
        }
    }

    /// The present status of a container. That in the API may be older.
    pub(super) fn container_status(&self, uid: &str, container: &str) -> Option<ContainerStatus> {
        let status = Arc::clone(&self.all.lock().get(uid)?.status);
        status.container(container, Clone::clone)
    }

    fn remove_worker(&self, uid: &str) {
        let mut all = self.all.lock();
        // Called by the task itself at its end, so aborting it has no effect.
        all.remove(uid);
        self.count.send_replace(all.len());
    }
}

/// The resources in use by all pods. A pod that is gone or has ended uses none, even if its cleanup is not
/// finished.
fn held_resources(all: &HashMap<String, PodWorkerHandle>) -> ResourceAmounts {
    let mut sum = ResourceAmounts::default();
    for worker in all.values() {
        let told = worker.updates.borrow();
        if !told.gone && !has_final_phase(&told.pod) {
            sum.add(&worker.holds);
        }
    }
    sum
}
