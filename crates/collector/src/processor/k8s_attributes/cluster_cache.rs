//! Cache of the cluster's pods and their owners, kept current by watches.
//!
//! *Guaranteed*: of every object only what the rules ask for is kept, and only objects that they ask for are
//! watched. The cache is bounded: beyond [`MAX_POD_BYTES`](super::cluster_state::MAX_POD_BYTES) no further pod
//! is added, and beyond [`MAX_OBJECT_BYTES`](super::cluster_state::MAX_OBJECT_BYTES) no other object, which is
//! counted. A deleted pod is remembered for a while, since its data may come late, unless another pod has its
//! address by then. *Not done*: objects that were left out are not requested again when there is room; they are
//! added with their next change.

use std::{
    collections::HashSet,
    sync::{Arc, RwLockReadGuard, Weak, atomic::Ordering},
    time::Duration,
};

use kubewake_config::{
    ComponentId,
    model::{ClusterAuth, ExtractFrom, Field, KubernetesAttributesProcessor},
};
use kubewake_runtime::lock::{Mutex, RwLock};
use tokio::{sync::watch, task::AbortHandle, time::Instant};

use super::{
    cluster_state::{ClusterObjects, ObjectRecord, WorkloadOwner},
    extraction_rules::{ExtractionRules, PodController, ResourceAttributes},
    objects::{MetadataOnly, WatchedPod},
};
use crate::{
    components::BuildError,
    core::{ClusterStats, ClusterView},
    kubernetes::{
        self, AccessSource, ApiClient, ClusterAccess, ObjectEvent, ObjectMetadata, WatchQuery, WatchedObject,
    },
};

/// How often expired records of deleted pods are removed.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Pause before the API server is looked up again.
const CONNECT_RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Label of the resources that cannot be watched while the API server is unknown.
const ALL_RESOURCES: &str = "all";

/// The view of a cluster by the rules of a processor.
pub(super) struct ClusterCache {
    pub(super) rules: ExtractionRules,
    /// Limits the view to the pods of one node.
    node: Option<String>,
    state: RwLock<ClusterObjects>,
    ready: watch::Sender<bool>,
    /// Kinds whose lists are not complete.
    missing: Mutex<HashSet<WatchedKind>>,
    stats: Arc<ClusterStats>,
    pub(super) view: Arc<ClusterView>,
    /// The processor that requested the view first, for logs.
    first_user: ComponentId,
    tasks: Mutex<WatchTasks>,
}

/// The watches of a cluster, and the number of processors that use them.
#[derive(Default)]
struct WatchTasks {
    running: Vec<AbortHandle>,
    users: usize,
    /// The last processor in a pipeline is gone. The cache stays for data that it still hands on.
    is_stopped: bool,
}

/// Marks a processor in a pipeline as a user of the cluster. With the last user of a cluster its watches end.
pub(super) struct ClusterUser(Arc<ClusterCache>);

impl ClusterUser {
    /// Registers a user; `None` if the watches have ended.
    pub(super) fn begin(cluster: &Arc<ClusterCache>) -> Option<Self> {
        let mut tasks = cluster.tasks.lock();
        if tasks.is_stopped {
            return None;
        }
        tasks.users += 1;
        Some(Self(cluster.clone()))
    }
}

impl Drop for ClusterUser {
    fn drop(&mut self) {
        let mut tasks = self.0.tasks.lock();
        tasks.users -= 1;
        if tasks.users == 0 {
            tasks.is_stopped = true;
            tasks.running.drain(..).for_each(|task| task.abort());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WatchedKind {
    Pod,
    ReplicaSet,
    Of(ExtractFrom),
}

impl ClusterCache {
    /// Starts to watch the cluster.
    pub(super) fn start(
        settings: &KubernetesAttributesProcessor,
        stats: Arc<ClusterStats>,
        asker: &ComponentId,
    ) -> Arc<Self> {
        let cluster = Self::new(settings, stats, asker);
        let task = tokio::spawn(connect_and_watch(Arc::downgrade(&cluster)));
        cluster.track_task(task.abort_handle());
        cluster
    }

    fn new(settings: &KubernetesAttributesProcessor, stats: Arc<ClusterStats>, asker: &ComponentId) -> Arc<Self> {
        let rules = ExtractionRules { settings: settings.clone() };
        let cluster = Self {
            node: node_filter(settings),
            state: RwLock::default(),
            ready: watch::Sender::new(false),
            missing: Mutex::default(),
            stats,
            view: Arc::default(),
            first_user: asker.clone(),
            tasks: Mutex::default(),
            rules,
        };
        *cluster.missing.lock() = cluster.kinds().into_iter().collect();
        Arc::new(cluster)
    }

    pub(super) fn state(&self) -> RwLockReadGuard<'_, ClusterObjects> {
        self.state.read()
    }

    /// Becomes true when all requested lists were complete once.
    pub(super) fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Whether the watches have ended.
    pub(super) fn is_stopped(&self) -> bool {
        self.tasks.lock().is_stopped
    }

    fn track_task(&self, task: AbortHandle) {
        let mut tasks = self.tasks.lock();
        if tasks.is_stopped { task.abort() } else { tasks.running.push(task) }
    }

    fn update_state(&self, change: impl FnOnce(&mut ClusterObjects)) {
        let mut state = self.state.write();
        let pods = state.pods.len();
        let held = state.held_bytes();
        change(&mut state);
        // Adds the difference, since another cluster may count in the same metric.
        self.stats.pods.fetch_add(state.pods.len().wrapping_sub(pods) as u64, Ordering::Relaxed);
        self.stats.held.fetch_add(state.held_bytes().wrapping_sub(held) as u64, Ordering::Relaxed);
        self.view.pods.store(state.pods.len() as u64, Ordering::Relaxed);
    }

    /// The kinds that the rules need, and no other.
    fn kinds(&self) -> Vec<WatchedKind> {
        let rules = &self.rules;
        let by_name = rules.settings.deployment_by_name;
        let mut kinds = vec![WatchedKind::Pod];
        let names_deployments = rules.wants_any(&[Field::DeploymentName, Field::ServiceName]);
        if rules.wants(Field::DeploymentUid) || rules.extracts(ExtractFrom::Deployment) || names_deployments && !by_name
        {
            kinds.push(WatchedKind::ReplicaSet);
        }
        let others = [
            (ExtractFrom::Namespace, rules.wants(Field::ClusterUid)),
            (ExtractFrom::Node, rules.wants(Field::NodeUid)),
            (ExtractFrom::Deployment, false),
            (ExtractFrom::StatefulSet, false),
            (ExtractFrom::DaemonSet, false),
            (ExtractFrom::Job, rules.wants(Field::CronJobUid)),
        ];
        kinds.extend(
            others.iter().filter(|(o, wanted)| *wanted || rules.extracts(*o)).map(|(o, _)| WatchedKind::Of(*o)),
        );
        kinds
    }

    fn query(&self, kind: WatchedKind) -> WatchQuery {
        let filter = &self.rules.settings.filter;
        let namespace = filter.namespace.as_deref();
        let within = |group: &str, resource: &str| match namespace {
            Some(namespace) => format!("{group}/namespaces/{namespace}/{resource}"),
            None => format!("{group}/{resource}"),
        };
        let named = |name: &str| format!("metadata.name={name}");
        let mut query = match kind {
            WatchedKind::Pod => {
                let node = self.node.as_ref().map(|node| format!("spec.nodeName={node}"));
                let fields: Vec<&str> = [node.as_deref().unwrap_or(""), &*filter.fields].to_vec();
                let fields = fields.into_iter().filter(|field| !field.is_empty()).collect::<Vec<_>>().join(",");
                return WatchQuery {
                    labels: filter.labels.clone(),
                    fields,
                    ..WatchQuery::all(within("/api/v1", "pods"))
                };
            }
            WatchedKind::ReplicaSet => WatchQuery::all(within("/apis/apps/v1", "replicasets")),
            WatchedKind::Of(ExtractFrom::Deployment) => WatchQuery::all(within("/apis/apps/v1", "deployments")),
            WatchedKind::Of(ExtractFrom::StatefulSet) => WatchQuery::all(within("/apis/apps/v1", "statefulsets")),
            WatchedKind::Of(ExtractFrom::DaemonSet) => WatchQuery::all(within("/apis/apps/v1", "daemonsets")),
            WatchedKind::Of(ExtractFrom::Job) => WatchQuery::all(within("/apis/batch/v1", "jobs")),
            WatchedKind::Of(ExtractFrom::Node) => {
                let fields = self.node.as_deref().map(named).unwrap_or_default();
                WatchQuery { fields, ..WatchQuery::all("/api/v1/nodes") }
            }
            WatchedKind::Of(ExtractFrom::Namespace | ExtractFrom::Pod) => {
                let cluster_uid = self.rules.wants(Field::ClusterUid);
                let fields = match (self.rules.extracts(ExtractFrom::Namespace), namespace) {
                    (false, _) => named("kube-system"),
                    (true, Some(namespace)) if !cluster_uid => named(namespace),
                    (true, _) => String::new(),
                };
                WatchQuery { fields, ..WatchQuery::all("/api/v1/namespaces") }
            }
        };
        query.metadata_only = true;
        query
    }

    /// Handles a watch event of a pod.
    fn on_pod_event(&self, event: ObjectEvent<WatchedPod>, listed: &mut HashSet<String>) {
        match event {
            ObjectEvent::ListStarted => listed.clear(),
            ObjectEvent::Applied(pod) => {
                listed.insert(pod.metadata.uid.clone());
                self.set_pod(&pod);
            }
            ObjectEvent::Deleted(pod) => self.mark_pod_gone(&pod.metadata.uid),
            ObjectEvent::ListCompleted => {
                let gone: Vec<String> =
                    self.state().pods.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
                gone.iter().for_each(|uid| self.mark_pod_gone(uid));
                *listed = HashSet::new();
                self.mark_synced(WatchedKind::Pod);
            }
            ObjectEvent::Resumed => self.record_answer(WatchedKind::Pod.resource()),
            ObjectEvent::Failed(error) => self.record_failure(WatchedKind::Pod.resource(), &error),
        }
    }

    fn set_pod(&self, pod: &WatchedPod) {
        let known = self.rules.pod_record(pod);
        self.update_state(|state| match known {
            None => state.remove_pod(&pod.metadata.uid),
            Some(known) => {
                let counter = if state.pods.contains_key(&known.uid) { &self.stats.updated } else { &self.stats.added };
                let kept = state.set_pod(known);
                if kept { counter } else { &self.stats.left_out }.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    fn mark_pod_gone(&self, uid: &str) {
        let until = Instant::now() + self.rules.settings.grace;
        self.update_state(|state| {
            if state.pods.contains_key(uid) && !state.leaving.iter().any(|(_, gone)| gone == uid) {
                self.stats.deleted.fetch_add(1, Ordering::Relaxed);
                if let Some(pod) = state.pods.get(uid) {
                    pod.is_gone.store(true, Ordering::Relaxed);
                }
                state.leaving.push_back((until, uid.to_owned()));
            }
        });
    }

    /// Handles a watch event of another object.
    fn on_object_event(&self, kind: WatchedKind, event: ObjectEvent<MetadataOnly>, listed: &mut HashSet<String>) {
        match event {
            ObjectEvent::ListStarted => listed.clear(),
            ObjectEvent::Applied(object) => {
                listed.extend([object_name(kind, object.metadata()), object.metadata().uid.clone()]);
                self.set_object(kind, object.metadata());
            }
            ObjectEvent::Deleted(object) => {
                let metadata = object.metadata();
                self.update_state(|state| state.remove_object(kind, object_name(kind, metadata), &metadata.uid));
            }
            ObjectEvent::ListCompleted => {
                self.update_state(|state| state.retain_objects(kind, |known| listed.contains(known)));
                *listed = HashSet::new();
                self.mark_synced(kind);
            }
            ObjectEvent::Resumed => self.record_answer(kind.resource()),
            ObjectEvent::Failed(error) => self.record_failure(kind.resource(), &error),
        }
    }

    fn set_object(&self, kind: WatchedKind, metadata: &ObjectMetadata) {
        let maker = |of: &str| {
            let made_by = metadata.owner_references.iter().find(|owner| owner.kind == of);
            made_by.map(|owner| WorkloadOwner { kind, name: owner.name.clone(), uid: owner.uid.clone() })
        };
        let maker = match kind {
            WatchedKind::ReplicaSet => maker("Deployment"),
            WatchedKind::Of(ExtractFrom::Job) => maker("CronJob"),
            _ => None,
        };
        let attributes = match kind {
            WatchedKind::Of(owner) => self.rules.owner_attributes(owner, metadata),
            _ => ResourceAttributes::default(),
        };
        self.update_state(|state| {
            let uid = &metadata.uid;
            let mut kept = maker.is_none_or(|maker| state.set_workload_owner(uid, maker));
            if let WatchedKind::Of(owner) = kind {
                kept &=
                    state.set_object(owner, object_name(kind, metadata), ObjectRecord { uid: uid.clone(), attributes });
            }
            if !kept {
                self.stats.left_out.fetch_add(1, Ordering::Relaxed);
            }
        });
    }

    fn mark_synced(&self, kind: WatchedKind) {
        self.record_answer(kind.resource());
        let mut missing = self.missing.lock();
        missing.remove(&kind);
        if missing.is_empty() && !self.ready.send_replace(true) {
            self.view.mark_synced();
            tracing::info!(processor = %self.first_user, pods = self.view.snapshot().pods,
                "the metadata of the cluster is complete");
        }
    }

    fn record_failure(&self, what: &'static str, error: &kubernetes::ApiError) {
        self.stats.failures.fetch_add(1, Ordering::Relaxed);
        self.view.record_failure(what, error.class(), error.backend_status());
        tracing::warn!(processor = %self.first_user, resource = what, %error,
            "failed to read from the Kubernetes API; the known metadata stays in use");
    }

    fn record_answer(&self, what: &'static str) {
        if self.view.record_answer(what) {
            tracing::info!(processor = %self.first_user, resource = what, "the Kubernetes API responds again");
        }
    }
}

impl Drop for ClusterCache {
    fn drop(&mut self) {
        self.tasks.lock().running.iter().for_each(AbortHandle::abort);
        self.update_state(|state| *state = ClusterObjects::default());
    }
}

impl WatchedKind {
    fn resource(self) -> &'static str {
        match self {
            Self::Pod | Self::Of(ExtractFrom::Pod) => "pods",
            Self::ReplicaSet => "replicasets",
            Self::Of(ExtractFrom::Namespace) => "namespaces",
            Self::Of(ExtractFrom::Node) => "nodes",
            Self::Of(ExtractFrom::Deployment) => "deployments",
            Self::Of(ExtractFrom::StatefulSet) => "statefulsets",
            Self::Of(ExtractFrom::DaemonSet) => "daemonsets",
            Self::Of(ExtractFrom::Job) => "jobs",
        }
    }
}

/// The name that identifies an object within its kind.
fn object_name(kind: WatchedKind, metadata: &ObjectMetadata) -> String {
    match kind {
        WatchedKind::Of(ExtractFrom::Namespace | ExtractFrom::Node) => metadata.name.clone(),
        _ => qualified_name(&metadata.namespace, &metadata.name),
    }
}

/// The name with its namespace.
pub(super) fn qualified_name(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// The kind of a controller whose labels and annotations can be extracted.
pub(super) fn workload_kind(owned: PodController) -> ExtractFrom {
    match owned {
        PodController::ReplicaSet => ExtractFrom::Deployment,
        PodController::StatefulSet => ExtractFrom::StatefulSet,
        PodController::DaemonSet => ExtractFrom::DaemonSet,
        PodController::Job => ExtractFrom::Job,
    }
}

fn node_filter(settings: &KubernetesAttributesProcessor) -> Option<String> {
    let variable = settings.filter.node_from_env_var.as_ref().and_then(|name| std::env::var(name).ok());
    variable.or_else(|| settings.filter.node.clone()).filter(|name| !name.is_empty())
}

/// Checks the settings as far as possible without the API server.
pub(super) fn check(settings: &KubernetesAttributesProcessor) -> Result<(), BuildError> {
    match &settings.filter.node_from_env_var {
        Some(name) if std::env::var_os(name).is_none_or(|value| value.is_empty()) => Err(BuildError(format!(
            "filter::node_from_env_var: the variable {name} is not set; set it in the pod with \
             `valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}`"
        ))),
        _ => Ok(()),
    }
}

fn access_source(settings: &KubernetesAttributesProcessor) -> AccessSource {
    match &settings.auth {
        ClusterAuth::None => AccessSource::Anonymous,
        ClusterAuth::ServiceAccount => AccessSource::ServiceAccount,
        ClusterAuth::KubeConfig { path, context } => {
            AccessSource::Kubeconfig { path: path.clone(), context: context.clone() }
        }
    }
}

/// Connects to the API server, and then watches.
async fn connect_and_watch(cluster: Weak<ClusterCache>) {
    loop {
        let Some(found) = cluster.upgrade() else { return };
        let settings = &found.rules.settings;
        let access = ClusterAccess::discover(&access_source(settings), &settings.service_account);
        let client = access.and_then(|access| ApiClient::new(&access));
        match client {
            Ok(client) => {
                found.record_answer(ALL_RESOURCES);
                return start_watches(&found, Arc::new(client));
            }
            Err(error) => found.record_failure(ALL_RESOURCES, &error.into()),
        }
        drop(found);
        tokio::time::sleep(CONNECT_RETRY_INTERVAL).await;
    }
}

/// Starts the watches that the rules need.
fn start_watches(cluster: &Arc<ClusterCache>, client: Arc<ApiClient>) {
    for kind in cluster.kinds() {
        let client = client.clone();
        let query = cluster.query(kind);
        let weak = Arc::downgrade(cluster);
        let task = match kind {
            WatchedKind::Pod => tokio::spawn(async move {
                let mut listed = HashSet::new();
                let note = |event| weak.upgrade().map(|cluster| cluster.on_pod_event(event, &mut listed)).is_some();
                kubernetes::watch(&client, &query, note).await;
            }),
            kind => tokio::spawn(async move {
                let mut listed = HashSet::new();
                let note =
                    |event| weak.upgrade().map(|cluster| cluster.on_object_event(kind, event, &mut listed)).is_some();
                kubernetes::watch(&client, &query, note).await;
            }),
        };
        cluster.track_task(task.abort_handle());
    }
    let weak = Arc::downgrade(cluster);
    let sweep = tokio::spawn(async move {
        loop {
            tokio::time::sleep(SWEEP_INTERVAL).await;
            let Some(cluster) = weak.upgrade() else { return };
            cluster.update_state(|state| state.sweep(Instant::now()));
        }
    });
    cluster.track_task(sweep.abort_handle());
}

#[cfg(test)]
pub(super) mod testing;
