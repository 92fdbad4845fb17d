//! Exporters as the engine handles them.

use std::{any::Any, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use kubewake_config::{
    ComponentId, PipelineId,
    model::{QueueConfig, RetryConfig},
};
use tokio::time::Instant;

use crate::{
    core::{Consumer, DestinationLabels, Exporter, ExporterQueue, ExporterQueueSettings, StatsRegistry},
    extension::ClientAuth,
};

/// What an exporter may use while it is prepared.
pub struct ExporterContext<'a> {
    pub id: &'a ComponentId,
    /// The pipeline that it belongs to; an exporter is built for each.
    pub pipeline: &'a PipelineId,
    /// The credentials that its settings refer to.
    pub auth: Option<Arc<dyn ClientAuth>>,
}

/// Where an exporter starts: its id, its pipeline, and where it counts.
pub struct ExporterSite<'a> {
    pub id: &'a ComponentId,
    pub pipeline: &'a PipelineId,
    pub registry: &'a Arc<StatsRegistry>,
}

/// A running exporter of one pipeline, with its queues.
pub trait ExporterNode: Consumer + Any {
    /// Resets the gauges of an exporter that left its pipeline.
    fn retire(&self);

    /// Waits until everything is delivered, at most until `deadline`, and counts the rest as dropped.
    fn drain(&self, deadline: Instant) -> BoxFuture<'_, ()>;

    /// Cancels all attempts, and counts everything that is held or still arrives as dropped.
    fn halt(&self) -> BoxFuture<'_, ()>;
}

/// A checked exporter. It starts, or hands its settings to the running one; neither can fail.
pub trait PrepareExporter: Send + 'static {
    type Node: ExporterNode;

    /// The destination, for labels; empty if there are many.
    fn destination(&self) -> DestinationLabels {
        DestinationLabels::default()
    }

    /// Creates an exporter that is ready to take data.
    fn start(self, site: &ExporterSite<'_>) -> Arc<Self::Node>;

    /// Applies the new settings to the running exporter; queued data stays.
    fn reconfigure(self, node: &Arc<Self::Node>, site: &ExporterSite<'_>);
}

/// A prepared exporter of any type, for one pipeline.
pub struct PreparedExporter(Box<dyn AnyPrepared>);

impl PreparedExporter {
    /// An exporter with queues of its own. Most exporters are [`ExporterParts`] instead.
    pub fn new(prepared: impl PrepareExporter) -> Self {
        Self(Box::new(prepared))
    }

    pub fn destination(&self) -> DestinationLabels {
        self.0.destination()
    }

    pub fn start(self, site: &ExporterSite<'_>) -> Arc<dyn ExporterNode> {
        self.0.start(site)
    }

    pub fn reconfigure(self, node: &Arc<dyn ExporterNode>, site: &ExporterSite<'_>) {
        self.0.reconfigure(node.clone(), site);
    }
}

trait AnyPrepared: Send {
    fn destination(&self) -> DestinationLabels;
    fn start(self: Box<Self>, site: &ExporterSite<'_>) -> Arc<dyn ExporterNode>;
    fn reconfigure(self: Box<Self>, node: Arc<dyn Any + Send + Sync>, site: &ExporterSite<'_>);
}

impl<P: PrepareExporter> AnyPrepared for P {
    fn destination(&self) -> DestinationLabels {
        PrepareExporter::destination(self)
    }

    fn start(self: Box<Self>, site: &ExporterSite<'_>) -> Arc<dyn ExporterNode> {
        PrepareExporter::start(*self, site)
    }

    fn reconfigure(self: Box<Self>, node: Arc<dyn Any + Send + Sync>, site: &ExporterSite<'_>) {
        // An id keeps its type, so that the running exporter is always of this one.
        if let Ok(node) = node.downcast::<P::Node>() {
            PrepareExporter::reconfigure(*self, &node, site);
        }
    }
}

/// The parts of an exporter that sends to one destination; the queue in front of it is made from them.
pub struct ExporterParts {
    pub exporter: Arc<dyn Exporter>,
    pub timeout: Option<Duration>,
    /// The retry policy; `None` disables retries.
    pub retry: Option<RetryConfig>,
    /// The queue in front of it.
    pub queue: Option<QueueConfig>,
    /// The destination, for labels.
    pub destination: DestinationLabels,
}

impl ExporterParts {
    fn into_queue_settings(self, site: &ExporterSite<'_>) -> ExporterQueueSettings {
        let Self { exporter, timeout, retry, queue, destination } = self;
        let stats = site.registry.exporter(site.id, site.pipeline, destination);
        ExporterQueueSettings { exporter, timeout, retry, queue, stats }
    }
}

impl PrepareExporter for ExporterParts {
    type Node = ExporterQueue;

    fn destination(&self) -> DestinationLabels {
        self.destination.clone()
    }

    fn start(self, site: &ExporterSite<'_>) -> Arc<ExporterQueue> {
        let stats = site.registry.pipeline(site.pipeline);
        ExporterQueue::new(site.id.clone(), site.pipeline.clone(), stats, self.into_queue_settings(site))
    }

    fn reconfigure(self, node: &Arc<ExporterQueue>, site: &ExporterSite<'_>) {
        node.reconfigure(self.into_queue_settings(site));
    }
}

impl ExporterNode for ExporterQueue {
    fn retire(&self) {
        Self::retire(self);
    }

    fn drain(&self, deadline: Instant) -> BoxFuture<'_, ()> {
        Box::pin(Self::drain(self, deadline))
    }

    fn halt(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::halt(self))
    }
}
