//! The embedded cluster: an API server with controllers, scheduler, nodes and proxy, in one process.
//!
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use kubewake_node::{cluster::{EmbeddedCluster, ClusterOptions}, images::{ImageEntrypoint, ImageStore}};
//!
//! let images = ImageStore::default().with_image("example/web", ImageEntrypoint::new("/usr/bin/python3"));
//! let cluster = EmbeddedCluster::start(ClusterOptions { images, ..ClusterOptions::default() }).await?;
//! let client = cluster.api().client()?;
//! // … create a Deployment of image example/web with kube-rs, and await that it is ready …
//! cluster.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! *Guaranteed*: when [`start`](EmbeddedCluster::start) returns, every node is Ready. When
//! [`stop`](EmbeddedCluster::stop) returns, no process of a pod runs and none of its files is left; after a
//! drop of the cluster or a kill of its process, that holds a moment later. With a data directory, the next
//! start restores objects and the directories of claims, and restarts the pods.

mod directory;
mod nodes;

use std::{fmt, future::Future, io, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use kube::Client;
use kubewake_apiserver::server::{self, ApiServer, client::ClientError};
use tokio::task::JoinSet;

use self::{directory::ClusterDirectory, nodes::NodeRegistry};
use crate::{
    addresses::{self, AddressBlock},
    cleanup_guard::CleanupGuard,
    client,
    controller::{self, autoscaler},
    error::ClusterError,
    events::EventRecorder,
    images::{ArchiveError, ImageStore},
    informers::InformerSet,
    kubelet::{BackoffRules, DEFAULT_USAGE_WINDOW, Kubelet, KubeletOptions, NodeCapacity, logs::LogRotation},
    proxy::ServiceProxy,
    scheduler,
};

/// The limit of a pod's grace period when the cluster stops.
const DEFAULT_MAX_POD_GRACE_PERIOD: Duration = Duration::from_secs(15);
/// The time that a stop may take beyond the grace period, to kill the remaining processes and to report it.
const NODE_STOP_MARGIN: Duration = Duration::from_secs(5);
/// How long a pod without its node is kept: the node may come back.
const ORPHAN_QUARANTINE: Duration = Duration::from_secs(40);

/// The options of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// The options of the API server. Its data directory is the cluster's; the cluster itself sets the range of
    /// Services and the nodes.
    pub api: server::Options,
    /// The number of nodes: 1 to [`addresses::MAX_NODES`].
    pub nodes: u8,
    /// The programs that nodes can run.
    pub images: ImageStore,
    /// Image archives that are imported into every node at the start.
    pub image_archives: Vec<PathBuf>,
    /// The capacity of each node.
    pub capacity: NodeCapacity,
    /// The restart backoff of containers.
    pub backoff: BackoffRules,
    /// The settings of the autoscaler.
    pub autoscaler: autoscaler::AutoscalerSettings,
    /// When container logs are rotated.
    pub log_rotation: LogRotation,
    /// The limit of a pod's grace period when the cluster stops.
    pub grace: Duration,
    /// Whether the cluster's own requests start no traces. Requests that create pods may start some all the
    /// same.
    pub quiet: bool,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            api: server::Options::default(),
            nodes: 1,
            images: ImageStore::default(),
            image_archives: Vec::new(),
            capacity: NodeCapacity::of_this_machine(),
            backoff: BackoffRules::default(),
            autoscaler: autoscaler::AutoscalerSettings::default(),
            log_rotation: LogRotation::default(),
            grace: DEFAULT_MAX_POD_GRACE_PERIOD,
            quiet: false,
        }
    }
}

/// The reason why a cluster does not start.
#[derive(Debug, thiserror::Error)]
pub enum ClusterStartError {
    #[error("a cluster has 1 to {most} nodes, not {0}", most = addresses::MAX_NODES)]
    Nodes(u8),
    #[error("failed to reserve addresses for the cluster")]
    Addresses(#[source] io::Error),
    #[error(
        "the Services in {directory:?} have addresses in 127.{block}.0.0/16, which another cluster on this machine uses: \
         stop that cluster first"
    )]
    AddressBlockTaken { directory: PathBuf, block: u8 },
    #[error(
        "the data directory {0:?} is in use by another cluster: stop that cluster first, or choose another directory"
    )]
    InUse(PathBuf),
    #[error("failed to use directory {path:?}")]
    Directory { path: PathBuf, source: io::Error },
    #[error("failed to use file {path:?}")]
    File { path: PathBuf, source: io::Error },
    #[error("failed to load the images of the nodes")]
    Images(#[from] ArchiveError),
    #[error("failed to start the cleanup guard of the cluster")]
    Guard(#[source] io::Error),
    #[error("failed to start the API server")]
    Api(#[from] server::ServerStartError),
    #[error("failed to create a client of the API server")]
    Client(#[from] ClientError),
    #[error("failed to start a node")]
    Node(#[from] ClusterError),
}

pub struct EmbeddedCluster {
    api: ApiServer,
    kubelets: Vec<Kubelet>,
    /// Controllers, watches and proxies: aborted on drop.
    tasks: JoinSet<()>,
    guard: CleanupGuard,
    grace: Duration,
    /// Keeps the addresses reserved as long as the cluster runs.
    _block: AddressBlock,
}

impl fmt::Debug for EmbeddedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCluster").field("api", &self.api.url()).field("nodes", &self.kubelets.len()).finish()
    }
}

impl EmbeddedCluster {
    /// Starts a cluster. When this returns, its nodes are Ready.
    ///
    /// # Errors
    /// If a component cannot be started; nothing is left behind then.
    pub async fn start(options: ClusterOptions) -> Result<Self, ClusterStartError> {
        start_boxed(options).await
    }

    async fn start_components(options: ClusterOptions) -> Result<Self, ClusterStartError> {
        if !(1..=addresses::MAX_NODES).contains(&options.nodes) {
            return Err(ClusterStartError::Nodes(options.nodes));
        }
        let directory = ClusterDirectory::open(options.api.data_dir.as_deref())?;
        let block = directory.acquire_block()?;
        let guard = CleanupGuard::start(directory.run()).map_err(|error| {
            directory.remove();
            ClusterStartError::Guard(error)
        })?;
        let nodes = Arc::new(NodeRegistry::default());
        let api = ApiServer::start(server::Options {
            service_range: block.services(),
            nodes: Some(Arc::clone(&nodes) as _),
            service_accounts: true,
            ..options.api.clone()
        })
        .await?;
        let mut starting = ClusterStartup {
            options: &options,
            directory: &directory,
            guard: &guard,
            api: &api,
            tasks: JoinSet::new(),
        };
        let views = starting.start_informers().await?;
        starting.start_controllers(&views, &nodes)?;
        let kubelets = starting.start_nodes(&views, &block).await?;
        nodes.set_kubelets(&kubelets);
        Ok(Self { tasks: starting.tasks, api, kubelets, guard, grace: options.grace, _block: block })
    }

    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// Stops all processes, then everything else. Objects stay unchanged: with a data directory, the next start
    /// continues with them.
    ///
    /// # Errors
    /// If the result of the cleanup guard is unknown.
    pub async fn stop(mut self) -> io::Result<()> {
        let grace = self.grace;
        tracing::info!(limit = ?grace, "stopping: terminating pods");
        let stops = futures_util::future::join_all(self.kubelets.iter().map(|kubelet| kubelet.stop(grace)));
        if tokio::time::timeout(grace + NODE_STOP_MARGIN, stops).await.is_err() {
            tracing::warn!("some pods did not terminate within the limit; killing their remaining processes");
        }
        self.tasks.shutdown().await;
        self.api.stop().await;
        let guard = self.guard;
        tokio::task::spawn_blocking(move || guard.stop()).await.map_err(io::Error::other)?
    }
}

/// Boxed, so that the startup code is compiled with this crate and not again with each program.
fn start_boxed(
    options: ClusterOptions,
) -> Pin<Box<dyn Future<Output = Result<EmbeddedCluster, ClusterStartError>> + Send>> {
    Box::pin(EmbeddedCluster::start_components(options))
}

/// A cluster that is starting.
struct ClusterStartup<'a> {
    options: &'a ClusterOptions,
    directory: &'a ClusterDirectory,
    guard: &'a CleanupGuard,
    api: &'a ApiServer,
    tasks: JoinSet<()>,
}

impl ClusterStartup<'_> {
    async fn start_informers(&mut self) -> Result<InformerSet, ClusterStartError> {
        let views = InformerSet::default();
        views.start_all(&self.connect_as("kube-controller-manager")?, &mut self.tasks).await;
        Ok(views)
    }

    fn start_controllers(&mut self, views: &InformerSet, nodes: &Arc<NodeRegistry>) -> Result<(), ClusterStartError> {
        let client = self.connect_as("kube-controller-manager")?;
        let authority = self.ca_certificate_pem();
        let client = &client;
        let tasks = &mut self.tasks;
        controller::start::<controller::deployment::DeploymentController>(client, views, tasks);
        controller::start::<controller::replicaset::ReplicaSetController>(client, views, tasks);
        controller::start::<controller::statefulset::StatefulSetController>(client, views, tasks);
        controller::start::<controller::daemonset::DaemonSetController>(client, views, tasks);
        controller::start::<controller::claims::PersistentVolumeController>(client, views, tasks);
        controller::start::<controller::endpoints::EndpointSliceController>(client, views, tasks);
        controller::start::<controller::loadbalancers::LoadBalancerController>(client, views, tasks);
        controller::nodes::start(client, views, ORPHAN_QUARANTINE, tasks);
        controller::namespace_defaults::start(client, views, authority, tasks);
        let usage = Arc::clone(nodes) as _;
        autoscaler::start(client, views, usage, self.options.autoscaler, tasks);
        scheduler::start(&self.connect_as("kube-scheduler")?, views, &mut self.tasks);
        let events = EventRecorder::new(self.connect_as("kube-proxy")?, "kube-proxy", None);
        ServiceProxy::start(views, events, &mut self.tasks);
        Ok(())
    }

    async fn start_nodes(
        &mut self,
        views: &InformerSet,
        block: &AddressBlock,
    ) -> Result<Vec<Kubelet>, ClusterStartError> {
        let client = self.connect_as("kubelet")?;
        let images = Arc::new(self.import_images().await?);
        let mut kubelets = Vec::new();
        for index in 0..self.options.nodes {
            let name = format!("node-{}", index + 1);
            let range = block.node(index.into()).ok_or(ClusterStartError::Nodes(self.options.nodes))?;
            let options = KubeletOptions {
                dir: self.directory.run().join(&name),
                claims: self.directory.claims(),
                host: self.directory.host(&name),
                name,
                range,
                capacity: self.options.capacity,
                images: Arc::clone(&images),
                tag: self.guard.cluster_tag().clone(),
                backoff: self.options.backoff,
                log_rotation: self.options.log_rotation,
                usage_window: self.options.autoscaler.period.min(DEFAULT_USAGE_WINDOW),
                api_server: self.api.address(),
            };
            kubelets.push(Kubelet::start(options, client.clone(), views, &mut self.tasks).await?);
        }
        Ok(kubelets)
    }

    /// Imports all image archives. Their files are unpacked in the directory of this run.
    async fn import_images(&self) -> Result<ImageStore, ClusterStartError> {
        let mut images = self.options.images.clone();
        let archives = self.options.image_archives.clone();
        let folder = self.directory.run().join("images");
        let import = move || {
            for archive in &archives {
                let names = images.import(archive, &folder)?;
                tracing::info!(?archive, ?names, "imported images");
            }
            Ok::<_, ArchiveError>(images)
        };
        let imported = tokio::task::spawn_blocking(import).await;
        imported.map_err(|_| ClusterStartError::Node(ClusterError::Panicked))?.map_err(ClusterStartError::Images)
    }

    fn ca_certificate_pem(&self) -> String {
        self.api.kubeconfig().certificate_authority.unwrap_or_default()
    }

    /// Creates a client for a component. All components are administrators; the user name becomes the field
    /// manager.
    fn connect_as(&self, who: &str) -> Result<Client, ClusterStartError> {
        let mut config = self.api.client_config()?;
        let agent = format!("{who}/kubewake-{}", env!("CARGO_PKG_VERSION"));
        config.headers.extend(agent.parse().map(|agent| (http::header::USER_AGENT, agent)));
        client::connect(&config, self.options.quiet).map_err(|error| ClusterStartError::Node(error.into()))
    }
}
