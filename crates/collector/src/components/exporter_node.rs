//! Exporters as the engine handles them: a single exporter queue, or a load balancer.

use std::sync::Arc;

use kubewake_config::{ComponentId, PipelineId};
use tokio::time::Instant;

use super::ExporterParts;
use crate::core::{Consumer, DestinationLabels, ExporterQueue, ExporterQueueSettings, StatsRegistry};
#[cfg(feature = "exporter-loadbalancing")]
use crate::exporter::loadbalancing::{LoadBalancer, PreparedBalancer};

/// An exporter prepared from its settings, for one signal.
pub enum PreparedExporter {
    /// An exporter with one destination.
    Single(Box<ExporterParts>),
    /// An exporter that spreads data over many.
    #[cfg(feature = "exporter-loadbalancing")]
    Balanced(Box<PreparedBalancer>),
}

impl PreparedExporter {
    /// The destination, for labels; empty if there are many.
    pub fn destination(&self) -> DestinationLabels {
        match self {
            Self::Single(built) => built.destination.clone(),
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Balanced(_) => DestinationLabels::default(),
        }
    }
}

/// An exporter in a pipeline, with its queues.
#[derive(Clone)]
pub enum ExporterNode {
    Single(Arc<ExporterQueue>),
    #[cfg(feature = "exporter-loadbalancing")]
    Balanced(Arc<LoadBalancer>),
}

impl ExporterNode {
    /// An exporter that is ready to take data.
    pub fn new(
        id: &ComponentId,
        pipeline: &PipelineId,
        built: PreparedExporter,
        registry: &Arc<StatsRegistry>,
    ) -> Self {
        match built {
            PreparedExporter::Single(built) => {
                let settings = queue_settings(id, pipeline, *built, registry);
                Self::Single(ExporterQueue::new(id.clone(), pipeline.clone(), registry.pipeline(pipeline), settings))
            }
            #[cfg(feature = "exporter-loadbalancing")]
            PreparedExporter::Balanced(prepared) => {
                Self::Balanced(LoadBalancer::start(id.clone(), pipeline.clone(), registry, *prepared))
            }
        }
    }

    /// Applies new settings; queued data stays.
    pub fn reconfigure(
        &self,
        id: &ComponentId,
        pipeline: &PipelineId,
        built: PreparedExporter,
        registry: &Arc<StatsRegistry>,
    ) {
        match (self, built) {
            (Self::Single(outlet), PreparedExporter::Single(built)) => {
                outlet.reconfigure(queue_settings(id, pipeline, *built, registry))
            }
            #[cfg(feature = "exporter-loadbalancing")]
            (Self::Balanced(balancer), PreparedExporter::Balanced(prepared)) => balancer.reconfigure(*prepared),
            // An id keeps its type, so no other combination occurs.
            #[allow(unreachable_patterns)]
            _ => {}
        }
    }

    pub fn consumer(&self) -> Arc<dyn Consumer> {
        match self {
            Self::Single(outlet) => outlet.clone(),
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Balanced(balancer) => balancer.clone(),
        }
    }

    /// Whether there are other references, through which data may still arrive.
    pub fn is_in_use(&self) -> bool {
        match self {
            Self::Single(outlet) => Arc::strong_count(outlet) > 1,
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Balanced(balancer) => Arc::strong_count(balancer) > 1,
        }
    }

    /// Resets the gauges of an exporter that left its pipeline.
    pub fn retire(&self) {
        match self {
            Self::Single(outlet) => outlet.retire(),
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Balanced(balancer) => balancer.retire(),
        }
    }

    /// Waits until everything is delivered, at most until `deadline`, and counts the rest as dropped.
    pub async fn drain(&self, deadline: Instant) {
        match self {
            Self::Single(outlet) => outlet.drain(deadline).await,
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Balanced(balancer) => balancer.drain(deadline).await,
        }
    }

    /// Cancels all attempts, and counts everything that is held or still arrives as dropped.
    pub async fn halt(&self) {
        match self {
            Self::Single(outlet) => outlet.halt().await,
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Balanced(balancer) => balancer.halt().await,
        }
    }
}

fn queue_settings(
    id: &ComponentId,
    pipeline: &PipelineId,
    built: ExporterParts,
    registry: &StatsRegistry,
) -> ExporterQueueSettings {
    let ExporterParts { exporter, timeout, retry, queue, destination } = built;
    let stats = registry.exporter(id, pipeline, destination);
    ExporterQueueSettings { exporter, timeout, retry, queue, stats }
}
