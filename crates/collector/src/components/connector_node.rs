//! Connectors as the engine handles them.
//!
//! A connector is an exporter of some pipelines and a receiver of others. One runs for each signal that comes in, for
//! all pipelines of that signal together. What it passes on may be of another signal than what it takes.

use std::{any::Any, sync::Arc};

use futures_util::future::BoxFuture;
use kubewake_config::ComponentId;
use kubewake_otlp::Signal;
use tokio::sync::watch;

use crate::core::{
    Batch, ConnectorOutput, ConsumeOutcome, Consumer, DropReason, OverflowPolicy, PipelineStats, StatsRegistry,
};

/// What a connector knows while it is prepared.
pub struct ConnectorContext<'a> {
    pub id: &'a ComponentId,
    /// The signal that it takes.
    pub input: Signal,
}

/// Where a connector starts: its id, the signal that it takes, the pipelines that it feeds, and where it counts.
pub struct ConnectorSite<'a> {
    pub id: &'a ComponentId,
    pub input: Signal,
    pub output: &'a Arc<ConnectorOutput>,
    pub registry: &'a StatsRegistry,
}

/// A running connector.
pub trait Connector: Any + Send + Sync {
    /// Takes or refuses a batch of a pipeline that it is an exporter of. Its outcome is that of the pipelines that it
    /// feeds, unless it holds the data itself.
    ///
    /// With [`OverflowPolicy::Wait`] it waits until the data is taken. An error means that it has ended; the caller
    /// counts the loss.
    fn pass_on(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome;

    /// Passes on everything that it holds.
    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A checked connector. It starts, or hands its settings to the running one; neither can fail.
pub trait PrepareConnector: Send + 'static {
    type Running: Connector;

    /// Creates a connector. The pipelines that it feeds exist, and none feeds it yet.
    fn start(self, site: &ConnectorSite<'_>) -> Arc<Self::Running>;

    /// Applies the new settings to the running connector; data that it holds stays.
    fn reconfigure(self, running: &Self::Running, site: &ConnectorSite<'_>);
}

/// A prepared connector of any type.
pub struct PreparedConnector(Box<dyn AnyPrepared>);

impl PreparedConnector {
    pub fn new(prepared: impl PrepareConnector) -> Self {
        Self(Box::new(prepared))
    }

    pub fn start(self, site: &ConnectorSite<'_>) -> Arc<dyn Connector> {
        self.0.start(site)
    }

    pub fn reconfigure(self, running: &dyn Connector, site: &ConnectorSite<'_>) {
        self.0.reconfigure(running, site);
    }
}

trait AnyPrepared: Send {
    fn start(self: Box<Self>, site: &ConnectorSite<'_>) -> Arc<dyn Connector>;
    fn reconfigure(self: Box<Self>, running: &dyn Connector, site: &ConnectorSite<'_>);
}

impl<P: PrepareConnector> AnyPrepared for P {
    fn start(self: Box<Self>, site: &ConnectorSite<'_>) -> Arc<dyn Connector> {
        PrepareConnector::start(*self, site)
    }

    fn reconfigure(self: Box<Self>, running: &dyn Connector, site: &ConnectorSite<'_>) {
        // An id keeps its type, so that the running connector is always of this one.
        if let Some(running) = (running as &dyn Any).downcast_ref::<P::Running>() {
            PrepareConnector::reconfigure(*self, running, site);
        }
    }
}

/// A connector in its role as exporter of one pipeline. It counts for that pipeline: what the connector took is
/// delivered.
pub struct ConnectorInput {
    connector: Arc<dyn Connector>,
    pipeline_stats: Arc<PipelineStats>,
    /// Dropped with the input, so that the connector notices when nothing can come any more.
    _alive: watch::Receiver<()>,
}

impl ConnectorInput {
    /// An input that `inputs` counts for as long as a caller may use it.
    pub fn new(
        connector: Arc<dyn Connector>,
        pipeline_stats: Arc<PipelineStats>,
        inputs: &watch::Sender<()>,
    ) -> Arc<Self> {
        Arc::new(Self { connector, pipeline_stats, _alive: inputs.subscribe() })
    }

    /// Whether it leads to this connector.
    pub fn leads_to(&self, connector: &Arc<dyn Connector>) -> bool {
        Arc::ptr_eq(&self.connector, connector)
    }
}

impl Consumer for ConnectorInput {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let items = batch.items() as u64;
        let outcome = self.connector.clone().pass_on(batch, pressure);
        match pressure {
            OverflowPolicy::Refuse => outcome.when_taken(move || self.pipeline_stats.record_success(items)),
            OverflowPolicy::Wait => ConsumeOutcome::later(async move {
                let result = outcome.wait().await;
                match &result {
                    Ok(()) => self.pipeline_stats.record_success(items),
                    Err(_) => self.pipeline_stats.count_dropped(DropReason::Shutdown, items),
                }
                result
            }),
        }
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.pipeline_stats.count_dropped(reason, batch.items() as u64);
    }
}
