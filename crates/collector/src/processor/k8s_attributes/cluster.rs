//! What is known of the cluster.
//!
//! *Guarantees.* Of every object only what the rules ask for is kept, and only objects that they ask for are watched. What is
//! kept is bounded: beyond [`MAX_OF_PODS`](super::state::MAX_OF_PODS) no further pod is remembered, and beyond [`MAX_OF_OTHERS`](super::state::MAX_OF_OTHERS)
//! nothing new of any other object, which is counted. A pod that is gone is remembered for a while, since what it sent may come late, unless another one has
//! its address by then. *Not done*: what was left out is not asked for again when there is room; it comes with its next change.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak, atomic::Ordering},
    time::Duration,
};

use kubewake_config::{
    ComponentId,
    model::{ClusterAuth, Field, KubernetesAttributes, Owner},
};
use tokio::{sync::watch, task::AbortHandle, time::Instant};

use super::{
    objects::{Any, Pod},
    rules::{Attributes, Owned, Rules},
    state::{Maker, Other, State},
};
use crate::{
    components::BuildError,
    core::{ClusterStats, ClusterView},
    kubernetes::{self, Access, AccessSource, Client, Event, Metadata, Object, Query},
};

/// How often pods that are gone are looked through.
const SWEEP: Duration = Duration::from_secs(10);
/// How long to wait before the API server is looked for again.
const AGAIN: Duration = Duration::from_secs(10);

/// What cannot be asked for as long as it is not known where the API server is.
const EVERYTHING: &str = "all";

/// A cluster, seen by the rules of a processor.
pub(super) struct Cluster {
    pub(super) rules: Rules,
    /// The node whose pods are seen, if only those of one are.
    node: Option<String>,
    state: RwLock<State>,
    ready: watch::Sender<bool>,
    /// Lists that are not complete.
    missing: Mutex<HashSet<Kind>>,
    stats: Arc<ClusterStats>,
    pub(super) view: Arc<ClusterView>,
    /// The processor that was the first to ask, for logs.
    asker: ComponentId,
    tasks: Mutex<Tasks>,
}

/// The watches of a cluster, and for how many processors they are.
#[derive(Default)]
struct Tasks {
    running: Vec<AbortHandle>,
    users: usize,
    /// The last processor that was part of a pipeline has gone. What is known stays for what that one still hands on.
    is_stopped: bool,
}

/// A processor that is part of a pipeline. With the last one of a cluster its watches end.
pub(super) struct ClusterUser(Arc<Cluster>);

impl ClusterUser {
    /// Uses a cluster; none if its watches have ended.
    pub(super) fn begin(cluster: &Arc<Cluster>) -> Option<Self> {
        let mut tasks = lock(&cluster.tasks);
        if tasks.is_stopped {
            return None;
        }
        tasks.users += 1;
        Some(Self(cluster.clone()))
    }
}

impl Drop for ClusterUser {
    fn drop(&mut self) {
        let mut tasks = lock(&self.0.tasks);
        tasks.users -= 1;
        if tasks.users == 0 {
            tasks.is_stopped = true;
            tasks.running.drain(..).for_each(|task| task.abort());
        }
    }
}

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Pod,
    ReplicaSet,
    Of(Owner),
}

impl Cluster {
    /// Looks at the cluster from now on.
    pub(super) fn start(settings: &KubernetesAttributes, stats: Arc<ClusterStats>, asker: &ComponentId) -> Arc<Self> {
        let cluster = Self::new(settings, stats, asker);
        let task = tokio::spawn(find(Arc::downgrade(&cluster)));
        cluster.keep(task.abort_handle());
        cluster
    }

    fn new(settings: &KubernetesAttributes, stats: Arc<ClusterStats>, asker: &ComponentId) -> Arc<Self> {
        let rules = Rules { settings: settings.clone() };
        let cluster = Self {
            node: node(settings),
            state: RwLock::default(),
            ready: watch::Sender::new(false),
            missing: Mutex::default(),
            stats,
            view: Arc::default(),
            asker: asker.clone(),
            tasks: Mutex::default(),
            rules,
        };
        *lock(&cluster.missing) = cluster.kinds().into_iter().collect();
        Arc::new(cluster)
    }

    /// What is known now.
    pub(super) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether all that is asked for was seen once.
    pub(super) fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Whether nothing is watched any more.
    pub(super) fn is_stopped(&self) -> bool {
        lock(&self.tasks).is_stopped
    }

    fn keep(&self, task: AbortHandle) {
        let mut tasks = lock(&self.tasks);
        match tasks.is_stopped {
            true => task.abort(),
            false => tasks.running.push(task),
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let (pods, held) = (state.pods.len(), state.held());
        change(&mut state);
        // By the difference, since another cluster may count in the same place.
        self.stats.pods.fetch_add(state.pods.len().wrapping_sub(pods) as u64, Ordering::Relaxed);
        self.stats.held.fetch_add(state.held().wrapping_sub(held) as u64, Ordering::Relaxed);
        self.view.pods.store(state.pods.len() as u64, Ordering::Relaxed);
    }

    /// The kinds that the rules ask for, and no other.
    fn kinds(&self) -> Vec<Kind> {
        let rules = &self.rules;
        let by_name = rules.settings.deployment_by_name;
        let mut kinds = vec![Kind::Pod];
        let names_deployments = rules.wants_any(&[Field::DeploymentName, Field::ServiceName]);
        if rules.wants(Field::DeploymentUid) || rules.extracts(Owner::Deployment) || names_deployments && !by_name {
            kinds.push(Kind::ReplicaSet);
        }
        let others = [
            (Owner::Namespace, rules.wants(Field::ClusterUid)),
            (Owner::Node, rules.wants(Field::NodeUid)),
            (Owner::Deployment, false),
            (Owner::StatefulSet, false),
            (Owner::DaemonSet, false),
            (Owner::Job, rules.wants(Field::CronJobUid)),
        ];
        kinds.extend(others.iter().filter(|(o, wanted)| *wanted || rules.extracts(*o)).map(|(o, _)| Kind::Of(*o)));
        kinds
    }

    fn query(&self, kind: Kind) -> Query {
        let filter = &self.rules.settings.filter;
        let namespace = filter.namespace.as_deref();
        let within = |group: &str, resource: &str| match namespace {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{resource}"),
            None => format!("{group}/{resource}"),
        };
        let named = |name: &str| format!("metadata.name={name}");
        let mut query = match kind {
            Kind::Pod => {
                let node = self.node.as_ref().map(|node| format!("spec.nodeName={node}"));
                let fields: Vec<&str> = [node.as_deref().unwrap_or(""), &*filter.fields].to_vec();
                let fields = fields.into_iter().filter(|field| !field.is_empty()).collect::<Vec<_>>().join(",");
                return Query { labels: filter.labels.clone(), fields, ..Query::all(within("/api/v1", "pods")) };
            }
            Kind::ReplicaSet => Query::all(within("/apis/apps/v1", "replicasets")),
            Kind::Of(Owner::Deployment) => Query::all(within("/apis/apps/v1", "deployments")),
            Kind::Of(Owner::StatefulSet) => Query::all(within("/apis/apps/v1", "statefulsets")),
            Kind::Of(Owner::DaemonSet) => Query::all(within("/apis/apps/v1", "daemonsets")),
            Kind::Of(Owner::Job) => Query::all(within("/apis/batch/v1", "jobs")),
            Kind::Of(Owner::Node) => {
                let fields = self.node.as_deref().map(named).unwrap_or_default();
                Query { fields, ..Query::all("/api/v1/nodes") }
            }
            Kind::Of(Owner::Namespace | Owner::Pod) => {
                let cluster_uid = self.rules.wants(Field::ClusterUid);
                let fields = match (self.rules.extracts(Owner::Namespace), namespace) {
                    (false, _) => named("kube-system"),
                    (true, Some(namespace)) if !cluster_uid => named(namespace),
                    (true, _) => String::new(),
                };
                Query { fields, ..Query::all("/api/v1/namespaces") }
            }
        };
        query.metadata_only = true;
        query
    }

    /// Notes what happened to a pod.
    fn pod(&self, event: Event<Pod>, listed: &mut HashSet<String>) {
        match event {
            Event::Begin => listed.clear(),
            Event::Applied(pod) => {
                listed.insert(pod.metadata.uid.clone());
                self.set_pod(&pod);
            }
            Event::Deleted(pod) => self.pod_gone(&pod.metadata.uid),
            Event::Complete => {
                let gone: Vec<String> =
                    self.state().pods.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
                gone.iter().for_each(|uid| self.pod_gone(uid));
                *listed = HashSet::new();
                self.complete(Kind::Pod);
            }
            Event::Resumed => self.answered(Kind::Pod.resource()),
            Event::Failed(error) => self.failed(Kind::Pod.resource(), &error),
        }
    }

    fn set_pod(&self, pod: &Pod) {
        let known = self.rules.pod(pod);
        self.change(|state| match known {
            None => state.remove_pod(&pod.metadata.uid),
            Some(known) => {
                let counter = if state.pods.contains_key(&known.uid) { &self.stats.updated } else { &self.stats.added };
                let kept = state.set_pod(known);
                if kept { counter } else { &self.stats.left_out }.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    fn pod_gone(&self, uid: &str) {
        let until = Instant::now() + self.rules.settings.grace;
        self.change(|state| {
            if state.pods.contains_key(uid) && !state.leaving.iter().any(|(_, gone)| gone == uid) {
                self.stats.deleted.fetch_add(1, Ordering::Relaxed);
                if let Some(pod) = state.pods.get(uid) {
                    pod.is_gone.store(true, Ordering::Relaxed);
                }
                state.leaving.push_back((until, uid.to_owned()));
            }
        });
    }

    /// Notes what happened to something else.
    fn other(&self, kind: Kind, event: Event<Any>, listed: &mut HashSet<String>) {
        match event {
            Event::Begin => listed.clear(),
            Event::Applied(object) => {
                listed.extend([name(kind, object.metadata()), object.metadata().uid.clone()]);
                self.set_other(kind, object.metadata());
            }
            Event::Deleted(object) => {
                let metadata = object.metadata();
                self.change(|state| state.remove(kind, name(kind, metadata), &metadata.uid));
            }
            Event::Complete => {
                self.change(|state| state.retain(kind, |known| listed.contains(known)));
                *listed = HashSet::new();
                self.complete(kind);
            }
            Event::Resumed => self.answered(kind.resource()),
            Event::Failed(error) => self.failed(kind.resource(), &error),
        }
    }

    fn set_other(&self, kind: Kind, metadata: &Metadata) {
        let maker = |of: &str| {
            let made_by = metadata.owner_references.iter().find(|owner| owner.kind == of);
            made_by.map(|owner| Maker { of: kind, name: owner.name.clone(), uid: owner.uid.clone() })
        };
        let maker = match kind {
            Kind::ReplicaSet => maker("Deployment"),
            Kind::Of(Owner::Job) => maker("CronJob"),
            _ => None,
        };
        let attributes = match kind {
            Kind::Of(owner) => self.rules.of_owner(owner, metadata),
            _ => Attributes::default(),
        };
        self.change(|state| {
            let uid = &metadata.uid;
            let mut kept = maker.is_none_or(|maker| state.set_maker(uid, maker));
            if let Kind::Of(owner) = kind {
                kept &= state.set_other(owner, name(kind, metadata), Other { uid: uid.clone(), attributes });
            }
            if !kept {
                self.stats.left_out.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    fn complete(&self, kind: Kind) {
        self.answered(kind.resource());
        let mut missing = lock(&self.missing);
        missing.remove(&kind);
        if missing.is_empty() && !self.ready.send_replace(true) {
            self.view.synced();
            tracing::info!(processor = %self.asker, pods = self.view.look().pods, "all metadata of the cluster is there");
        }
    }

    fn failed(&self, what: &'static str, error: &kubernetes::ApiError) {
        self.stats.failures.fetch_add(1, Ordering::Relaxed);
        self.view.failed(what, error.class(), error.said());
        tracing::warn!(processor = %self.asker, resource = what, %error,
            "the cluster cannot be asked; what is known so far is used");
    }

    fn answered(&self, what: &'static str) {
        if self.view.answered(what) {
            tracing::info!(processor = %self.asker, resource = what, "the cluster can be asked again");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        lock(&self.tasks).running.iter().for_each(AbortHandle::abort);
        self.change(|state| *state = State::default());
    }
}

impl Kind {
    fn resource(self) -> &'static str {
        match self {
            Self::Pod | Self::Of(Owner::Pod) => "pods",
            Self::ReplicaSet => "replicasets",
            Self::Of(Owner::Namespace) => "namespaces",
            Self::Of(Owner::Node) => "nodes",
            Self::Of(Owner::Deployment) => "deployments",
            Self::Of(Owner::StatefulSet) => "statefulsets",
            Self::Of(Owner::DaemonSet) => "daemonsets",
            Self::Of(Owner::Job) => "jobs",
        }
    }
}

/// What tells an object from others of its kind.
fn name(kind: Kind, metadata: &Metadata) -> String {
    match kind {
        Kind::Of(Owner::Namespace | Owner::Node) => metadata.name.clone(),
        _ => qualified(&metadata.namespace, &metadata.name),
    }
}

/// A name within its namespace.
pub(super) fn qualified(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The owner whose labels count, of a pod that was made so.
pub(super) fn owner_of(owned: Owned) -> Owner {
    match owned {
        Owned::ReplicaSet => Owner::Deployment,
        Owned::StatefulSet => Owner::StatefulSet,
        Owned::DaemonSet => Owner::DaemonSet,
        Owned::Job => Owner::Job,
    }
}

fn node(settings: &KubernetesAttributes) -> Option<String> {
    let variable = settings.filter.node_from_env_var.as_ref().and_then(|name| std::env::var(name).ok());
    variable.or_else(|| settings.filter.node.clone()).filter(|name| !name.is_empty())
}

/// What can be known to be wrong before the cluster is asked.
pub(super) fn check(settings: &KubernetesAttributes) -> Result<(), BuildError> {
    match &settings.filter.node_from_env_var {
        Some(name) if std::env::var_os(name).is_none_or(|value| value.is_empty()) => Err(BuildError(format!(
            "filter::node_from_env_var: the variable {name} is not set; give it to the pod by \
             `valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}`"
        ))),
        _ => Ok(()),
    }
}

fn access(settings: &KubernetesAttributes) -> AccessSource {
    match &settings.auth {
        ClusterAuth::None => AccessSource::Anonymous,
        ClusterAuth::ServiceAccount => AccessSource::ServiceAccount,
        ClusterAuth::KubeConfig { path, context } => {
            AccessSource::Kubeconfig { path: path.clone(), context: context.clone() }
        }
    }
}

/// Finds the API server, and then watches.
async fn find(cluster: Weak<Cluster>) {
    loop {
        let Some(found) = cluster.upgrade() else { return };
        let client = Access::find(&access(&found.rules.settings)).and_then(|access| Client::new(&access));
        match client {
            Ok(client) => {
                found.answered(EVERYTHING);
                return follow(&found, Arc::new(client));
            }
            Err(error) => found.failed(EVERYTHING, &error.into()),
        }
        drop(found);
        tokio::time::sleep(AGAIN).await;
    }
}

/// Watches all that the rules ask for.
fn follow(cluster: &Arc<Cluster>, client: Arc<Client>) {
    for kind in cluster.kinds() {
        let (client, query, weak) = (client.clone(), cluster.query(kind), Arc::downgrade(cluster));
        let task = match kind {
            Kind::Pod => tokio::spawn(async move {
                let mut listed = HashSet::new();
                let note = |event| weak.upgrade().map(|cluster| cluster.pod(event, &mut listed)).is_some();
                kubernetes::watch(&client, &query, note).await;
            }),
            kind => tokio::spawn(async move {
                let mut listed = HashSet::new();
                let note = |event| weak.upgrade().map(|cluster| cluster.other(kind, event, &mut listed)).is_some();
                kubernetes::watch(&client, &query, note).await;
            }),
        };
        cluster.keep(task.abort_handle());
    }
    let weak = Arc::downgrade(cluster);
    let sweep = tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP).await;
            let Some(cluster) = weak.upgrade() else { return };
            cluster.change(|state| state.sweep(Instant::now()));
        }
    });
    cluster.keep(sweep.abort_handle());
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
pub(super) mod testing;
