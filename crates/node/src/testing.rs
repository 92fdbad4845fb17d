//! A cluster for tests: a real API server, and a node that only says that its pods run, or none.

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
    controller::{Controller, pods, start},
    error::{Error, Result},
    key::Key,
    queue::{Again, Queue},
    view::{Change, View},
    views::Views,
};

pub(crate) const NAMESPACE: &str = "default";

/// Long enough for any machine: what is waited for comes, or the test is wrong.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Pods of this image do not get ready.
pub(crate) const SICK: &str = "sick";

/// A kind in a namespace.
pub(crate) trait Kind:
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

impl<K> Kind for K where
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

/// The cluster.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    pub(crate) views: Views,
    pub(crate) tasks: JoinSet<()>,
    node: FakeNode,
}

/// Says that pods are ready, and that those that are deleted are gone.
#[derive(Clone)]
struct FakeNode {
    client: Client,
    views: Views,
    queue: Queue<Key>,
    /// Pods that do not get ready.
    sick: Arc<Mutex<BTreeSet<String>>>,
    /// Pods that do not end.
    stubborn: Arc<Mutex<BTreeSet<String>>>,
}

impl World {
    /// With a node that only says that its pods run.
    pub(crate) async fn new() -> Self {
        let mut world = Self::without_nodes(Options::default()).await;
        let (node, queue) = (world.node.clone(), world.node.queue.clone());
        world.views.pods.on_change(move |change| change.new.iter().for_each(|pod| queue.add(Key::of(&**pod))));
        world.tasks.spawn(world.node.queue.clone().run("fake-node", 8, move |key| {
            let node = node.clone();
            async move { node.look_at(key).await }
        }));
        world
    }

    pub(crate) async fn without_nodes(options: Options) -> Self {
        let server = ApiServer::start(options).await.unwrap();
        let (client, views, mut tasks) = (server.client().unwrap(), Views::default(), JoinSet::new());
        views.follow(&client, &mut tasks).await;
        let node = FakeNode {
            client: client.clone(),
            views: views.clone(),
            queue: Queue::default(),
            sick: Arc::default(),
            stubborn: Arc::default(),
        };
        Self { server, client, views, tasks, node }
    }

    pub(crate) fn start<C: Controller>(&mut self) {
        start::<C>(&self.client, &self.views, &mut self.tasks);
    }

    pub(crate) fn with_scheduler(mut self) -> Self {
        crate::scheduler::start(&self.client, &self.views, &mut self.tasks);
        self
    }

    pub(crate) fn api<K: Kind>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn make<K: Kind>(&self, object: Value) -> K {
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

    pub(crate) async fn patch<K: Kind>(&self, name: &str, patch: Value) -> K {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    pub(crate) async fn delete<K: Kind>(&self, name: &str) {
        self.api::<K>().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// The object once this holds for it.
    pub(crate) async fn until<K: Kind>(&self, name: &str, holds: impl Fn(&K) -> bool) -> K {
        let condition = |object: Option<&K>| object.is_some_and(&holds);
        await_condition(self.api(), name, condition).await.unwrap().unwrap()
    }

    pub(crate) async fn until_gone<K: Kind>(&self, name: &str) {
        await_condition(self.api::<K>(), name, |object: Option<&K>| object.is_none()).await.unwrap();
    }

    /// Waits until this holds for all objects of a view.
    pub(crate) async fn until_all<K, T>(&self, view: &View<K>, holds: impl Fn(&[Arc<K>]) -> Option<T>) -> T
    where
        K: Send + Sync + 'static,
    {
        let (tell, mut told) = tokio::sync::watch::channel(());
        view.on_change(move |_: &Change<K>| {
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

    /// Pods of this name do not get ready from now on.
    pub(crate) fn sicken(&self, pod: &str) {
        self.node.sick.lock().unwrap().insert(pod.to_owned());
    }

    pub(crate) fn heal(&self, pod: &str) {
        self.node.sick.lock().unwrap().remove(pod);
        self.node.queue.add(Key::new(NAMESPACE, pod));
    }

    /// Pods of this name do not end from now on.
    pub(crate) fn hold(&self, pod: &str) {
        self.node.stubborn.lock().unwrap().insert(pod.to_owned());
    }

    pub(crate) fn let_go(&self, pod: &str) {
        self.node.stubborn.lock().unwrap().remove(pod);
        self.node.queue.add(Key::new(NAMESPACE, pod));
    }

    pub(crate) async fn fail(&self, pod: &str) {
        self.sicken(pod);
        let status = json!({"status": {"phase": "Failed", "reason": "Evicted", "conditions": null}});
        self.api::<Pod>().patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
}

impl FakeNode {
    async fn look_at(&self, key: Key) -> Result<Again> {
        let Some(pod) = self.views.pods.get(&key) else { return Ok(None) };
        let is_bound = pod.spec.as_ref().unwrap().node_name.as_ref().is_some_and(|node| !node.is_empty());
        if !is_bound {
            return Ok(None);
        }
        let outcome = match pod.metadata.deletion_timestamp {
            Some(_) => self.end(&key).await,
            None => self.run(&key, &pod).await,
        };
        match outcome {
            Err(error) if error.is_not_found() => Ok(None),
            outcome => outcome.map(|()| None),
        }
    }

    fn api(&self, key: &Key) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    async fn end(&self, key: &Key) -> Result<()> {
        if !self.stubborn.lock().unwrap().contains(&key.name) {
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            self.api(key).delete(&key.name, &at_once).await.map_err(Error::from)?;
        }
        Ok(())
    }

    async fn run(&self, key: &Key, pod: &Pod) -> Result<()> {
        if pods::is_ready(pod) || matches!(pods::phase(pod), "Failed" | "Succeeded") {
            return Ok(());
        }
        let sick = self.sick.lock().unwrap().contains(&key.name) || image(pod) == Some(SICK);
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

/// Waits until it is so. Files tell nobody that they changed.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never came: {what}");
}
