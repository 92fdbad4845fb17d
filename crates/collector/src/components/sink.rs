//! The ends of pipelines, as the engine handles them.

use std::sync::Arc;

use kubewake_config::{ComponentId, PipelineId};
use tokio::time::Instant;

use super::BuiltExporter;
use crate::core::{Consumer, Destination, Outlet, OutletSettings, Registry};
#[cfg(feature = "exporter-loadbalancing")]
use crate::exporter::loadbalancing::{Balancer, Prepared};

/// An exporter as it was made from its settings, for one signal.
pub enum Built {
    /// It sends to one destination.
    One(Box<BuiltExporter>),
    /// It spreads data over many.
    #[cfg(feature = "exporter-loadbalancing")]
    Many(Box<Prepared>),
}

impl Built {
    /// Where it sends to, for labels; nowhere in particular if there are many.
    pub fn destination(&self) -> Destination {
        match self {
            Self::One(built) => built.destination.clone(),
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Many(_) => Destination::default(),
        }
    }
}

/// An exporter in a pipeline, with its buffers.
#[derive(Clone)]
pub enum Sink {
    /// With one destination.
    One(Arc<Outlet>),
    /// With many.
    #[cfg(feature = "exporter-loadbalancing")]
    Many(Arc<Balancer>),
}

impl Sink {
    /// One that is ready to take data.
    pub fn new(id: &ComponentId, pipeline: &PipelineId, built: Built, registry: &Arc<Registry>) -> Self {
        match built {
            Built::One(built) => {
                let settings = settings(id, pipeline, *built, registry);
                Self::One(Outlet::new(id.clone(), pipeline.clone(), registry.pipeline(pipeline), settings))
            }
            #[cfg(feature = "exporter-loadbalancing")]
            Built::Many(prepared) => Self::Many(Balancer::start(id.clone(), pipeline.clone(), registry, *prepared)),
        }
    }

    /// Puts new settings in force; what is held stays held.
    pub fn reconfigure(&self, id: &ComponentId, pipeline: &PipelineId, built: Built, registry: &Arc<Registry>) {
        match (self, built) {
            (Self::One(outlet), Built::One(built)) => outlet.reconfigure(settings(id, pipeline, *built, registry)),
            #[cfg(feature = "exporter-loadbalancing")]
            (Self::Many(balancer), Built::Many(prepared)) => balancer.reconfigure(*prepared),
            // An id keeps its type, so that no other pair can meet.
            #[allow(unreachable_patterns)]
            _ => {}
        }
    }

    /// Whoever takes the data.
    pub fn consumer(&self) -> Arc<dyn Consumer> {
        match self {
            Self::One(outlet) => outlet.clone(),
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Many(balancer) => balancer.clone(),
        }
    }

    /// Whether anybody else holds it, and so may still hand it data.
    pub fn is_in_use(&self) -> bool {
        match self {
            Self::One(outlet) => Arc::strong_count(outlet) > 1,
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Many(balancer) => Arc::strong_count(balancer) > 1,
        }
    }

    /// It is no longer part of its pipeline: its gauges go.
    pub fn retire(&self) {
        match self {
            Self::One(outlet) => outlet.retire(),
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Many(balancer) => balancer.retire(),
        }
    }

    /// Waits until everything is delivered, at most until `deadline`; then counts the rest as dropped.
    pub async fn drain(&self, deadline: Instant) {
        match self {
            Self::One(outlet) => outlet.drain(deadline).await,
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Many(balancer) => balancer.drain(deadline).await,
        }
    }

    /// Gives up: whatever is held, or still comes, is counted as dropped.
    pub async fn halt(&self) {
        match self {
            Self::One(outlet) => outlet.halt().await,
            #[cfg(feature = "exporter-loadbalancing")]
            Self::Many(balancer) => balancer.halt().await,
        }
    }
}

fn settings(id: &ComponentId, pipeline: &PipelineId, built: BuiltExporter, registry: &Registry) -> OutletSettings {
    let BuiltExporter { exporter, timeout, retry, queue, destination } = built;
    let stats = registry.exporter(id, pipeline, destination);
    OutletSettings { exporter, timeout, retry, queue, stats }
}
