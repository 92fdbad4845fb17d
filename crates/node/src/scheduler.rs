//! The default scheduler: gives pods that have no node one, as kube-scheduler does.
//!
//! *Guarantees.* A node never gets more pods than its cpu, memory, pods and other resources allow by what pods request. A pod that
//! fits nowhere says why, in its condition `PodScheduled` and in an event, and is tried again whenever a node, a claim or the room on
//! a node changes. Pods that name another `schedulerName` and pods with scheduling gates are left alone.
//! *Not done*: preemption, host ports.

mod claims;
pub mod eligible;
mod ledger;
mod neighbours;
mod place;
pub mod resources;
mod score;
mod waiting;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

use self::{
    ledger::{Ledger, News, node_of},
    place::{Nowhere, Place},
    waiting::Waiting,
};
use crate::{
    controller::pods,
    error::{Error, Result},
    events::Events,
    key::Key,
    queue::{Again, Queue},
    view::Change,
    views::Views,
};

/// As pods name it, and as it names itself.
pub const NAME: &str = "default-scheduler";
/// In whose name the fields are that it writes.
const MANAGER: &str = "kube-scheduler";
/// Bindings under way at once.
const AT_ONCE: usize = 16;
/// A pod that fits nowhere is tried again and says so again after this, as with kube-scheduler, even if nothing changed.
const AGAIN: Duration = Duration::from_secs(5 * 60);

/// When to look at a pod that was not what the watch said.
const SOON: Duration = Duration::from_secs(1);

/// Starts the scheduler.
pub fn start(client: &Client, views: &Views, tasks: &mut JoinSet<()>) {
    let scheduler = Arc::new(Scheduler {
        client: client.clone(),
        views: views.clone(),
        events: Events::new(client.clone(), NAME, None),
        state: Mutex::default(),
        queue: Queue::default(),
    });
    scheduler.listen();
    let queue = scheduler.queue.clone();
    tasks.spawn(queue.run(NAME, AT_ONCE, move |key| {
        let scheduler = Arc::clone(&scheduler);
        async move { scheduler.schedule(key).await }
    }));
}

struct Scheduler {
    client: Client,
    views: Views,
    events: Events,
    state: Mutex<State>,
    queue: Queue<Key>,
}

/// One lock for both: what fits nowhere waits before anybody can make room for it.
#[derive(Default)]
struct State {
    ledger: Ledger,
    waiting: Waiting,
}

impl Scheduler {
    fn listen(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        self.views.pods.on_change(move |change| {
            if let (Some(this), Some(pod)) = (this.upgrade(), change.latest()) {
                this.pod_changed(&Key::of(&**pod), change);
            }
        });
        let this = Arc::downgrade(self);
        self.views.nodes.on_change(move |change| {
            if let Some(this) = this.upgrade().filter(|_| matters(change)) {
                this.wake(News::Room);
            }
        });
        let this = Arc::downgrade(self);
        self.views.claims.on_change(move |_| {
            if let Some(this) = this.upgrade() {
                this.wake(News::Room);
            }
        });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pod_changed(&self, key: &Key, change: &Change<Pod>) {
        // Two changes may be told in the wrong order; what is there now is right.
        let news = {
            let mut state = self.state();
            let pod = self.views.pods.get(key);
            if pod.is_none() {
                state.waiting.remove(key);
            }
            state.ledger.see(key, pod.as_ref())
        };
        if let Some(news) = news {
            self.wake(news);
        }
        if change.new.as_ref().is_some_and(|pod| is_ours(pod)) && asks_anew(change) {
            self.queue.add(key.clone());
        }
    }

    /// Those that fit nowhere may fit now.
    fn wake(&self, news: News) {
        let helped = self.state().waiting.helped(news);
        helped.into_iter().for_each(|key| self.queue.add(key));
    }

    async fn schedule(&self, key: Key) -> Result<Again> {
        let Some(pod) = self.views.pods.get(&key).filter(|pod| is_ours(pod)) else {
            self.state().waiting.remove(&key);
            return Ok(None);
        };
        match self.choose(&key, &pod) {
            Choice::Made => Ok(None),
            Choice::Node(node) => {
                self.wake(News::Pod);
                self.bind(&key, &pod, &node).await
            }
            Choice::Nowhere { why, tell } => self.refuse(&key, &pod, &why, tell).await,
        }
    }

    /// Decides, and remembers what it decided before anybody else does.
    fn choose(&self, key: &Key, pod: &Arc<Pod>) -> Choice {
        let mut state = self.state();
        if state.ledger.holds(key, pod) {
            return Choice::Made;
        }
        // Under the lock: what changes after this wakes the pod.
        let (nodes, namespaces) = (self.views.nodes.all(), self.views.namespaces.all());
        let places = Place::all(&nodes, &state.ledger);
        let chosen = match claims::missing(pod, &self.views.claims) {
            Some(why) => Err(Nowhere::Pod(places.len(), why)),
            None => place::choose(pod, &places, &namespaces),
        };
        match chosen {
            Ok(node) => {
                state.waiting.remove(key);
                state.ledger.assume(key.clone(), pod, &node);
                Choice::Node(node)
            }
            Err(why) => {
                let why = why.to_string();
                let tell = state.waiting.add(key.clone(), pod, &why, Instant::now(), AGAIN);
                Choice::Nowhere { why, tell }
            }
        }
    }

    async fn bind(&self, key: &Key, pod: &Pod, node: &str) -> Result<Again> {
        let binding = json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": { "namespace": key.namespace, "name": key.name, "uid": pod.uid() },
            "target": { "apiVersion": "v1", "kind": "Node", "name": node },
        });
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &key.namespace);
        let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let bound: Result<Status, _> = pods.create_subresource("binding", &key.name, &params, &binding).await;
        match bound.map_err(Error::from) {
            Ok(_) => {
                let note = format!("Successfully assigned {key} to {node}");
                self.events.normal(pod.object_ref(&()), "Scheduled", note);
                Ok(None)
            }
            Err(error) => {
                self.state().ledger.release(key);
                self.wake(News::Room);
                // Somebody else bound it, deletes it or made it again: soon the watch has told.
                if error.is_conflict() || error.is_not_found() { Ok(Some(SOON)) } else { Err(error) }
            }
        }
    }

    async fn refuse(&self, key: &Key, pod: &Pod, why: &str, tell: bool) -> Result<Again> {
        if tell {
            self.events.warning(pod.object_ref(&()), "FailedScheduling", why);
        }
        let before = pods::condition(pod, "PodScheduled").filter(|before| before.status == "False");
        if before.is_some_and(|before| before.message.as_deref() == Some(why)) {
            return Ok(Some(AGAIN));
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
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        match pods.patch_status(&key.name, &params, &Patch::Strategic(patch)).await {
            Ok(pod) => drop(self.views.pods.note(pod)),
            Err(error) => match Error::from(error) {
                // Somebody deleted it or made it again: the watch tells.
                error if error.is_conflict() || error.is_not_found() => {}
                error => return Err(error),
            },
        }
        Ok(Some(AGAIN))
    }
}

/// What became of a pod.
enum Choice {
    /// It has a node, though the watch has not told so yet.
    Made,
    Node(String),
    /// `tell`: not everybody has heard that already.
    Nowhere {
        why: String,
        tell: bool,
    },
}

/// Whether the pod waits for us.
fn is_ours(pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    pods::is_active(pod)
        && node_of(pod).is_none()
        && spec.scheduler_name.as_deref().unwrap_or(NAME) == NAME
        && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

/// Whether the pod asks for something else than before: what others write about it changes nothing.
fn asks_anew(change: &Change<Pod>) -> bool {
    let asks = |pod: &Arc<Pod>| (pod.spec.clone(), pod.metadata.labels.clone(), pod.uid());
    change.old.as_ref().map(asks) != change.new.as_ref().map(asks)
}

/// Whether pods may fit on the node that did not before. What a node says of its health changes nothing.
fn matters(change: &Change<Node>) -> bool {
    let Some(new) = &change.new else { return false };
    let Some(old) = &change.old else { return true };
    let allocatable = |node: &Node| node.status.as_ref().and_then(|status| status.allocatable.clone());
    old.labels() != new.labels() || old.spec != new.spec || allocatable(old) != allocatable(new)
}

#[cfg(test)]
mod tests;
