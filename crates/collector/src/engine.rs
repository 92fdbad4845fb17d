//! The engine: a graph of components, made from a document and exchanged for another while data flows.
//!
//! [`Engine::apply`] has two phases. *Plan* builds and binds everything that the new document needs beyond what runs,
//! and may fail: then nothing has changed, and every reason is reported. *Commit* swaps, and cannot fail. What did not
//! change (the same id, settings and files) keeps its sockets, connections, buffers and state. What changed takes its new settings in
//! place: a listener on the same address, a queue with what is in it. What went is drained in the background.

mod commit;
pub mod memory;
mod plan;
mod print;
mod running;
#[cfg(test)]
mod tests;

use std::{
    net::SocketAddr,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kubewake_config::{ComponentId, Document};
use tokio::{sync::Mutex, task::JoinHandle, time::Instant};

use self::running::{Retired, Running};
use crate::{
    core::Registry,
    net::sockets::{Claims, Sockets},
    telemetry::RunningPipeline,
};

/// Why a document was not put into effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct ApplyError {
    /// Where in the document: `exporters::otlp`.
    pub path: String,
    /// What is wrong, without secrets.
    pub message: String,
}

/// How an engine runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long what is held may still be delivered after a component went, or at the end.
    pub drain_limit: Duration,
    /// Memory for pipelines without a `memory_limiter`, in bytes.
    pub default_budget: u64,
}

impl Default for Options {
    fn default() -> Self {
        // 25 s: Kubernetes gives a pod 30 s between SIGTERM and SIGKILL.
        Self { drain_limit: Duration::from_secs(25), default_budget: memory::default_budget() }
    }
}

/// What runs at the moment, for those who look.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// The pipelines with their exporters.
    pub pipelines: Vec<RunningPipeline>,
    /// Where receivers listen: id, protocol, address.
    pub listeners: Vec<(ComponentId, &'static str, SocketAddr)>,
}

/// Runs documents.
pub struct Engine {
    registry: Arc<Registry>,
    options: Options,
    running: Mutex<Running>,
    overview: RwLock<Arc<Overview>>,
    retiring: RetiringList,
    sockets: Sockets,
}

/// What went in a change, and the task that drains it and then lets go of it.
struct Retiring {
    retired: Arc<Retired>,
    is_drained: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

type RetiringList = Arc<std::sync::Mutex<Vec<Retiring>>>;

/// How soon after draining it is looked again whether something that was still in use can go. The pause doubles up to the longest.
const FIRST_RELEASE_PAUSE: Duration = Duration::from_millis(100);
const LAST_RELEASE_PAUSE: Duration = Duration::from_secs(30);

impl Engine {
    /// An engine in which nothing runs.
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            registry: Arc::default(),
            running: Mutex::new(Running::new(&options)),
            options,
            overview: RwLock::default(),
            retiring: RetiringList::default(),
            sockets: Sockets::default(),
        })
    }

    /// How long what is held may still be delivered at the end.
    pub fn drain_limit(&self) -> Duration {
        self.options.drain_limit
    }

    /// The counters.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// What runs.
    pub fn overview(&self) -> Arc<Overview> {
        self.overview.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a document into effect, as a whole or not at all.
    pub async fn apply(&self, document: &Document) -> Result<(), Vec<ApplyError>> {
        self.apply_beside(document, &self.sockets.claims()).await
    }

    /// The sockets that are open, for whoever else listens in this process.
    pub(crate) fn sockets(&self) -> &Sockets {
        &self.sockets
    }

    /// Why this document could not be put into effect, if it could not.
    pub(crate) async fn check(&self, document: &Document, claims: &Claims) -> Vec<ApplyError> {
        plan::make(&*self.running.lock().await, document, claims).err().unwrap_or_default()
    }

    /// As [`Engine::apply`], where others have claimed addresses for the same document.
    pub(crate) async fn apply_beside(&self, document: &Document, claims: &Claims) -> Result<(), Vec<ApplyError>> {
        let mut running = self.running.lock().await;
        if running.stopped {
            let message = "the collector is stopping".into();
            return Err(vec![ApplyError { path: "service".into(), message }]);
        }
        let plan = plan::make(&running, document, claims)?;
        let retired = commit::commit(&mut running, plan, &self.registry);
        *self.overview.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(running.overview());
        if !retired.is_empty() {
            self.drain_in_background(Arc::new(retired));
        }
        Ok(())
    }

    /// Closes the receivers, delivers what is held as far as the time allows, and ends.
    pub async fn stop(&self) {
        let deadline = Instant::now() + self.options.drain_limit;
        let mut retired = self.running.lock().await.retire_all();
        // What went before is drained together with the rest: it may still feed what goes now.
        let earlier = std::mem::take(&mut *lock(&self.retiring));
        for Retiring { retired: earlier, task, .. } in earlier.into_iter().rev() {
            task.abort();
            // The task is gone, and its hold with it.
            let _ = task.await;
            Arc::into_inner(earlier).into_iter().for_each(|earlier| retired.add_earlier(earlier));
        }
        retired.drain(deadline).await;
    }

    fn drain_in_background(&self, retired: Arc<Retired>) {
        let deadline = Instant::now() + self.options.drain_limit;
        let is_drained = Arc::new(AtomicBool::new(false));
        let (held, drained, list) = (retired.clone(), is_drained.clone(), Arc::downgrade(&self.retiring));
        let mut retiring = lock(&self.retiring);
        let task = tokio::spawn(async move {
            held.drain(deadline).await;
            drop(held);
            drained.store(true, Ordering::Release);
            // At once, so that nothing of it goes on until the next change, such as connections that it keeps.
            let mut pause = FIRST_RELEASE_PAUSE;
            while list.upgrade().is_some_and(|list| !release(&list, &drained)) {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LAST_RELEASE_PAUSE);
            }
        });
        retiring.push(Retiring { retired, is_drained, task });
    }
}

fn lock(list: &RetiringList) -> std::sync::MutexGuard<'_, Vec<Retiring>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets go of whatever is drained and not in use; whether nothing is left of the one that this flag belongs to.
fn release(list: &RetiringList, flag: &Arc<AtomicBool>) -> bool {
    let mut retiring = lock(list);
    retiring.retain_mut(|earlier| {
        let is_drained = earlier.is_drained.load(Ordering::Acquire);
        let mut rest = Arc::get_mut(&mut earlier.retired).filter(|_| is_drained);
        rest.iter_mut().for_each(|rest| rest.let_go());
        rest.is_none_or(|rest| !rest.is_empty())
    });
    !retiring.iter().any(|left| Arc::ptr_eq(&left.is_drained, flag))
}
