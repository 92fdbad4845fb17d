//! The engine: builds a graph of components from a document, and replaces it by another one while data flows.
//!
//! [`Engine::apply`] has two phases. *Plan* builds and binds everything that the new document needs beyond the
//! running graph, on a thread of its own and without holding up anything else. It may fail: then nothing has
//! changed, and every reason is reported. *Commit* swaps, and cannot fail. Unchanged components (the same id,
//! settings and files) keep their sockets, connections, buffers and state. Changed components take their new
//! settings in place: a listener on the same address, a queue with its contents. Removed components are drained
//! in the background.

mod commit;
mod fingerprint;
mod flow_order;
mod plan;
mod retired_components;
mod running_graph;
#[cfg(test)]
mod tests;

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kubewake_config::{CollectorDocument, ComponentId};
use kubewake_runtime::lock::{self, RwLock};
use tokio::{sync::Mutex, task::JoinHandle, time::Instant};

use self::{
    plan::{GraphPlan, PlanEnvironment},
    retired_components::RetiredComponents,
    running_graph::RunningGraph,
};
use crate::{
    components::ComponentTables,
    core::{StatsRegistry, available_memory},
    net::listener_pool::{AddressClaims, ListenerPool},
    telemetry::PipelineInfo,
};

/// Why a document was not put into effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ApplyError {
    /// The location in the document: `exporters::otlp`.
    pub path: String,
    /// The problem, without secrets.
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// How long data may still be delivered after its component was removed, or during shutdown.
    pub drain_limit: Duration,
    /// The memory budget of pipelines without a `memory_limiter`, in bytes.
    pub default_budget: u64,
    /// The directory in which components may keep state across restarts. Without one, a document with a component
    /// that keeps state is refused.
    pub state_directory: Option<PathBuf>,
}

impl EngineOptions {
    /// Fits into the 30 s that Kubernetes gives a pod between SIGTERM and SIGKILL. The operator sets both itself.
    pub const DEFAULT_DRAIN_LIMIT: Duration = Duration::from_secs(25);
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            drain_limit: Self::DEFAULT_DRAIN_LIMIT,
            default_budget: available_memory::default_budget_bytes(),
            state_directory: None,
        }
    }
}

/// The running pipelines and listeners.
#[derive(Clone, Debug, Default)]
pub struct EngineOverview {
    pub pipelines: Vec<PipelineInfo>,
    /// The listeners: receiver id, protocol, address.
    pub listeners: Vec<(ComponentId, &'static str, SocketAddr)>,
}

pub struct Engine {
    registry: Arc<StatsRegistry>,
    options: EngineOptions,
    tables: ComponentTables,
    /// Held for the whole of a change, which may take as long as a name server or a disk.
    changing: Mutex<()>,
    /// Held for as long as a swap takes; nothing is planned or resolved meanwhile.
    running: Mutex<RunningGraph>,
    overview: RwLock<Arc<EngineOverview>>,
    drain_tasks: DrainTaskList,
    listener_pool: ListenerPool,
}

/// The components that a change removed, and the task that drains and then releases them.
struct DrainTask {
    retired: Arc<RetiredComponents>,
    is_drained: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

type DrainTaskList = Arc<lock::Mutex<Vec<DrainTask>>>;

/// The first pause before drained components that were still in use are checked again. It doubles up to
/// `MAX_RELEASE_INTERVAL`.
const MIN_RELEASE_INTERVAL: Duration = Duration::from_millis(100);
const MAX_RELEASE_INTERVAL: Duration = Duration::from_secs(30);

impl Engine {
    /// An engine without components.
    pub fn new(options: EngineOptions) -> Arc<Self> {
        Self::with_tables(options, ComponentTables::COMPILED)
    }

    fn with_tables(options: EngineOptions, tables: ComponentTables) -> Arc<Self> {
        Arc::new(Self {
            registry: Arc::default(),
            running: Mutex::new(RunningGraph::new(&options)),
            options,
            tables,
            changing: Mutex::default(),
            overview: RwLock::default(),
            drain_tasks: DrainTaskList::default(),
            listener_pool: ListenerPool::default(),
        })
    }

    /// The time for draining during shutdown.
    pub fn drain_limit(&self) -> Duration {
        self.options.drain_limit
    }

    pub fn registry(&self) -> &Arc<StatsRegistry> {
        &self.registry
    }

    pub fn overview(&self) -> Arc<EngineOverview> {
        self.overview.read().clone()
    }

    /// Puts a document into effect, as a whole or not at all.
    pub async fn apply(&self, document: &CollectorDocument) -> Result<(), Vec<ApplyError>> {
        self.apply_with_claims(document, &Arc::new(self.listener_pool.claims())).await
    }

    /// The open listening sockets, which other servers of this process share.
    pub(crate) fn sockets(&self) -> &ListenerPool {
        &self.listener_pool
    }

    /// The reasons why this document could not be put into effect; empty if it could.
    pub(crate) async fn check(&self, document: &CollectorDocument, claims: &Arc<AddressClaims>) -> Vec<ApplyError> {
        let _changing = self.changing.lock().await;
        self.plan(document, claims).await.err().unwrap_or_default()
    }

    /// Like [`Engine::apply`], with addresses that other servers have claimed for the same document.
    pub(crate) async fn apply_with_claims(
        &self,
        document: &CollectorDocument,
        claims: &Arc<AddressClaims>,
    ) -> Result<(), Vec<ApplyError>> {
        let _changing = self.changing.lock().await;
        let plan = self.plan(document, claims).await?;
        let mut running = self.running.lock().await;
        // Also checked here, because a plan does not hold up the end.
        running.check_not_stopped()?;
        let retired = commit::commit(&mut running, plan, &self.registry);
        *self.overview.write() = Arc::new(running.overview());
        if !retired.is_empty() {
            self.drain_in_background(Arc::new(retired));
        }
        Ok(())
    }

    /// Plans a change of the graph as it is now, on a thread where files and name servers may take their time. The
    /// caller makes no other change meanwhile.
    async fn plan(
        &self,
        document: &CollectorDocument,
        claims: &Arc<AddressClaims>,
    ) -> Result<GraphPlan, Vec<ApplyError>> {
        let running = {
            let running = self.running.lock().await;
            running.check_not_stopped()?;
            running.snapshot()
        };
        let environment = PlanEnvironment {
            tables: self.tables,
            claims: claims.clone(),
            state_root: self.options.state_directory.clone(),
        };
        let document = document.clone();
        let planned = tokio::task::spawn_blocking(move || plan::plan_graph(&running, &document, &environment)).await;
        planned.unwrap_or_else(|error| {
            let message = format!("failed to plan the change: {error}");
            Err(vec![ApplyError { path: "service".into(), message }])
        })
    }

    /// Closes the receivers, and delivers queued data until the drain limit.
    pub async fn stop(&self) {
        let deadline = Instant::now() + self.options.drain_limit;
        let mut retired = self.running.lock().await.retire_all();
        // Components removed earlier are drained together with the rest, because they may still feed them.
        let earlier = std::mem::take(&mut *self.drain_tasks.lock());
        for DrainTask { retired: earlier, task, .. } in earlier.into_iter().rev() {
            task.abort();
            // Waits until the task has dropped its reference.
            let _ = task.await;
            Arc::into_inner(earlier).into_iter().for_each(|earlier| retired.add_earlier(earlier));
        }
        retired.drain(deadline).await;
    }

    fn drain_in_background(&self, retired: Arc<RetiredComponents>) {
        let deadline = Instant::now() + self.options.drain_limit;
        let is_drained = Arc::new(AtomicBool::new(false));
        let held = retired.clone();
        let drained = is_drained.clone();
        let list = Arc::downgrade(&self.drain_tasks);
        let mut retiring = self.drain_tasks.lock();
        let task = tokio::spawn(async move {
            held.drain(deadline).await;
            drop(held);
            drained.store(true, Ordering::Release);
            // Released right away rather than at the next change, because some components hold connections.
            let mut pause = MIN_RELEASE_INTERVAL;
            while list.upgrade().is_some_and(|list| !release_drained(&list, &drained)) {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(MAX_RELEASE_INTERVAL);
            }
        });
        retiring.push(DrainTask { retired, is_drained, task });
    }
}

/// Releases drained components that are not in use. Returns whether all components of the task with this flag
/// are gone.
fn release_drained(list: &DrainTaskList, flag: &Arc<AtomicBool>) -> bool {
    let mut retiring = list.lock();
    retiring.retain_mut(|earlier| {
        let is_drained = earlier.is_drained.load(Ordering::Acquire);
        let mut rest = Arc::get_mut(&mut earlier.retired).filter(|_| is_drained);
        rest.iter_mut().for_each(|rest| rest.release_unused());
        rest.is_none_or(|rest| !rest.is_empty())
    });
    !retiring.iter().any(|left| Arc::ptr_eq(&left.is_drained, flag))
}
