//! Who looks after which pod of a node.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tokio::{sync::watch, task::JoinHandle};

use super::{
    Node, admit,
    pod::{Told, Worker, is_over},
};
use crate::{scheduler::resources::Resources, view::Change};

/// The workers of a node, by the uid of their pods.
#[derive(Debug)]
pub(super) struct Workers {
    node: Arc<Node>,
    all: Mutex<HashMap<String, Handle>>,
    /// How many there are.
    pub(super) count: watch::Sender<usize>,
    runtime: tokio::runtime::Handle,
}

#[derive(Debug)]
struct Handle {
    told: watch::Sender<Told>,
    /// Of the node's capacity: nothing, if the node did not take the pod.
    holds: Resources,
    task: JoinHandle<()>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Workers {
    pub(super) fn new(node: Arc<Node>) -> Self {
        let runtime = tokio::runtime::Handle::current();
        Self { node, all: Mutex::default(), count: watch::Sender::new(0), runtime }
    }

    /// A pod came, changed or went. One that was made again under its name is another.
    pub(super) fn tell(&self, me: &Weak<Self>, change: &Change<Pod>) {
        let uid = |pod: &Option<Arc<Pod>>| pod.as_ref().and_then(|pod| pod.uid());
        if let Some(old) = &change.old
            && uid(&change.old) != uid(&change.new)
        {
            self.tell_one(me, old, true);
        }
        if let Some(new) = &change.new {
            self.tell_one(me, new, false);
        }
    }

    fn tell_one(&self, me: &Weak<Self>, pod: &Arc<Pod>, gone: bool) {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let Some(uid) = pod.uid().filter(|_| node == Some(&self.node.options.name)) else { return };
        let told = Told { pod: Arc::clone(pod), gone };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(worker) = all.get(&uid) {
            worker.told.send_replace(told);
        } else if !gone && !self.node.is_stopping() {
            let (sender, receiver) = watch::channel(told);
            let refused = admit::refusal(pod, &self.node.allocatable(), &held(&all));
            let holds = if refused.is_none() { Resources::of_pod(pod) } else { Resources::default() };
            let worker = Worker::new(Arc::clone(&self.node), receiver, refused);
            let (me, mine) = (me.clone(), uid.clone());
            let task = self.runtime.spawn(async move {
                worker.run().await;
                if let Some(workers) = me.upgrade() {
                    workers.done(&mine);
                }
            });
            all.insert(uid, Handle { told: sender, holds, task });
            self.count.send_replace(all.len());
        }
    }

    fn done(&self, uid: &str) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        // It is the task itself that says so: aborting it changes nothing.
        all.remove(uid);
        self.count.send_replace(all.len());
    }
}

/// What those that are there hold together. Who is gone or has ended holds nothing, although something may be left to clean up.
fn held(all: &HashMap<String, Handle>) -> Resources {
    let mut sum = Resources::default();
    for worker in all.values() {
        let told = worker.told.borrow();
        if !told.gone && !is_over(&told.pod) {
            sum.add(&worker.holds);
        }
    }
    sum
}
