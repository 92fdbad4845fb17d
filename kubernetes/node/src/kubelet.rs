//! A node: it runs the pods that are bound to it as processes of this machine.
//!
//! Each pod has a [worker](pod). The node gets its pods from the shared informer and reports their status.
//! *Guaranteed*: all pods bound to the node run there, whether they were bound before or after its start. *Not
//! done*: features that the processes of one user cannot have (security contexts, limits of CPU and memory,
//! other users), ephemeral containers, `exec`, `attach` and `port-forward`.

mod admission;
pub mod downward;
pub mod env;
pub mod logs;
pub mod node_facts;
mod node_status;
mod pod;
pub mod probe;
pub mod process;
pub mod sources;
pub mod status;
pub mod tokens;
mod usage;
pub mod volumes;
pub mod wildcard_listeners;
mod wildcard_monitor;
mod workers;

use std::{
    fmt, fs::DirBuilder, net::SocketAddr, os::unix::fs::DirBuilderExt, path::PathBuf, pin::pin, sync::Arc,
    time::Duration,
};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ContainerStatus;
use kube::{Client, ResourceExt};
use kubewake_apiserver::{
    api::StatusError,
    kubelet_client::{self, LogRequest},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use self::{
    logs::{ContainerLogStore, LogError, LogRotation},
    node_facts::NodeFacts,
    probe::ProbeChecker,
    sources::SourceReader,
    usage::UsageMeter,
    wildcard_monitor::WildcardMonitor,
    workers::PodWorkers,
};
pub use self::{node_status::NodeCapacity, pod::BackoffRules};
use crate::{
    addresses::NodeRange,
    error::{ClusterError, Result},
    events::EventRecorder,
    images::ImageStore,
    informers::InformerSet,
    key::NamespacedKey,
    process_tags::{ClusterTag, ProcessSweeper},
    scheduler::resources::ResourceAmounts,
    usage::{PodUsage, UsageProvider},
};

/// The interval of metrics-server.
pub const DEFAULT_USAGE_WINDOW: Duration = Duration::from_secs(15);

/// Chunks of a log that are buffered for a reader; at most 64 KiB each.
const MAX_BUFFERED_LOG_CHUNKS: usize = 4;

/// The options of a node.
#[derive(Clone, Debug)]
pub struct KubeletOptions {
    /// The name of the node and of its Node object.
    pub name: String,
    /// The addresses of the node and its pods.
    pub range: NodeRange,
    /// The capacity of the node.
    pub capacity: NodeCapacity,
    /// The directory of the node's pods. It is not shared.
    pub dir: PathBuf,
    /// The root of the files that the node has like a machine of its own: container logs, which are kept until
    /// their pod is deleted, and what pods keep on their node. It is not shared.
    pub host: PathBuf,
    /// The directories of persistent volume claims. Nodes of one cluster may share it.
    pub claims: PathBuf,
    /// The address at which pods reach the API server.
    pub api_server: SocketAddr,
    /// The programs that it can run.
    pub images: Arc<ImageStore>,
    pub tag: ClusterTag,
    /// The restart backoff of containers.
    pub backoff: BackoffRules,
    /// When container logs are rotated.
    pub log_rotation: LogRotation,
    /// The window over which CPU usage is averaged.
    pub usage_window: Duration,
}

/// The shared state of a node.
pub(crate) struct NodeAgent {
    options: KubeletOptions,
    client: Client,
    informers: InformerSet,
    events: EventRecorder,
    logs: ContainerLogStore,
    probe_checker: ProbeChecker,
    meter: UsageMeter,
    wildcards: WildcardMonitor,
    sweeper: ProcessSweeper,
    /// The facts about the node that its pods can see.
    facts: Arc<NodeFacts>,
    sources: Arc<SourceReader>,
    /// The time by which all processes must have ended, once the node stops.
    stop_deadline: watch::Sender<Option<Instant>>,
}

impl fmt::Debug for NodeAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.options.name)
    }
}

impl NodeAgent {
    fn is_stopping(&self) -> bool {
        self.stop_deadline.borrow().is_some()
    }

    /// Waits until the node is to stop.
    async fn wait_until_stopping(&self) {
        // `self` holds the sender, so the channel stays open.
        let _ = self.stop_deadline.subscribe().wait_for(Option::is_some).await;
    }

    /// The resources for pods.
    fn allocatable(&self) -> ResourceAmounts {
        ResourceAmounts::from_quantities(Some(&self.facts.allocatable))
    }

    async fn open_log(
        &self,
        request: LogRequest,
        status: Option<ContainerStatus>,
    ) -> Result<kubelet_client::LogStream, StatusError> {
        let pieces = self.logs.open(&request, status.as_ref()).await.map_err(|error| match error {
            LogError::Read(error) => {
                tracing::warn!(pod = request.pod, container = request.container, %error, "failed to read the container's log");
                StatusError::internal("failed to read the log of the container")
            }
            LogError::NotStarted { .. } | LogError::NoPrevious { .. } | LogError::NotStored { .. } => {
                StatusError::bad_request(error.to_string())
            }
        })?;
        let (sender, output) = mpsc::channel(MAX_BUFFERED_LOG_CHUNKS);
        tokio::spawn(async move {
            let mut pieces = pin!(pieces);
            while let Some(piece) = tokio::select! {
                piece = pieces.next() => piece,
                () = sender.closed() => None,
            } {
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
        });
        Ok(output)
    }
}

/// A running node. Clones share their state; dropping the last one kills the node's processes.
#[derive(Clone, Debug)]
pub struct Kubelet {
    node: Arc<NodeAgent>,
    workers: Arc<PodWorkers>,
}

impl Kubelet {
    /// Registers the node and runs the pods that are bound to it. `tasks` contains its heartbeat.
    ///
    /// # Errors
    /// If the API server rejects the Node.
    pub async fn start(
        options: KubeletOptions,
        client: Client,
        views: &InformerSet,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        let node = Arc::new(NodeAgent {
            events: EventRecorder::new(client.clone(), "kubelet", Some(&options.name)),
            logs: create_logs(&options)?,
            probe_checker: ProbeChecker::default(),
            meter: UsageMeter::new(options.usage_window),
            wildcards: WildcardMonitor::default(),
            sweeper: ProcessSweeper::start(),
            facts: Arc::new(node_facts(&options)),
            sources: SourceReader::new(client.clone(), views),
            stop_deadline: watch::Sender::new(None),
            options,
            client,
            informers: views.clone(),
        });
        node.register().await?;
        node.logs.remove_others(|| views.pods.all().iter().filter_map(|pod| pod.uid()).collect());
        volumes::claims::remove_dirs_of_deleted_claims(&node.options.claims, views);
        let workers = Arc::new(PodWorkers::new(Arc::clone(&node)));
        let told = Arc::downgrade(&workers);
        views.pods.on_change(move |change| {
            if let Some(workers) = told.upgrade() {
                workers.handle_change(&told, change);
            }
        });
        let alive = Arc::clone(&node);
        tasks.spawn(async move { alive.run_heartbeat().await });
        tasks.spawn(node.wildcards.clone().run());
        tasks.spawn(node.logs.clone().maintain());
        Ok(Self { node, workers })
    }

    /// The name of the node and of its Node object.
    pub fn name(&self) -> &str {
        &self.node.options.name
    }

    /// Opens the log of a container for the API server.
    ///
    /// # Errors
    /// If there is no log to read; the message is the kubelet's.
    pub async fn open_log(&self, request: LogRequest) -> Result<kubelet_client::LogStream, StatusError> {
        let status = self.workers.container_status(&request.uid, &request.container);
        self.node.open_log(request, status).await
    }

    /// Terminates all processes, kills those that remain after the grace period of their pod or this limit, and
    /// returns when all have ended. The pods stay in the API, with the final state of their containers: a node
    /// that starts again restarts them.
    pub async fn stop(&self, limit: Duration) {
        self.node.stop_deadline.send_replace(Some(Instant::now() + limit));
        let mut count = self.workers.count.subscribe();
        // `self` holds the sender, so the channel stays open.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

/// Creates the root of the node's own files, which only their owner may read, and its logs.
fn create_logs(options: &KubeletOptions) -> Result<ContainerLogStore> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(&options.host);
    let created = created.and_then(|()| ContainerLogStore::create(&options.host, options.log_rotation));
    created.map_err(|source| ClusterError::Io {
        what: format!("failed to create the directory {} of node {}", options.host.display(), options.name),
        source,
    })
}

fn node_facts(options: &KubeletOptions) -> NodeFacts {
    NodeFacts {
        name: options.name.clone(),
        address: options.range.address().into(),
        api_server: options.api_server,
        allocatable: options.capacity.quantities(),
        claims: options.claims.clone(),
        host: options.host.clone(),
        environment: node_facts::inherited_environment(),
    }
}

impl UsageProvider for Kubelet {
    fn pod_usage(&self, pod: &NamespacedKey) -> Option<PodUsage> {
        self.node.meter.pod_usage(pod)
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
