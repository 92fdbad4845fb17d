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

use std::{
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use kubewake_config::{ComponentId, Document};
use tokio::{sync::Mutex, task::JoinSet, time::Instant};

use self::running::Running;
use crate::{core::Registry, telemetry::RunningPipeline};

/// Why a document was not put into effect.
#[derive(Clone, Debug, thiserror::Error)]
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
    retiring: std::sync::Mutex<JoinSet<()>>,
}

impl Engine {
    /// An engine in which nothing runs.
    pub fn new(options: Options) -> Arc<Self> {
        Arc::new(Self {
            registry: Arc::default(),
            running: Mutex::new(Running::new(&options)),
            options,
            overview: RwLock::default(),
            retiring: std::sync::Mutex::default(),
        })
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
        let mut running = self.running.lock().await;
        let plan = plan::make(&running, document)?;
        let retired = commit::commit(&mut running, plan, &self.registry);
        *self.overview.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(running.overview());
        if !retired.is_empty() {
            let deadline = Instant::now() + self.options.drain_limit;
            let mut retiring = self.retiring.lock().unwrap_or_else(PoisonError::into_inner);
            while retiring.try_join_next().is_some() {}
            retiring.spawn(retired.drain(deadline));
        }
        Ok(())
    }

    /// Closes the receivers, delivers what is held as far as the time allows, and ends.
    pub async fn stop(&self) {
        let deadline = Instant::now() + self.options.drain_limit;
        let retired = self.running.lock().await.retire_all();
        retired.drain(deadline).await;
        let mut retiring = std::mem::take(&mut *self.retiring.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = tokio::time::timeout_at(deadline, async { while retiring.join_next().await.is_some() {} }).await;
    }
}
