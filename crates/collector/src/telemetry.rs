//! What the collector says of itself: metrics for Prometheus, the `/status` document, and the server for both.
//!
//! *Guarantees.* Everything here is made from counters and from what the engine says is running, at the moment it is
//! asked for; nothing is sampled in between. No label, name or message holds a secret: labels are ids from the
//! document, addresses without credentials, and closed enums.

mod number;
pub mod process;
pub mod prometheus;
pub mod server;
pub mod status;
mod text;

use std::sync::Arc;

use arc_swap::ArcSwap;
use kubewake_config::model::{Level, PipelineCheck};
pub(crate) use number::shortest;
pub use process::{Process, ProcessInfo};
pub use server::{Reply, Routes, Server};
pub use status::{Phase, RefusedRevision, Revision, RunningInfo, RunningPipeline, State, Status};
pub(crate) use text::rfc3339;

use crate::core::Registry;

/// What every endpoint reads from; one for each process, filled by the engine.
#[derive(Debug)]
pub struct Telemetry {
    registry: Arc<Registry>,
    process: Process,
    running: ArcSwap<RunningInfo>,
}

impl Telemetry {
    /// Of a process that has just started.
    pub fn new(registry: Arc<Registry>, process: Process) -> Arc<Self> {
        Arc::new(Self { registry, process, running: ArcSwap::default() })
    }

    /// The counters.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What the engine said last.
    pub fn running(&self) -> Arc<RunningInfo> {
        self.running.load_full()
    }

    /// The engine says what is running now. `change` may be called more than once.
    pub fn update(&self, change: impl Fn(&mut RunningInfo)) {
        self.running.rcu(|info| {
            let mut info = RunningInfo::clone(info);
            change(&mut info);
            info
        });
    }

    /// The page for Prometheus.
    pub fn metrics(&self, level: Level) -> String {
        prometheus::render(&self.registry, &self.process.info(), level)
    }

    /// The `/status` document.
    pub fn status(&self, check: &PipelineCheck) -> Status {
        status::build(&self.registry, &self.process, &self.running(), check, status::Clock::now())
    }
}

/// What the metrics endpoint answers.
pub struct MetricsRoutes {
    telemetry: Arc<Telemetry>,
    level: Level,
}

impl MetricsRoutes {
    /// Shows as much as `level` says.
    pub fn new(telemetry: Arc<Telemetry>, level: Level) -> Self {
        Self { telemetry, level }
    }
}

impl Routes for MetricsRoutes {
    fn get(&self, path: &str) -> Option<Reply> {
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        (path == "/metrics").then(|| Reply::ok(content_type, self.telemetry.metrics(self.level)))
    }
}
