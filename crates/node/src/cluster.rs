//! The embedded cluster: an API server with everything that stands around it, in one process.
//!
//! ```no_run
//! # async fn f() -> Result<(), Box<dyn std::error::Error>> {
//! use kubewake_node::{cluster::{EmbeddedCluster, Options}, images::{Images, Program}};
//!
//! let images = Images::default().with("example/web", Program::new("/usr/bin/python3"));
//! let cluster = EmbeddedCluster::start(Options { images, ..Options::default() }).await?;
//! let client = cluster.api().client()?;
//! // … create a Deployment of image example/web with kube-rs, and await that it is ready …
//! cluster.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! *Guarantees.* When [`start`](EmbeddedCluster::start) returns, every node is Ready. When [`stop`](EmbeddedCluster::stop) returns, no
//! process of a pod runs and none of its files is left; when the cluster is dropped, or its process killed, that is so a moment
//! later. With a data directory, objects and the directories of claims come back at the next start, and what ran runs again.

mod directory;
mod nodes;

use std::{fmt, future::Future, io, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use kube::Client;
use kubewake_apiserver::server::{self, ApiServer, client::ClientError};
use tokio::task::JoinSet;

use self::{directory::Directory, nodes::Nodes};
use crate::{
    addresses::{self, Block},
    client,
    controller::{self, autoscaler},
    error::Error,
    events::Events,
    guard::Guard,
    images::{ArchiveError, Images},
    kubelet::{BackoffRules, Capacity, Kubelet, KubeletOptions, LOG_BYTES, USAGE_WINDOW},
    proxy::Proxy,
    scheduler,
    views::Views,
};

/// Nobody waits longer for pods that do not end.
const GRACE: Duration = Duration::from_secs(15);
/// Whatever keeps a node from ending, the cluster ends so much later: there is time to kill what did not end, and to say so.
const STOP: Duration = Duration::from_secs(5);
/// A pod that lost its node is kept for so long: the node may come back.
const QUARANTINE: Duration = Duration::from_secs(40);

/// How to run a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// The API server. Its data directory is the cluster's; the range of Services and the nodes are the cluster's to say.
    pub api: server::Options,
    /// How many nodes: 1 to [`addresses::NODES`].
    pub nodes: u8,
    /// The programs that nodes can run.
    pub images: Images,
    /// Archives of images that are imported into every node when the cluster starts.
    pub image_archives: Vec<PathBuf>,
    /// What each node has to give.
    pub capacity: Capacity,
    /// How long containers that end wait before they run again.
    pub backoff: BackoffRules,
    /// How the autoscaler goes about it.
    pub autoscaler: autoscaler::Settings,
    /// The size of a log file; there are two for each run of a container.
    pub log_bytes: u64,
    /// When the cluster ends, pods get the time that they ask for, and no more than this.
    pub grace: Duration,
    /// Whether the cluster's own housekeeping stays out of traces; what it makes pods of begins some all the same.
    pub quiet: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            api: server::Options::default(),
            nodes: 1,
            images: Images::default(),
            image_archives: Vec::new(),
            capacity: Capacity::of_this_machine(),
            backoff: BackoffRules::default(),
            autoscaler: autoscaler::Settings::default(),
            log_bytes: LOG_BYTES,
            grace: GRACE,
            quiet: false,
        }
    }
}

/// Why a cluster does not start.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum StartError {
    #[error("a cluster has 1 to {most} nodes, not {0}", most = addresses::NODES)]
    Nodes(u8),
    #[error("there are no addresses for the cluster")]
    Addresses(#[source] io::Error),
    #[error(
        "the Services in {directory:?} have addresses in 127.{block}.0.0/16, which another cluster on this machine uses: \
         stop that one first"
    )]
    Taken { directory: PathBuf, block: u8 },
    #[error("the data directory {0:?} is in use by another cluster: stop that one first, or name another directory")]
    InUse(PathBuf),
    #[error("the directory {path:?} cannot be used")]
    Directory { path: PathBuf, source: io::Error },
    #[error("the file {path:?} cannot be used")]
    File { path: PathBuf, source: io::Error },
    #[error("a node has not the images that it is to have")]
    Images(#[from] ArchiveError),
    #[error("nobody would clean up after the cluster")]
    Guard(#[source] io::Error),
    #[error("the API server does not start")]
    Api(#[from] server::StartError),
    #[error("the API server has no client")]
    Client(#[from] ClientError),
    #[error("a node does not start")]
    Node(#[from] Error),
}

/// A running cluster.
pub struct EmbeddedCluster {
    api: ApiServer,
    kubelets: Vec<Kubelet>,
    /// Controllers, watches and forwarders: they end when this is dropped.
    tasks: JoinSet<()>,
    guard: Guard,
    grace: Duration,
    /// The addresses are the cluster's as long as it runs.
    _block: Block,
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
    /// If something that it needs is not to be had; nothing is left behind then.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        started(options).await
    }

    async fn start_all(options: Options) -> Result<Self, StartError> {
        if !(1..=addresses::NODES).contains(&options.nodes) {
            return Err(StartError::Nodes(options.nodes));
        }
        let directory = Directory::open(options.api.data_dir.as_deref())?;
        let block = directory.block()?;
        let guard = Guard::start(directory.run()).map_err(|error| {
            directory.remove();
            StartError::Guard(error)
        })?;
        let nodes = Arc::new(Nodes::default());
        let api = ApiServer::start(server::Options {
            service_range: block.services(),
            nodes: Some(Arc::clone(&nodes) as _),
            service_accounts: true,
            ..options.api.clone()
        })
        .await?;
        let mut starting =
            Starting { options: &options, directory: &directory, guard: &guard, api: &api, tasks: JoinSet::new() };
        let views = starting.views().await?;
        starting.controllers(&views, &nodes)?;
        let kubelets = starting.nodes(&views, &block).await?;
        nodes.are(&kubelets);
        Ok(Self { tasks: starting.tasks, api, kubelets, guard, grace: options.grace, _block: block })
    }

    /// The API server.
    pub fn api(&self) -> &ApiServer {
        &self.api
    }

    /// Ends all processes, then everything else. Objects stay as they are: with a data directory, the next start goes on with
    /// them.
    ///
    /// # Errors
    /// If nobody knows what became of whoever cleans up.
    pub async fn stop(mut self) -> io::Result<()> {
        let grace = self.grace;
        tracing::info!(limit = ?grace, "stopping: pods are asked to end");
        let stops = futures_util::future::join_all(self.kubelets.iter().map(|kubelet| kubelet.stop(grace)));
        if tokio::time::timeout(grace + STOP, stops).await.is_err() {
            tracing::warn!("some pods did not end in time; what is left of them is killed");
        }
        self.tasks.shutdown().await;
        self.api.stop().await;
        let guard = self.guard;
        tokio::task::spawn_blocking(move || guard.stop()).await.map_err(io::Error::other)?
    }
}

/// Behind a pointer, so that all that it takes to start is compiled with this crate and not once more with each program.
fn started(options: Options) -> Pin<Box<dyn Future<Output = Result<EmbeddedCluster, StartError>> + Send>> {
    Box::pin(EmbeddedCluster::start_all(options))
}

/// A cluster that is not one yet.
struct Starting<'a> {
    options: &'a Options,
    directory: &'a Directory,
    guard: &'a Guard,
    api: &'a ApiServer,
    tasks: JoinSet<()>,
}

impl Starting<'_> {
    async fn views(&mut self) -> Result<Views, StartError> {
        let views = Views::default();
        views.follow(&self.client("kube-controller-manager")?, &mut self.tasks).await;
        Ok(views)
    }

    fn controllers(&mut self, views: &Views, nodes: &Arc<Nodes>) -> Result<(), StartError> {
        let (client, authority) = (self.client("kube-controller-manager")?, self.authority());
        let (client, tasks) = (&client, &mut self.tasks);
        controller::start::<controller::deployment::Deployments>(client, views, tasks);
        controller::start::<controller::replicaset::ReplicaSets>(client, views, tasks);
        controller::start::<controller::statefulset::StatefulSets>(client, views, tasks);
        controller::start::<controller::daemonset::DaemonSets>(client, views, tasks);
        controller::start::<controller::claims::Claims>(client, views, tasks);
        controller::start::<controller::endpoints::Endpoints>(client, views, tasks);
        controller::start::<controller::loadbalancers::LoadBalancers>(client, views, tasks);
        controller::nodes::start(client, views, QUARANTINE, tasks);
        controller::accounts::start(client, views, authority, tasks);
        let usage = Arc::clone(nodes) as _;
        autoscaler::start(client, views, usage, self.options.autoscaler, tasks);
        scheduler::start(&self.client("kube-scheduler")?, views, &mut self.tasks);
        let events = Events::new(self.client("kube-proxy")?, "kube-proxy", None);
        Proxy::start(views, events, &mut self.tasks);
        Ok(())
    }

    async fn nodes(&mut self, views: &Views, block: &Block) -> Result<Vec<Kubelet>, StartError> {
        let client = self.client("kubelet")?;
        let images = Arc::new(self.images().await?);
        let mut kubelets = Vec::new();
        for index in 0..self.options.nodes {
            let name = format!("node-{}", index + 1);
            let range = block.node(index.into()).ok_or(StartError::Nodes(self.options.nodes))?;
            let options = KubeletOptions {
                dir: self.directory.run().join(&name),
                claims: self.directory.claims(),
                logs: self.directory.logs(),
                name,
                range,
                capacity: self.options.capacity,
                images: Arc::clone(&images),
                mark: self.guard.mark().clone(),
                backoff: self.options.backoff,
                log_bytes: self.options.log_bytes,
                usage_window: self.options.autoscaler.period.min(USAGE_WINDOW),
                api_server: self.api.address(),
            };
            kubelets.push(Kubelet::start(options, client.clone(), views, &mut self.tasks).await?);
        }
        Ok(kubelets)
    }

    /// All that nodes can run. What archives hold is unpacked where it goes with the cluster.
    async fn images(&self) -> Result<Images, StartError> {
        let (mut images, archives) = (self.options.images.clone(), self.options.image_archives.clone());
        let folder = self.directory.run().join("images");
        let import = move || {
            for archive in &archives {
                let names = images.import(archive, &folder)?;
                tracing::info!(?archive, ?names, "imported images");
            }
            Ok::<_, ArchiveError>(images)
        };
        let imported = tokio::task::spawn_blocking(import).await;
        imported.map_err(|_| StartError::Node(Error::Panicked))?.map_err(StartError::Images)
    }

    fn authority(&self) -> String {
        self.api.kubeconfig().certificate_authority.unwrap_or_default()
    }

    /// Everybody is an administrator, and says who they are: managers of fields are called after them.
    fn client(&self, who: &str) -> Result<Client, StartError> {
        let mut config = self.api.client_config()?;
        let agent = format!("{who}/kubewake-{}", env!("CARGO_PKG_VERSION"));
        config.headers.extend(agent.parse().map(|agent| (http::header::USER_AGENT, agent)));
        client::connect(&config, self.options.quiet).map_err(|error| StartError::Node(error.into()))
    }
}
