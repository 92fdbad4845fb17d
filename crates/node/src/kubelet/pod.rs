//! One pod on its node, from the moment that it is bound until nothing of it is left.
//!
//! ```text
//!   told by the view ──► orders ──► containers ──► processes
//!                                       │
//!                                     board ──► report ──► API server
//! ```
//!
//! *Guarantees.* A pod's worker is the only one who runs its processes and writes its part of the status. When the pod is to go, its
//! containers are asked to end and made to when their time is over; only when all of them are gone is the pod removed
//! from the API. A worker that is dropped takes its processes with it.

mod backoff;
mod board;
mod care;
mod container;
mod launch;
mod report;
mod run;

use std::{net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use tokio::{sync::watch, task::JoinSet, time::Instant};

pub use self::backoff::BackoffRules;
use self::{
    board::Board,
    container::{Kind, Outcome},
};
use super::{
    Node,
    status::{Facts, Verdict, is_sidecar, waiting},
};
use crate::{addresses::PodAddress, controller::pods::phase, key::Key};

/// What the view says of a pod.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) pod: Arc<Pod>,
    /// It is not there any more.
    pub(super) gone: bool,
}

/// What containers are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Run,
    /// End, at this time at the latest.
    Stop(Instant),
}

/// What one container hears.
#[derive(Clone, Debug)]
struct Orders(watch::Receiver<Order>);

impl Orders {
    /// Waits until it has to end.
    async fn stop(&mut self) {
        if self.0.wait_for(|order| *order != Order::Run).await.is_err() {
            std::future::pending().await
        }
    }

    async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }

    /// When it has to have ended, if it has to.
    fn by(&self) -> Option<Instant> {
        match *self.0.borrow() {
            Order::Run => None,
            Order::Stop(by) => Some(by),
        }
    }
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
    pub(super) fn new(node: Arc<Node>, told: watch::Receiver<Told>) -> Self {
        let pod = Arc::clone(&told.borrow().pod);
        let uid = pod.uid().unwrap_or_default();
        let facts = Facts {
            containers: first_statuses(&pod),
            host_ip: node.options.range.address().to_string(),
            start_time: Some(Timestamp::now()),
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
        if matches!(phase(&worker.pod()), "Succeeded" | "Failed") {
            worker.remove().await;
        } else {
            tokio::select! {
                () = worker.report() => {}
                () = Arc::clone(&worker).live() => {}
            }
        }
        worker.node.logs.forget(&worker.uid);
        if let Err(error) = tokio::fs::remove_dir_all(&worker.dir).await
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(pod = %worker.key, %error, "its directory stays");
        }
    }

    async fn live(self: Arc<Self>) {
        let order = watch::Sender::new(Order::Run);
        tokio::select! {
            () = self.give_orders(&order) => {}
            () = Arc::clone(&self).contain(Orders(order.subscribe())) => {}
        }
        if self.node.is_stopping() {
            return;
        }
        self.board.change(|facts| facts.finished = true);
        self.flush().await;
        self.remove().await;
    }

    /// Says when to stop, and for how long to try.
    async fn give_orders(&self, order: &watch::Sender<Order>) {
        let (mut told, mut stopping) = (self.told.clone(), self.node.stopping.subscribe());
        let stop = |by: Instant| {
            order.send_if_modified(|order| match order {
                Order::Stop(before) if *before <= by => false,
                _ => {
                    *order = Order::Stop(by);
                    true
                }
            });
        };
        loop {
            let (going, deadline) = {
                let told = told.borrow_and_update();
                (told.gone || told.pod.metadata.deletion_timestamp.is_some(), self.deadline(&told.pod))
            };
            if let Some(by) = *stopping.borrow_and_update() {
                stop(by);
            } else if going {
                stop(Instant::now() + self.grace());
            } else if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                let message = "Pod was active on the node longer than the specified deadline".to_owned();
                self.event(self.reference.clone(), true, "DeadlineExceeded", message.clone());
                self.board.change(|facts| {
                    facts.verdict = Some(Verdict { reason: "DeadlineExceeded", message });
                });
                stop(Instant::now() + self.grace());
                // Nothing but a deletion comes after it.
                std::future::pending::<()>().await;
            }
            tokio::select! {
                _ = told.changed() => {}
                _ = stopping.changed() => {}
                () = sleep_until(deadline) => {}
            }
        }
    }

    /// When its time is over, if it has a limit.
    fn deadline(&self, pod: &Pod) -> Option<Instant> {
        let seconds = u64::try_from(pod.spec.as_ref()?.active_deadline_seconds?).ok()?;
        let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
        let passed = started.and_then(|start| Duration::try_from(Timestamp::now().duration_since(start.0)).ok());
        let left = Duration::from_secs(seconds).saturating_sub(passed.unwrap_or_default());
        Some(Instant::now() + left)
    }

    /// How long its containers may take to end.
    fn grace(&self) -> Duration {
        let told = self.told.borrow();
        let meta = told.pod.metadata.deletion_grace_period_seconds;
        let spec = told.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
        Duration::from_secs(meta.or(spec).and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(30))
    }

    /// All containers from the first to the last; returns when none runs.
    async fn contain(self: Arc<Self>, mut orders: Orders) {
        let Some(_address) = self.prepare(&mut orders).await else { return };
        let mut sidecars = Sidecars::default();
        if self.initialize(&orders, &mut sidecars).await {
            self.run_main(&orders).await;
        }
        sidecars.stop(orders.by().unwrap_or_else(|| Instant::now() + self.grace())).await;
    }

    /// What all containers need. None if the pod stops first.
    async fn prepare(&self, orders: &mut Orders) -> Option<Option<PodAddress>> {
        let host = self.pod().spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = if host { None } else { Some(self.address(orders).await?) };
        let ip = address.as_ref().map_or(self.node.options.range.address(), PodAddress::ip);
        if let Err(error) = tokio::fs::create_dir_all(&self.dir).await {
            tracing::warn!(pod = %self.key, %error, "its directory cannot be made");
        }
        self.board.change(|facts| {
            facts.ip = Some(ip.to_string());
            facts.prepared = true;
        });
        Some(address)
    }

    async fn address(&self, orders: &mut Orders) -> Option<PodAddress> {
        loop {
            if let Some(address) = self.node.options.range.take() {
                return Some(address);
            }
            let note = "Failed to create pod sandbox: all addresses of this node are taken";
            self.event(self.reference.clone(), true, "FailedCreatePodSandBox", note.to_owned());
            self.pause(Duration::from_secs(5), orders).await?;
        }
    }

    /// Runs what comes before the others; whether these may begin.
    async fn initialize(self: &Arc<Self>, orders: &Orders, sidecars: &mut Sidecars) -> bool {
        for container in self.pod().spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()) {
            if is_sidecar(container) {
                sidecars.start(self, container);
                if !self.has_started(&container.name, orders.clone()).await {
                    return false;
                }
            } else if self.container(&container.name, Kind::Init, orders.clone()).await != Outcome::Succeeded {
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

    async fn run_main(self: &Arc<Self>, orders: &Orders) {
        let mut tasks = JoinSet::new();
        for container in self.pod().spec.iter().flat_map(|spec| &spec.containers) {
            let (worker, orders, name) = (Arc::clone(self), orders.clone(), container.name.clone());
            tasks.spawn(async move { worker.container(&name, Kind::Main, orders).await });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Waits until the pod is to go, removes it from the API, and returns when it is not there.
    async fn remove(&self) {
        let mut told = self.told.clone();
        let mut pause = Duration::from_millis(50);
        loop {
            let going = |told: &Told| told.gone || told.pod.metadata.deletion_timestamp.is_some();
            let Ok(now) = told.wait_for(going).await.map(|told| told.clone()) else { return };
            if now.gone || self.delete().await {
                break;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(10));
        }
        // Somebody's finalizer may keep it for a while.
        let _ = told.wait_for(|told| told.gone).await;
    }

    /// Whether the API server did it, or need not.
    async fn delete(&self) -> bool {
        let api = Api::<Pod>::namespaced(self.node.client.clone(), &self.key.namespace);
        let preconditions = Preconditions { uid: Some(self.uid.clone()), resource_version: None };
        let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default().grace_period(0) };
        match api.delete(&self.key.name, &how).await {
            Ok(_) => true,
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => true,
            Err(error) => {
                tracing::warn!(pod = %self.key, %error, "it is removed later");
                false
            }
        }
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

    fn normal(&self, container: &str, reason: &str, note: impl Into<String>) {
        self.event(self.refer(container), false, reason, note.into());
    }

    fn warning(&self, container: &str, reason: &str, note: impl Into<String>) {
        self.event(self.refer(container), true, reason, note.into());
    }

    fn event(&self, about: ObjectReference, is_wrong: bool, reason: &str, note: String) {
        match is_wrong {
            true => self.node.events.warning(about, reason, note),
            false => self.node.events.normal(about, reason, note),
        }
    }

    fn refer(&self, container: &str) -> ObjectReference {
        let pod = self.pod();
        let init = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_ref());
        let is_init = init.is_some_and(|all| all.iter().any(|one| one.name == container));
        let list = if is_init { "initContainers" } else { "containers" };
        ObjectReference { field_path: Some(format!("spec.{list}{{{container}}}")), ..self.reference.clone() }
    }
}

/// Sidecars that run, first to last.
#[derive(Default)]
struct Sidecars(Vec<(watch::Sender<Order>, JoinSet<()>)>);

impl Sidecars {
    fn start(&mut self, worker: &Arc<Worker>, container: &Container) {
        let (order, name, worker) = (watch::Sender::new(Order::Run), container.name.clone(), Arc::clone(worker));
        let (orders, mut task) = (Orders(order.subscribe()), JoinSet::new());
        task.spawn(async move {
            worker.container(&name, Kind::Sidecar, orders).await;
        });
        self.0.push((order, task));
    }

    /// Ends them, last to first: who began earlier may be needed by who began later.
    async fn stop(self, by: Instant) {
        for (order, mut task) in self.0.into_iter().rev() {
            order.send_replace(Order::Stop(by));
            task.join_next().await;
        }
    }
}

/// What containers begin with: nothing, or what is left of an earlier life of the node.
fn first_statuses(pod: &Pod) -> std::collections::BTreeMap<String, k8s_openapi::api::core::v1::ContainerStatus> {
    let Some(spec) = pod.spec.as_ref() else { return Default::default() };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let reason = if init.is_empty() { "ContainerCreating" } else { "PodInitializing" };
    init.iter().chain(&spec.containers).map(|one| (one.name.clone(), waiting(one, reason))).collect()
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
