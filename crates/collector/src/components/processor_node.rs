//! Processors as the engine handles them.

use std::{any::Any, sync::Arc};

use kubewake_config::ComponentId;
use kubewake_otlp::Signal;

use crate::{
    core::{Processor, ProcessorStats, StatsRegistry},
    processor::transform::{RequestTransform, TransformProcessor},
};

/// What a processor knows while it is prepared.
pub struct ProcessorContext<'a> {
    pub id: &'a ComponentId,
    pub signal: Signal,
}

/// Where a processor starts: its id, the signal of its pipeline, and where it counts.
pub struct ProcessorSite<'a> {
    pub id: &'a ComponentId,
    pub signal: Signal,
    pub registry: &'a StatsRegistry,
}

/// What the settings of a processor amount to.
pub enum PreparedProcessor {
    /// A limit of the memory that the pipeline is charged to, in bytes.
    MemoryBudget {
        limit: u64,
        /// The part of it that is reserved for requests in progress.
        spike: u64,
    },
    /// A processor that data passes through.
    Node(PreparedNode),
}

impl PreparedProcessor {
    pub fn node(prepared: impl PrepareProcessor) -> Self {
        Self::Node(PreparedNode(Box::new(prepared)))
    }

    /// A processor that transforms each request at once. The transform is made when the processor starts.
    pub fn transform<T: RequestTransform + 'static>(
        make: impl FnOnce(&ComponentId, &ProcessorStats) -> T + Send + 'static,
    ) -> Self {
        Self::node(PreparedTransform(Box::new(move |id, stats| Box::new(make(id, stats)))))
    }
}

/// A checked processor that data passes through. It starts, or hands its settings to the running one; neither can
/// fail.
pub trait PrepareProcessor: Send + 'static {
    type Node: Processor;

    /// Creates a processor that is not connected to consumers yet.
    fn start(self, site: &ProcessorSite<'_>) -> Arc<Self::Node>;

    /// Applies the new settings to the running processor; data that it holds stays.
    fn reconfigure(self, node: &Self::Node, site: &ProcessorSite<'_>);
}

/// A prepared processor node of any type.
pub struct PreparedNode(Box<dyn AnyPrepared>);

impl PreparedNode {
    pub fn start(self, site: &ProcessorSite<'_>) -> Arc<dyn Processor> {
        self.0.start(site)
    }

    pub fn reconfigure(self, node: &Arc<dyn Processor>, site: &ProcessorSite<'_>) {
        self.0.reconfigure(&**node, site);
    }
}

trait AnyPrepared: Send {
    fn start(self: Box<Self>, site: &ProcessorSite<'_>) -> Arc<dyn Processor>;
    fn reconfigure(self: Box<Self>, node: &dyn Processor, site: &ProcessorSite<'_>);
}

impl<P: PrepareProcessor> AnyPrepared for P {
    fn start(self: Box<Self>, site: &ProcessorSite<'_>) -> Arc<dyn Processor> {
        PrepareProcessor::start(*self, site)
    }

    fn reconfigure(self: Box<Self>, node: &dyn Processor, site: &ProcessorSite<'_>) {
        // An id keeps its type, so that the running processor is always of this one.
        if let Some(node) = (node as &dyn Any).downcast_ref::<P::Node>() {
            PrepareProcessor::reconfigure(*self, node, site);
        }
    }
}

type MakeTransform = Box<dyn FnOnce(&ComponentId, &ProcessorStats) -> Box<dyn RequestTransform> + Send>;

/// A processor that is a function from a request to a request.
pub struct PreparedTransform(MakeTransform);

impl PrepareProcessor for PreparedTransform {
    type Node = TransformProcessor;

    fn start(self, site: &ProcessorSite<'_>) -> Arc<TransformProcessor> {
        let stats = site.registry.processor(site.id, site.signal);
        let transform = (self.0)(site.id, &stats);
        TransformProcessor::new(site.signal, transform, stats)
    }

    fn reconfigure(self, node: &TransformProcessor, site: &ProcessorSite<'_>) {
        node.reconfigure((self.0)(site.id, node.stats()));
    }
}
