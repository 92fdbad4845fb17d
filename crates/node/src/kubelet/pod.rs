//! One pod on its node, from the moment that it is bound until nothing of it is left.
//!
//! ```text
//!   told by the view ──► orders ──► containers ──► runs ──► processes
//!                                       │            │
//!                                       └── board ◄──┘
//!                                             └──► report ──► API server
//! ```
//!
//! *Guarantees.* A pod's worker is the only one who runs its processes and writes its part of the status. When the pod is to go, its
//! containers are asked to end and made to when their time is over; only when all of them are gone is the pod removed
//! from the API. A worker that is dropped takes its processes with it.

mod backoff;
mod board;
mod care;
mod container;
mod earlier;
mod ground;
mod image;
mod launch;
mod orders;
mod remove;
mod report;
mod rivals;
mod run;
mod security;

use std::{collections::BTreeMap, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod};
use kube::{Resource, ResourceExt};
use tokio::{sync::watch, task::JoinSet, time::Instant};

pub use self::backoff::BackoffRules;
use self::{
    board::Board,
    container::{Kind, Outcome},
    ground::Ground,
    orders::{Order, Orders},
};
use super::{
    Node,
    status::{Facts, Verdict, is_sidecar},
};
use crate::{controller::pods::phase, key::Key};

/// When the node stops, the API server has so long to hear how a pod ended.
const LAST_WORD: Duration = Duration::from_secs(2);

/// What the view says of a pod.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) pod: Arc<Pod>,
    /// It is not there any more.
    pub(super) gone: bool,
}

/// Who looks after one pod.
#[derive(Debug)]
pub(super) struct Worker {
    node: Arc<Node>,
    key: Key,
    uid: String,
    /// Everything that it has on disk.
    dir: PathBuf,
    reference: ObjectReference,
    told: watch::Receiver<Told>,
    board: Board,
    /// The version of the board that was written last.
    written: watch::Sender<u64>,
}

impl Worker {
    /// Of a pod that the node takes, or why it does not.
    pub(super) fn new(node: Arc<Node>, told: watch::Receiver<Told>, refused: Option<Verdict>) -> Self {
        let pod = Arc::clone(&told.borrow().pod);
        let (uid, now) = (pod.uid().unwrap_or_default(), Timestamp::now());
        let facts = Facts {
            // What will never run has no state.
            containers: if refused.is_none() { earlier::statuses(&pod, now) } else { BTreeMap::new() },
            verdict: refused,
            host_ip: node.options.range.address().to_string(),
            start_time: Some(now),
            ..Facts::default()
        };
        Self {
            key: Key::of(&*pod),
            dir: node.options.dir.join("pods").join(&uid),
            uid,
            reference: pod.object_ref(&()),
            node,
            told,
            board: Board::new(facts),
            written: watch::Sender::new(0),
        }
    }

    /// Returns when nothing is left of the pod.
    pub(super) async fn run(self) {
        let worker = Arc::new(self);
        tokio::select! {
            () = worker.report() => {}
            () = Arc::clone(&worker).live() => {}
        }
        // A node that starts again shows them again.
        if !worker.node.is_stopping() {
            worker.node.logs.remove(&worker.uid);
        }
        if let Err(error) = tokio::fs::remove_dir_all(&worker.dir).await
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(pod = %worker.key, %error, "its directory stays");
        }
    }

    async fn live(self: Arc<Self>) {
        let order = watch::Sender::new(Order::Run);
        let ground = tokio::select! {
            () = self.give_orders(&order) => None,
            ground = Arc::clone(&self).contain(Orders::from(&order)) => ground,
        };
        tokio::select! {
            // What ended because the node stops is not finished.
            biased;
            // The next start goes on with what is written now, such as exit codes.
            () = self.node.stops() => drop(tokio::time::timeout(LAST_WORD, self.flush()).await),
            () = self.finish(ground.as_deref()) => {}
        }
        // Also when the node stops: nothing is written any more.
        if let Some(ground) = ground {
            ground.volumes.close().await;
        }
    }

    /// Nothing runs any more. Its directory is removed only when nobody writes to it.
    async fn finish(&self, ground: Option<&Ground>) {
        let is_news = !is_over(&self.pod());
        if is_news {
            self.board.change(|facts| facts.finished = true);
        }
        if let Some(ground) = ground {
            ground.volumes.close().await;
        }
        if is_news {
            self.flush().await;
        }
        self.remove().await;
    }

    /// All containers from the first to the last; returns when none runs, with what they stood on.
    async fn contain(self: Arc<Self>, mut orders: Orders) -> Option<Arc<Ground>> {
        if is_over(&self.pod()) || self.is_done() {
            return None;
        }
        if let Some(Verdict { reason, message, .. }) = self.board.read(|facts| facts.verdict.clone()) {
            self.node.events.warning(self.reference.clone(), &reason, message);
            return None;
        }
        let ground = self.prepare(&mut orders).await?;
        tokio::select! {
            () = self.watch_volumes(&ground) => {}
            () = self.run_all(&ground, &orders) => {}
        }
        Some(ground)
    }

    async fn run_all(self: &Arc<Self>, ground: &Arc<Ground>, orders: &Orders) {
        let mut sidecars = Sidecars::default();
        if self.initialize(ground, orders, &mut sidecars).await {
            self.run_main(ground, orders).await;
        }
        sidecars.stop(orders.by().unwrap_or_else(|| Instant::now() + self.grace())).await;
    }

    /// Whether none of the containers that it is for would run again.
    fn is_done(&self) -> bool {
        let pod = self.pod();
        let mut names = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| &container.name);
        names.all(|name| self.has_ended(name, Kind::Main).is_some())
    }

    /// Runs what comes before the others; whether these may begin.
    async fn initialize(self: &Arc<Self>, ground: &Arc<Ground>, orders: &Orders, sidecars: &mut Sidecars) -> bool {
        for container in self.pod().spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()) {
            let name = &container.name;
            if is_sidecar(container) {
                sidecars.start(self, ground, container);
                if !self.has_started(name, orders.clone()).await {
                    return false;
                }
            } else if self.container(name, Kind::Init, ground, orders.clone()).await != Outcome::Succeeded {
                return false;
            }
        }
        true
    }

    /// Waits for a sidecar; whether it came so far before the pod stopped.
    async fn has_started(&self, name: &str, mut orders: Orders) -> bool {
        let mut changed = self.board.version();
        let started = async {
            while self.board.container(name, |status| status.started) != Some(Some(true)) {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = started => true,
            () = orders.stop() => false,
        }
    }

    async fn run_main(self: &Arc<Self>, ground: &Arc<Ground>, orders: &Orders) {
        let mut tasks = JoinSet::new();
        for container in self.pod().spec.iter().flat_map(|spec| &spec.containers) {
            let (worker, ground) = (Arc::clone(self), Arc::clone(ground));
            let (name, orders) = (container.name.clone(), orders.clone());
            tasks.spawn(async move { worker.container(&name, Kind::Main, &ground, orders).await });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Its address; the node's as long as it has none.
    fn ip(&self) -> Ipv4Addr {
        let own = self.board.read(|facts| facts.ip.as_ref().and_then(|ip| ip.parse().ok()));
        own.unwrap_or_else(|| self.node.options.range.address())
    }

    /// As it is now.
    fn pod(&self) -> Arc<Pod> {
        Arc::clone(&self.told.borrow().pod)
    }

    /// Something happened to a container as it should.
    fn normal(&self, container: &str, reason: &str, note: impl Into<String>) {
        self.node.events.normal(self.refer(container), reason, note);
    }

    /// Something is wrong with a container.
    fn warning(&self, container: &str, reason: &str, note: impl Into<String>) {
        self.node.events.warning(self.refer(container), reason, note);
    }

    fn refer(&self, container: &str) -> ObjectReference {
        let pod = self.pod();
        let mut init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        let list = if init.any(|one| one.name == container) { "initContainers" } else { "containers" };
        ObjectReference { field_path: Some(format!("spec.{list}{{{container}}}")), ..self.reference.clone() }
    }
}

/// Whether the API says that nothing of it runs or will.
pub(super) fn is_over(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Sidecars that run, first to last.
#[derive(Default)]
struct Sidecars(Vec<(watch::Sender<Order>, JoinSet<()>)>);

impl Sidecars {
    fn start(&mut self, worker: &Arc<Worker>, ground: &Arc<Ground>, container: &Container) {
        let (worker, ground, name) = (Arc::clone(worker), Arc::clone(ground), container.name.clone());
        let (order, mut task) = (watch::Sender::new(Order::Run), JoinSet::new());
        let orders = Orders::from(&order);
        task.spawn(async move {
            worker.container(&name, Kind::Sidecar, &ground, orders).await;
        });
        self.0.push((order, task));
    }

    /// Ends them, last to first: who began later may need who began earlier.
    async fn stop(self, by: Instant) {
        for (order, mut task) in self.0.into_iter().rev() {
            order.send_replace(Order::Stop(by));
            task.join_next().await;
        }
    }
}
