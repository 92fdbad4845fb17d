//! Telemetry of the collector itself: metrics for Prometheus, the `/status` document, and the server for both.
//!
//! *Guarantees.* Every response is made from counters and from the engine's running state at the time of the
//! request; nothing is sampled in between. No label, name or message holds a secret: labels are ids from the
//! document, addresses without credentials, and closed enums.

mod go_float;
pub mod process;
pub mod prometheus;
pub mod server;
pub mod status;
mod timestamp;

use std::sync::Arc;

use arc_swap::ArcSwap;
pub(crate) use go_float::format_shortest;
use kubewake_config::model::{MetricsLevel, PipelineCheck};
pub use kubewake_status::{CollectorPhase, CollectorStatus, SendState};
pub use process::{ProcessIdentity, ProcessInfo};
pub use server::{RouteHandler, TelemetryResponse, TelemetryServer};
pub use status::{LoadedRevision, PipelineInfo, RefusedRevision, RunningInfo};
pub(crate) use timestamp::format_rfc3339;

use crate::core::StatsRegistry;

/// The state behind all endpoints; one for each process, updated by the service.
#[derive(Debug)]
pub struct TelemetryState {
    registry: Arc<StatsRegistry>,
    process: ProcessIdentity,
    running: ArcSwap<RunningInfo>,
}

impl TelemetryState {
    /// The state of a process that has just started.
    pub fn new(registry: Arc<StatsRegistry>, process: ProcessIdentity) -> Arc<Self> {
        Arc::new(Self { registry, process, running: ArcSwap::default() })
    }

    pub fn registry(&self) -> &Arc<StatsRegistry> {
        &self.registry
    }

    pub fn process(&self) -> &ProcessIdentity {
        &self.process
    }

    /// The running state at the last update.
    pub fn running(&self) -> Arc<RunningInfo> {
        self.running.load_full()
    }

    /// Updates the running state. `change` may be called more than once.
    pub fn update(&self, change: impl Fn(&mut RunningInfo)) {
        self.running.rcu(|info| {
            let mut info = RunningInfo::clone(info);
            change(&mut info);
            info
        });
    }

    pub fn metrics(&self, level: MetricsLevel) -> String {
        prometheus::render(&self.registry, &self.process.info(), level)
    }

    pub fn status(&self, check: &PipelineCheck) -> CollectorStatus {
        status::build_status(&self.registry, &self.process, &self.running(), check, status::StatusClock::now())
    }
}

/// The routes of the metrics endpoint.
pub struct MetricsRoutes {
    telemetry: Arc<TelemetryState>,
    level: MetricsLevel,
}

impl MetricsRoutes {
    /// Routes that show metrics up to `level`.
    pub fn new(telemetry: Arc<TelemetryState>, level: MetricsLevel) -> Self {
        Self { telemetry, level }
    }
}

impl RouteHandler for MetricsRoutes {
    fn get(&self, path: &str) -> Option<TelemetryResponse> {
        let content_type = "text/plain; version=0.0.4; charset=utf-8";
        (path == "/metrics").then(|| TelemetryResponse::ok(content_type, self.telemetry.metrics(self.level)))
    }
}
