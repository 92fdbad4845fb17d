//! A cluster for tests: a real API server, and a simulated node, or none.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{Event, Node, Pod},
};
use kube::{
    Api, Client, Resource,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::{wait::await_condition, watcher},
};
use kubewake_apiserver::server::{ApiServer, Options};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    controller::{ResourceController, pods, start},
    error::{ClusterError, Result},
    informer::{InformerChange, SharedInformer},
    informers::InformerSet,
    key::NamespacedKey,
    queue::{RequeueAfter, WorkQueue},
};

pub(crate) const NAMESPACE: &str = "default";

/// Long enough for any machine: a timeout means that the test is wrong.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Pods of this image do not become ready.
pub(crate) const NEVER_READY_IMAGE: &str = "sick";

/// A namespaced kind.
pub(crate) trait NamespacedKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
}

impl<K> NamespacedKind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

pub(crate) struct TestCluster {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    pub(crate) informers: InformerSet,
    pub(crate) tasks: JoinSet<()>,
    node: FakeNode,
}

/// A simulated kubelet: marks pods as ready, and completes deletions.
#[derive(Clone)]
struct FakeNode {
    client: Client,
    informers: InformerSet,
    queue: WorkQueue<NamespacedKey>,
    /// Pods that do not become ready.
    unready: Arc<Mutex<BTreeSet<String>>>,
    /// Pods that do not terminate.
    terminating: Arc<Mutex<BTreeSet<String>>>,
}

impl TestCluster {
    /// Creates a cluster with a simulated node.
    pub(crate) async fn new() -> Self {
        let mut world = Self::without_nodes(Options::default()).await;
        let node = world.node.clone();
        let queue = world.node.queue.clone();
        world
            .informers
            .pods
            .on_change(move |change| change.new.iter().for_each(|pod| queue.add(NamespacedKey::from_object(&**pod))));
        world.tasks.spawn(world.node.queue.clone().run_workers("fake-node", 8, move |key| {
            let node = node.clone();
            async move { node.sync_pod(key).await }
        }));
        world
    }

    pub(crate) async fn without_nodes(options: Options) -> Self {
        let server = ApiServer::start(options).await.unwrap();
        let client = server.client().unwrap();
        let views = InformerSet::default();
        let mut tasks = JoinSet::new();
        views.start_all(&client, &mut tasks).await;
        let node = FakeNode {
            client: client.clone(),
            informers: views.clone(),
            queue: WorkQueue::default(),
            unready: Arc::default(),
            terminating: Arc::default(),
        };
        Self { server, client, informers: views, tasks, node }
    }

    pub(crate) fn start<C: ResourceController>(&mut self) {
        start::<C>(&self.client, &self.informers, &mut self.tasks);
    }

    pub(crate) fn with_scheduler(mut self) -> Self {
        crate::scheduler::start(&self.client, &self.informers, &mut self.tasks);
        self
    }

    pub(crate) fn api<K: NamespacedKind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn make<K: NamespacedKind>(&self, object: Value) -> K {
        let object: K = serde_json::from_value(object).unwrap();
        self.api().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn add_node(&self, name: &str, labels: Value) {
        let amount = json!({"cpu": "8", "memory": "8Gi", "pods": "100"});
        let node = json!({"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amount, "capacity": amount}});
        let node: Node = serde_json::from_value(node).unwrap();
        Api::all(self.client.clone()).create(&PostParams::default(), &node).await.unwrap();
        // A new node is tainted until it is ready.
        self.patch_node(name, json!({"spec": {"taints": null}})).await;
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch<K: NamespacedKind>(&self, name: &str, patch: Value) -> K {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    pub(crate) async fn delete<K: NamespacedKind>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a condition holds for the object, and returns it.
    pub(crate) async fn until<K: NamespacedKind>(&self, name: &str, holds: impl Fn(&K) -> bool) -> K {
        let condition = |object: Option<&K>| object.is_some_and(&holds);
        await_condition(self.api(), name, condition).await.unwrap().unwrap()
    }

    pub(crate) async fn until_gone<K: NamespacedKind>(&self, name: &str) {
        await_condition(self.api::<K>(), name, |object: Option<&K>| object.is_none()).await.unwrap();
    }

    /// Waits until a condition holds for all objects of an informer.
    pub(crate) async fn until_all<K, T>(&self, view: &SharedInformer<K>, holds: impl Fn(&[Arc<K>]) -> Option<T>) -> T
    where
        K: Send + Sync + 'static,
    {
        let (tell, mut told) = tokio::sync::watch::channel(());
        view.on_change(move |_: &InformerChange<K>| {
            let _ = tell.send(());
        });
        loop {
            told.mark_unchanged();
            if let Some(found) = holds(&view.all()) {
                return found;
            }
            told.changed().await.unwrap();
        }
    }

    /// Waits for an event with this reason and note.
    pub(crate) async fn event(&self, reason: &str, note: &str) -> Event {
        let events: Api<Event> = self.api();
        let fits = |event: &Event| event.reason.as_deref() == Some(reason) && event.message.as_deref() == Some(note);
        let listed = events.list(&ListParams::default()).await.unwrap();
        if let Some(event) = listed.items.into_iter().find(fits) {
            return event;
        }
        let mut stream = std::pin::pin!(watcher(events, watcher::Config::default()));
        while let Some(event) = futures_util::StreamExt::next(&mut stream).await {
            let (watcher::Event::Apply(event) | watcher::Event::InitApply(event)) = event.unwrap() else { continue };
            if fits(&event) {
                return event;
            }
        }
        panic!("the watch ended");
    }

    /// Keeps pods of this name from becoming ready.
    pub(crate) fn keep_unready(&self, pod: &str) {
        self.node.unready.lock().unwrap().insert(pod.to_owned());
    }

    pub(crate) fn make_ready(&self, pod: &str) {
        self.node.unready.lock().unwrap().remove(pod);
        self.node.queue.add(NamespacedKey::new(NAMESPACE, pod));
    }

    /// Keeps pods of this name from terminating.
    pub(crate) fn keep_terminating(&self, pod: &str) {
        self.node.terminating.lock().unwrap().insert(pod.to_owned());
    }

    pub(crate) fn finish_termination(&self, pod: &str) {
        self.node.terminating.lock().unwrap().remove(pod);
        self.node.queue.add(NamespacedKey::new(NAMESPACE, pod));
    }

    pub(crate) async fn fail(&self, pod: &str) {
        self.keep_unready(pod);
        let status = json!({"status": {"phase": "Failed", "reason": "Evicted", "conditions": null}});
        self.api::<Pod>().patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
}

impl FakeNode {
    async fn sync_pod(&self, key: NamespacedKey) -> Result<RequeueAfter> {
        let Some(pod) = self.informers.pods.get(&key) else { return Ok(None) };
        let is_bound = pod.spec.as_ref().unwrap().node_name.as_ref().is_some_and(|node| !node.is_empty());
        if !is_bound {
            return Ok(None);
        }
        let outcome = match pod.metadata.deletion_timestamp {
            Some(_) => self.remove_pod(&key).await,
            None => self.mark_running(&key, &pod).await,
        };
        match outcome {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => outcome.map(|()| None),
        }
    }

    fn api(&self, key: &NamespacedKey) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    async fn remove_pod(&self, key: &NamespacedKey) -> Result<()> {
        if !self.terminating.lock().unwrap().contains(&key.name) {
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            self.api(key).delete(&key.name, &at_once).await.map_err(ClusterError::from)?;
        }
        Ok(())
    }

    async fn mark_running(&self, key: &NamespacedKey, pod: &Pod) -> Result<()> {
        if pods::is_ready(pod) || matches!(pods::phase(pod), "Failed" | "Succeeded") {
            return Ok(());
        }
        let sick = self.unready.lock().unwrap().contains(&key.name) || image(pod) == Some(NEVER_READY_IMAGE);
        if sick && pods::phase(pod) == "Running" {
            return Ok(());
        }
        let ready = if sick { "False" } else { "True" };
        let now = jiff::Timestamp::now().to_string();
        let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now}]}});
        self.api(key).patch_status(&key.name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }
}

fn image(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// Polls until a condition holds, since files have no change notifications here.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(WAIT_TIMEOUT, waiting).await.is_ok(), "it never came: {what}");
}
