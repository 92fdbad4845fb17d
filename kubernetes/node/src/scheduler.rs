//! The default scheduler: assigns nodes to pending pods, like kube-scheduler.
//!
//! *Guaranteed*: the requests of the pods on a node never exceed its cpu, memory, number of pods and other
//! resources. An unschedulable pod gets a reason, in its condition `PodScheduled` and in an Event, and is
//! retried whenever a node, a claim or the free resources of a node change. Pods with another `schedulerName`
//! and pods with scheduling gates are left alone. *Not done*: preemption, host ports.

mod cache;
mod inter_pod_affinity;
pub mod node_eligibility;
mod node_selection;
pub mod resources;
mod score;
mod unschedulable_pods;
mod volume_binding;

use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::Status,
};
use kubewake_runtime::lock::Mutex;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use self::{
    cache::{ClusterEvent, SchedulerCache, bound_node},
    node_selection::{FitError, NodeInfo},
    unschedulable_pods::UnschedulablePods,
};
use crate::{
    controller::pods,
    error::{ClusterError, Result},
    events::EventRecorder,
    informer::InformerChange,
    informers::InformerSet,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

/// The `schedulerName` of its pods, and the reporting component of its Events.
pub const SCHEDULER_NAME: &str = "default-scheduler";
/// The field manager of the scheduler's writes.
const FIELD_MANAGER: &str = "kube-scheduler";
/// The limit of bindings in flight.
const MAX_CONCURRENT_BINDINGS: usize = 16;
/// The interval at which an unschedulable pod is retried and reported again without a change: kube-scheduler's.
const UNSCHEDULABLE_RETRY_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// The retry delay for a pod whose state was not that of the watch.
const STALE_POD_RETRY_DELAY: Duration = Duration::from_secs(1);

pub fn start(client: &Client, views: &InformerSet, tasks: &mut JoinSet<()>) {
    let scheduler = Arc::new(DefaultScheduler {
        client: client.clone(),
        informers: views.clone(),
        events: EventRecorder::new(client.clone(), SCHEDULER_NAME, None),
        state: Mutex::default(),
        queue: WorkQueue::default(),
    });
    scheduler.listen();
    let queue = scheduler.queue.clone();
    tasks.spawn(queue.run_workers(SCHEDULER_NAME, MAX_CONCURRENT_BINDINGS, move |key| {
        let scheduler = Arc::clone(&scheduler);
        async move { scheduler.schedule(key).await }
    }));
}

struct DefaultScheduler {
    client: Client,
    informers: InformerSet,
    events: EventRecorder,
    state: Mutex<SchedulerState>,
    queue: WorkQueue<NamespacedKey>,
}

/// One lock for both: a pod must be marked as unschedulable before a change can make room for it.
#[derive(Default)]
struct SchedulerState {
    cache: SchedulerCache,
    unschedulable: UnschedulablePods,
}

impl DefaultScheduler {
    fn listen(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        self.informers.pods.on_change(move |change| {
            if let (Some(this), Some(pod)) = (this.upgrade(), change.latest()) {
                this.pod_changed(&NamespacedKey::from_object(&**pod), change);
            }
        });
        let this = Arc::downgrade(self);
        self.informers.nodes.on_change(move |change| {
            if let Some(this) = this.upgrade().filter(|_| may_fit_more_pods(change)) {
                this.requeue_unschedulable(ClusterEvent::ResourcesFreed);
            }
        });
        let this = Arc::downgrade(self);
        self.informers.claims.on_change(move |_| {
            if let Some(this) = this.upgrade() {
                this.requeue_unschedulable(ClusterEvent::ResourcesFreed);
            }
        });
    }

    fn lock_state(&self) -> MutexGuard<'_, SchedulerState> {
        self.state.lock()
    }

    fn pod_changed(&self, key: &NamespacedKey, change: &InformerChange<Pod>) {
        // Events may arrive out of order, so the current state is used.
        let news = {
            let mut state = self.lock_state();
            let pod = self.informers.pods.get(key);
            if pod.is_none() {
                state.unschedulable.remove(key);
            }
            state.cache.update_pod(key, pod.as_ref())
        };
        if let Some(news) = news {
            self.requeue_unschedulable(news);
        }
        if change.new.as_ref().is_some_and(|pod| is_responsible_for(pod)) && has_new_requirements(change) {
            self.queue.add(key.clone());
        }
    }

    /// Queues unschedulable pods that may fit after this event.
    fn requeue_unschedulable(&self, news: ClusterEvent) {
        let helped = self.lock_state().unschedulable.pods_helped_by(news);
        helped.into_iter().for_each(|key| self.queue.add(key));
    }

    async fn schedule(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let Some(pod) = self.informers.pods.get(&key).filter(|pod| is_responsible_for(pod)) else {
            self.lock_state().unschedulable.remove(&key);
            return Ok(None);
        };
        match self.schedule_pod(&key, &pod) {
            ScheduleResult::AlreadyBound => Ok(None),
            ScheduleResult::Node(node) => {
                self.requeue_unschedulable(ClusterEvent::PodChanged);
                self.bind(&key, &pod, &node).await
            }
            ScheduleResult::Unschedulable { why, tell } => self.report_unschedulable(&key, &pod, &why, tell).await,
        }
    }

    /// Selects a node, and assumes the pod there before the next decision.
    fn schedule_pod(&self, key: &NamespacedKey, pod: &Arc<Pod>) -> ScheduleResult {
        let mut state = self.lock_state();
        if state.cache.has_pod(key, pod) {
            return ScheduleResult::AlreadyBound;
        }
        // Under the lock: a change after this point queues the pod again.
        let nodes = self.informers.nodes.all();
        let namespaces = self.informers.namespaces.all();
        let places = NodeInfo::snapshot(&nodes, &state.cache);
        let chosen = match volume_binding::unbound_claim_reason(pod, &self.informers.claims) {
            Some(why) => Err(FitError::Pod(places.len(), why)),
            None => node_selection::select_node(pod, &places, &namespaces),
        };
        match chosen {
            Ok(node) => {
                state.unschedulable.remove(key);
                state.cache.assume_pod(key.clone(), pod, &node);
                ScheduleResult::Node(node)
            }
            Err(why) => {
                let why = why.to_string();
                let tell =
                    state.unschedulable.add(key.clone(), pod, &why, Instant::now(), UNSCHEDULABLE_RETRY_INTERVAL);
                ScheduleResult::Unschedulable { why, tell }
            }
        }
    }

    async fn bind(&self, key: &NamespacedKey, pod: &Pod, node: &str) -> Result<RequeueAfter> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "namespace": key.namespace, "name": key.name, "uid": pod.uid() },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let bound: Result<Status, _> = pods.create_subresource("binding", &key.name, &params, &binding).await;
        match bound.map_err(ClusterError::from) {
            Ok(_) => {
                let note = format!("Successfully assigned {key} to {node}");
                self.events.record_normal(pod.object_ref(&()), "Scheduled", note);
                Ok(None)
            }
            Err(error) => {
                self.lock_state().cache.forget_pod(key);
                self.requeue_unschedulable(ClusterEvent::ResourcesFreed);
                // The pod was bound, deleted or created again by somebody else; the watch will show it soon.
                if error.is_conflict() || error.is_not_found() { Ok(Some(STALE_POD_RETRY_DELAY)) } else { Err(error) }
            }
        }
    }

    async fn report_unschedulable(
        &self,
        key: &NamespacedKey,
        pod: &Pod,
        why: &str,
        tell: bool,
    ) -> Result<RequeueAfter> {
        if tell {
            self.events.record_warning(pod.object_ref(&()), "FailedScheduling", why);
        }
        let before = pods::condition(pod, "PodScheduled").filter(|before| before.status == "False");
        if before.is_some_and(|before| before.message.as_deref() == Some(why)) {
            return Ok(Some(UNSCHEDULABLE_RETRY_INTERVAL));
        }
        let since = before.and_then(|before| before.last_transition_time.as_ref()).map(|time| time.0);
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastProbeTime": null,
            "lastTransitionTime": Time(since.unwrap_or_else(Timestamp::now)),
            "observedGeneration": pod.metadata.generation,
        });
        let patch = json!({ "metadata": { "uid": pod.uid() }, "status": { "conditions": [condition] } });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match pods.patch_status(&key.name, &params, &Patch::Strategic(patch)).await {
            Ok(pod) => drop(self.informers.pods.record_write(pod)),
            Err(error) => match ClusterError::from(error) {
                // The pod was deleted or created again; the watch will show it.
                error if error.is_conflict() || error.is_not_found() => {}
                error => return Err(error),
            },
        }
        Ok(Some(UNSCHEDULABLE_RETRY_INTERVAL))
    }
}

/// The result of scheduling a pod.
enum ScheduleResult {
    /// The pod has a node that the watch has not shown yet.
    AlreadyBound,
    Node(String),
    /// `tell`: the reason has not been reported recently.
    Unschedulable {
        why: String,
        tell: bool,
    },
}

/// Whether the pod is pending and names this scheduler.
fn is_responsible_for(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    pods::is_active(pod)
        && bound_node(pod).is_none()
        && spec.scheduler_name.as_deref().unwrap_or(SCHEDULER_NAME) == SCHEDULER_NAME
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

/// Whether the pod's requirements changed: status changes by others do not count.
fn has_new_requirements(change: &InformerChange<Pod>) -> bool {
    let asks = |pod: &Arc<Pod>| (pod.spec.clone(), pod.metadata.labels.clone(), pod.uid());
    change.old.as_ref().map(asks) != change.new.as_ref().map(asks)
}

/// Whether pods may fit on the node that did not before. Changes of its health do not count.
fn may_fit_more_pods(change: &InformerChange<Node>) -> bool {
    let Some(new) = &change.new else { return false };
    let Some(old) = &change.old else { return true };
    let allocatable = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
    old.labels() != new.labels() || old.spec != new.spec || allocatable(old) != allocatable(new)
}

#[cfg(test)]
mod tests;
