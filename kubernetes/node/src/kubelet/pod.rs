//! One pod on its node, from its binding until nothing of it is left.
//!
//! ```text
//!   informer ──► stop signal ──► containers ──► runs ──► processes
//!                                    │            │
//!                                    └─ status cell ─┘
//!                                             └──► status report ──► API server
//! ```
//!
//! *Guaranteed*: only the worker of a pod runs its processes and writes its part of the status. When the pod is
//! deleted, its containers are terminated, and killed after their grace period; only when all of them have
//! ended is the pod removed from the API. Dropping a worker kills its processes.

mod backoff;
mod container_lifecycle;
mod container_run;
mod image_pull;
mod launch;
mod port_conflicts;
mod probes;
mod recovered_status;
mod removal;
mod sandbox;
mod security;
mod status_cell;
mod status_report;
mod stop_signal;

use std::{collections::BTreeMap, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ObjectReference, Pod};
use kube::{Resource, ResourceExt};
use tokio::{sync::watch, task::JoinSet, time::Instant};

pub use self::backoff::BackoffRules;
pub(super) use self::status_cell::StatusCell;
use self::{
    container_lifecycle::{ContainerKind, ContainerOutcome},
    sandbox::PodSandbox,
    stop_signal::{DesiredRunState, StopSignal},
};
use super::{
    NodeAgent,
    logs::PodLogKey,
    status::{PodFailure, PodRuntimeState, is_sidecar},
};
use crate::{controller::pods::phase, key::NamespacedKey};

/// The time limit for the final status reports when the node stops.
const FINAL_STATUS_TIMEOUT: Duration = Duration::from_secs(2);

/// An update of a pod from the informer.
#[derive(Clone, Debug)]
pub(super) struct PodUpdate {
    pub(super) pod: Arc<Pod>,
    /// Whether the pod was removed from the API.
    pub(super) gone: bool,
}

/// The worker of one pod.
#[derive(Debug)]
pub(super) struct PodWorker {
    node: Arc<NodeAgent>,
    key: NamespacedKey,
    uid: String,
    /// The directory of the pod.
    dir: PathBuf,
    reference: ObjectReference,
    updates: watch::Receiver<PodUpdate>,
    status: Arc<StatusCell>,
    /// The last version of the status cell that was written.
    written_version: watch::Sender<u64>,
}

impl PodWorker {
    /// Creates the worker of a pod, with the reason if the node rejects it.
    pub(super) fn new(node: Arc<NodeAgent>, updates: watch::Receiver<PodUpdate>, refused: Option<PodFailure>) -> Self {
        let pod = Arc::clone(&updates.borrow().pod);
        let uid = pod.uid().unwrap_or_default();
        let now = Timestamp::now();
        let facts = PodRuntimeState {
            // Containers of a rejected pod have no state.
            containers: if refused.is_none() { recovered_status::initial_statuses(&pod, now) } else { BTreeMap::new() },
            failure: refused,
            host_ip: node.options.range.address().to_string(),
            start_time: Some(now),
            ..PodRuntimeState::default()
        };
        Self {
            key: NamespacedKey::from_object(&*pod),
            dir: node.options.dir.join("pods").join(&uid),
            uid,
            reference: pod.object_ref(&()),
            node,
            updates,
            status: Arc::new(StatusCell::new(facts)),
            written_version: watch::Sender::new(0),
        }
    }

    /// Runs the pod; returns when nothing of it is left.
    pub(super) async fn run(self) {
        let worker = Arc::new(self);
        tokio::select! {
            () = worker.report_status() => {}
            () = Arc::clone(&worker).sync_pod() => {}
        }
        // A node that starts again needs the logs.
        if !worker.node.is_stopping() {
            worker.node.logs.remove(&worker.log_key());
        }
        if let Err(error) = tokio::fs::remove_dir_all(&worker.dir).await
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(pod = %worker.key, %error, "failed to remove the directory of the pod");
        }
    }

    async fn sync_pod(self: Arc<Self>) {
        let order = watch::Sender::new(DesiredRunState::Run);
        let ground = tokio::select! {
            () = self.send_stop_signals(&order) => None,
            ground = Arc::clone(&self).run_containers(StopSignal::subscribe(&order)) => ground,
        };
        tokio::select! {
            // Containers that end because the node stops are not finished.
            biased;
            // The next start continues with this status, such as exit codes.
            () = self.node.wait_until_stopping() => drop(tokio::time::timeout(FINAL_STATUS_TIMEOUT, self.wait_until_reported()).await),
            () = self.finish_pod(ground.as_deref()) => {}
        }
        // Also when the node stops: nothing is written to volumes any more.
        if let Some(ground) = ground {
            ground.volumes.close().await;
        }
    }

    /// Cleans up after the last container. The directory is removed only when nothing writes to it.
    async fn finish_pod(&self, ground: Option<&PodSandbox>) {
        let is_news = !has_final_phase(&self.current_pod());
        if is_news {
            self.status.update(|facts| facts.finished = true);
        }
        if let Some(ground) = ground {
            ground.volumes.close().await;
        }
        if is_news {
            self.wait_until_reported().await;
        }
        self.remove_from_api().await;
    }

    /// Runs all containers; returns the sandbox when none of them runs any more.
    async fn run_containers(self: Arc<Self>, mut orders: StopSignal) -> Option<Arc<PodSandbox>> {
        if has_final_phase(&self.current_pod()) || self.is_done() {
            return None;
        }
        if let Some(PodFailure { reason, message, .. }) = self.status.read(|facts| facts.failure.clone()) {
            self.node.events.record_warning(self.reference.clone(), &reason, message);
            return None;
        }
        let ground = self.prepare_sandbox(&mut orders).await?;
        tokio::select! {
            () = self.watch_volumes(&ground) => {}
            () = self.run_containers_in_order(&ground, &orders) => {}
        }
        Some(ground)
    }

    async fn run_containers_in_order(self: &Arc<Self>, ground: &Arc<PodSandbox>, orders: &StopSignal) {
        let mut sidecars = RunningSidecars::default();
        if self.run_init_containers(ground, orders, &mut sidecars).await {
            self.run_main_containers(ground, orders).await;
        }
        sidecars.stop(orders.stop_deadline().unwrap_or_else(|| Instant::now() + self.grace_period())).await;
    }

    /// Whether none of the main containers would run again.
    fn is_done(&self) -> bool {
        let pod = self.current_pod();
        let mut names = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| &container.name);
        names.all(|name| self.final_exit_code(name, ContainerKind::Main).is_some())
    }

    /// Runs init containers and starts sidecars. Returns whether the main containers may start.
    async fn run_init_containers(
        self: &Arc<Self>,
        ground: &Arc<PodSandbox>,
        orders: &StopSignal,
        sidecars: &mut RunningSidecars,
    ) -> bool {
        for container in self.current_pod().spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()) {
            let name = &container.name;
            if is_sidecar(container) {
                sidecars.start(self, ground, container);
                if !self.wait_for_sidecar_start(name, orders.clone()).await {
                    return false;
                }
            } else if self.run_container(name, ContainerKind::Init, ground, orders.clone()).await
                != ContainerOutcome::Succeeded
            {
                return false;
            }
        }
        true
    }

    /// Waits for the start of a sidecar. Returns whether it started before the pod stopped.
    async fn wait_for_sidecar_start(&self, name: &str, mut orders: StopSignal) -> bool {
        let mut changed = self.status.version();
        let started = async {
            while self.status.container(name, |status| status.started) != Some(Some(true)) {
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = started => true,
            () = orders.wait_for_stop() => false,
        }
    }

    async fn run_main_containers(self: &Arc<Self>, ground: &Arc<PodSandbox>, orders: &StopSignal) {
        let mut tasks = JoinSet::new();
        for container in self.current_pod().spec.iter().flat_map(|spec| &spec.containers) {
            let worker = Arc::clone(self);
            let ground = Arc::clone(ground);
            let name = container.name.clone();
            let orders = orders.clone();
            tasks.spawn(async move { worker.run_container(&name, ContainerKind::Main, &ground, orders).await });
        }
        while tasks.join_next().await.is_some() {}
    }

    /// The address of the pod; the node's as long as it has none.
    fn ip(&self) -> Ipv4Addr {
        let own = self.status.read(|facts| facts.ip.as_ref().and_then(|ip| ip.parse().ok()));
        own.unwrap_or_else(|| self.node.options.range.address())
    }

    fn log_key(&self) -> PodLogKey<'_> {
        PodLogKey { namespace: &self.key.namespace, pod: &self.key.name, uid: &self.uid }
    }

    /// The status of the pod while its worker runs.
    pub(super) fn status(&self) -> Arc<StatusCell> {
        Arc::clone(&self.status)
    }

    fn current_pod(&self) -> Arc<Pod> {
        Arc::clone(&self.updates.borrow().pod)
    }

    /// Records a Normal event about a container.
    fn record_normal(&self, container: &str, reason: &str, note: impl Into<String>) {
        self.node.events.record_normal(self.container_reference(container), reason, note);
    }

    /// Records a Warning event about a container.
    fn record_warning(&self, container: &str, reason: &str, note: impl Into<String>) {
        self.node.events.record_warning(self.container_reference(container), reason, note);
    }

    fn container_reference(&self, container: &str) -> ObjectReference {
        let pod = self.current_pod();
        let mut init = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
        let list = if init.any(|one| one.name == container) { "initContainers" } else { "containers" };
        ObjectReference { field_path: Some(format!("spec.{list}{{{container}}}")), ..self.reference.clone() }
    }
}

/// Whether the phase of the pod is final.
pub(super) fn has_final_phase(pod: &Pod) -> bool {
    matches!(phase(pod), "Succeeded" | "Failed")
}

/// Running sidecars, in the order of their start.
#[derive(Default)]
struct RunningSidecars(Vec<(watch::Sender<DesiredRunState>, JoinSet<()>)>);

impl RunningSidecars {
    fn start(&mut self, worker: &Arc<PodWorker>, ground: &Arc<PodSandbox>, container: &Container) {
        let worker = Arc::clone(worker);
        let ground = Arc::clone(ground);
        let name = container.name.clone();
        let order = watch::Sender::new(DesiredRunState::Run);
        let mut task = JoinSet::new();
        let orders = StopSignal::subscribe(&order);
        task.spawn(async move {
            worker.run_container(&name, ContainerKind::Sidecar, &ground, orders).await;
        });
        self.0.push((order, task));
    }

    /// Terminates the sidecars in reverse order: later ones may need earlier ones.
    async fn stop(self, by: Instant) {
        for (order, mut task) in self.0.into_iter().rev() {
            order.send_replace(DesiredRunState::Stop(by));
            task.join_next().await;
        }
    }
}
