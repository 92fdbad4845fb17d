//! A node: it runs the pods that are bound to it, as processes of this machine.
//!
//! One [worker](pod) looks after each pod. The node is told of pods by the view that everybody shares, and tells of them by
//! their status. *Guarantees.* What was bound to a node runs there, whether it was bound before or after the node started.
//! *Not done*: what a process of this machine's user cannot have (security contexts, limits of CPU and memory, other users), ephemeral
//! containers, `exec`, `attach` and `port-forward`.

mod admit;
pub mod downward;
pub mod env;
pub mod facts;
pub mod listening;
pub mod logs;
mod node;
mod pod;
pub mod probe;
pub mod process;
pub mod sources;
pub mod status;
pub mod tokens;
mod usage;
pub mod volumes;
mod wildcards;
mod workers;

use std::{fmt, net::SocketAddr, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ContainerState;
use kube::{Client, ResourceExt};
use kubewake_apiserver::{
    api::Status,
    nodes::{self, LogRequest},
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use self::{
    facts::NodeFacts,
    logs::{LogError, Logs},
    probe::Checker,
    sources::Sources,
    usage::Meter,
    wildcards::Wildcards,
    workers::Workers,
};
pub use self::{node::Capacity, pod::BackoffRules};
use crate::{
    addresses::NodeRange,
    error::Result,
    events::Events,
    images::Images,
    key::Key,
    marks::{ClusterMark, Sweeper},
    scheduler::resources::Resources,
    usage::{PodUsage, Usage},
    views::Views,
};

/// One of the two files that a run of a container may fill with its output.
pub const LOG_BYTES: u64 = 10 << 20;

/// As often as metrics-server looks.
pub const USAGE_WINDOW: Duration = Duration::from_secs(15);

/// Pieces of a log that may wait for who reads it; each is 64 KiB at most.
const LOG_PIECES: usize = 4;

/// How to run a node.
#[derive(Clone, Debug)]
pub struct KubeletOptions {
    /// Its name, and that of its Node.
    pub name: String,
    /// The addresses of the node and its pods.
    pub range: NodeRange,
    /// What it has to give.
    pub capacity: Capacity,
    /// Where its pods have their files. Nobody else uses it.
    pub dir: PathBuf,
    /// Where the output of containers is kept until their pod is deleted. Nodes of one cluster may share it.
    pub logs: PathBuf,
    /// The directories of persistent volume claims. Nodes of one cluster may share it.
    pub claims: PathBuf,
    /// Where pods reach the API server.
    pub api_server: SocketAddr,
    /// The programs that it can run.
    pub images: Arc<Images>,
    /// What every process carries.
    pub mark: ClusterMark,
    /// How long containers that end wait before they run again.
    pub backoff: BackoffRules,
    /// The size of a log file; there are two for each run of a container.
    pub log_bytes: u64,
    /// Over this time the use of CPU is averaged.
    pub usage_window: Duration,
}

/// What all parts of a node share.
pub(crate) struct Node {
    options: KubeletOptions,
    client: Client,
    views: Views,
    events: Events,
    logs: Logs,
    checker: Checker,
    meter: Meter,
    wildcards: Wildcards,
    sweeper: Sweeper,
    /// What its pods are told of it.
    facts: Arc<NodeFacts>,
    sources: Arc<Sources>,
    /// When everything has to have ended, once the node stops.
    stopping: watch::Sender<Option<Instant>>,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.options.name)
    }
}

impl Node {
    fn is_stopping(&self) -> bool {
        self.stopping.borrow().is_some()
    }

    /// Waits until the node is to stop.
    async fn stops(&self) {
        // The sender is ours.
        let _ = self.stopping.subscribe().wait_for(Option::is_some).await;
    }

    /// What pods can have of it.
    fn allocatable(&self) -> Resources {
        Resources::read(Some(&self.facts.allocatable))
    }

    fn log(&self, request: LogRequest) -> Result<nodes::Output, Status> {
        let pieces = self.logs.open(&request).map_err(|error| match error {
            LogError::Read(error) => {
                tracing::warn!(pod = request.pod, container = request.container, %error, "its log cannot be read");
                Status::internal("the log of the container cannot be read")
            }
            LogError::NotStarted { pod, container, .. } => {
                Status::bad_request(match self.state_of(&request).unwrap_or_default() {
                    ContainerState { waiting: None, running: None, terminated: Some(_) } => {
                        format!("the log of container {container:?} in pod {pod:?} is not kept any more")
                    }
                    state => {
                        let reason = state.waiting.and_then(|waiting| waiting.reason);
                        let reason = reason.unwrap_or_else(|| "ContainerCreating".to_owned());
                        LogError::NotStarted { pod, container, reason }.to_string()
                    }
                })
            }
            LogError::NoPrevious { .. } => Status::bad_request(error.to_string()),
        })?;
        let (sender, output) = mpsc::channel(LOG_PIECES);
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

    /// What the pod says of a container.
    fn state_of(&self, request: &LogRequest) -> Option<ContainerState> {
        let pod = self.views.pods.get(&Key::new(&request.namespace, &request.pod))?;
        let status = pod.status.as_ref()?;
        let mut all = status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
        all.find(|one| one.name == request.container)?.state.clone()
    }
}

/// A running node. Clones are the same; when the last is dropped, its processes are killed.
#[derive(Clone, Debug)]
pub struct Kubelet {
    node: Arc<Node>,
    workers: Arc<Workers>,
}

impl Kubelet {
    /// Registers the node and runs what is bound to it. `tasks` keeps it alive in the API.
    ///
    /// # Errors
    /// If the API server takes no Node of this name.
    pub async fn start(
        options: KubeletOptions,
        client: Client,
        views: &Views,
        tasks: &mut JoinSet<()>,
    ) -> Result<Self> {
        let node = Arc::new(Node {
            events: Events::new(client.clone(), "kubelet", Some(&options.name)),
            logs: Logs::new(options.logs.clone(), options.log_bytes),
            checker: Checker::default(),
            meter: Meter::new(options.usage_window),
            wildcards: Wildcards::default(),
            sweeper: Sweeper::start(),
            facts: Arc::new(facts(&options)),
            sources: Sources::new(client.clone(), views),
            stopping: watch::Sender::new(None),
            options,
            client,
            views: views.clone(),
        });
        node.register().await?;
        node.logs.remove_others(|| views.pods.all().iter().filter_map(|pod| pod.uid()).collect());
        volumes::claims::remove_with_claims(&node.options.claims, views);
        let workers = Arc::new(Workers::new(Arc::clone(&node)));
        let told = Arc::downgrade(&workers);
        views.pods.on_change(move |change| {
            if let Some(workers) = told.upgrade() {
                workers.tell(&told, change);
            }
        });
        let alive = Arc::clone(&node);
        tasks.spawn(async move { alive.live().await });
        tasks.spawn(node.wildcards.clone().run());
        Ok(Self { node, workers })
    }

    /// Its name, and that of its Node.
    pub fn name(&self) -> &str {
        &self.node.options.name
    }

    /// What a container of this node said, as its API server asks for it.
    ///
    /// # Errors
    /// With the kubelet's words, if there is nothing to read.
    pub fn log(&self, request: LogRequest) -> Result<nodes::Output, Status> {
        self.node.log(request)
    }

    /// Asks all processes to end, makes them when the grace period of their pod or this time is over, and returns when they are gone.
    /// Pods stay in the API, with what became of their containers: a node that starts again runs them again.
    pub async fn stop(&self, limit: Duration) {
        self.node.stopping.send_replace(Some(Instant::now() + limit));
        let mut count = self.workers.count.subscribe();
        // The sender is ours.
        let _ = count.wait_for(|count| *count == 0).await;
    }
}

fn facts(options: &KubeletOptions) -> NodeFacts {
    NodeFacts {
        name: options.name.clone(),
        address: options.range.address().into(),
        api_server: options.api_server,
        allocatable: options.capacity.quantities(),
        claims: options.claims.clone(),
        environment: facts::inherited(),
    }
}

impl Usage for Kubelet {
    fn of(&self, pod: &Key) -> Option<PodUsage> {
        self.node.meter.of(pod)
    }
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
