//! All counters of a process, found by what they are labelled with.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, Weak, atomic::AtomicU64},
};

use kubewake_config::{ComponentId, PipelineId};
use kubewake_otlp::Signal;

use super::{
    Budget, Destination, ExporterStats, PipelineStats, ProcessorStats, ReceiverStats, Shared as SharedThings,
    TailStats, Transport, balancing::BalancerStats, cluster::ClusterStats,
};

type Shared<K, V> = Mutex<BTreeMap<K, Arc<V>>>;

/// All counters of a process, by what they are labelled with.
#[derive(Debug, Default)]
pub struct Registry {
    receivers: Shared<(ComponentId, Transport), ReceiverStats>,
    processors: Shared<(ComponentId, Signal), ProcessorStats>,
    exporters: Shared<(ComponentId, PipelineId, Destination), ExporterStats>,
    pipelines: Shared<PipelineId, PipelineStats>,
    samplers: Shared<ComponentId, TailStats>,
    balancers: Shared<ComponentId, BalancerStats>,
    clusters: Shared<ComponentId, ClusterStats>,
    /// What components use together.
    pub shared: SharedThings,
    budgets: Mutex<BTreeMap<ComponentId, Weak<Budget>>>,
    /// Documents that were refused since the start.
    pub reloads_refused: AtomicU64,
    /// Documents that were put into effect since the start.
    pub reloads_applied: AtomicU64,
}

fn get_or_make<K: Ord, V: Default>(map: &Shared<K, V>, key: K) -> Arc<V> {
    map.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone()
}

fn all<K: Clone, V>(map: &Shared<K, V>) -> Vec<(K, Arc<V>)> {
    let map = map.lock().unwrap_or_else(PoisonError::into_inner);
    map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

impl Registry {
    /// The counters of a receiver.
    pub fn receiver(&self, id: &ComponentId, transport: Transport) -> Arc<ReceiverStats> {
        get_or_make(&self.receivers, (id.clone(), transport))
    }

    /// The counters of a processor.
    pub fn processor(&self, id: &ComponentId, signal: Signal) -> Arc<ProcessorStats> {
        get_or_make(&self.processors, (id.clone(), signal))
    }

    /// The counters of an exporter in a pipeline.
    pub fn exporter(&self, id: &ComponentId, pipeline: &PipelineId, to: Destination) -> Arc<ExporterStats> {
        get_or_make(&self.exporters, (id.clone(), pipeline.clone(), to))
    }

    /// The counters of what an exporter does that has many destinations, in all its pipelines together.
    pub fn balancer(&self, id: &ComponentId) -> Arc<BalancerStats> {
        get_or_make(&self.balancers, id.clone())
    }

    /// The counters of a processor that looks at a cluster.
    pub fn cluster(&self, id: &ComponentId) -> Arc<ClusterStats> {
        get_or_make(&self.clusters, id.clone())
    }

    /// All processors that look at a cluster.
    pub fn clusters(&self) -> Vec<(ComponentId, Arc<ClusterStats>)> {
        all(&self.clusters)
    }

    /// All exporters that have many destinations.
    pub fn balancers(&self) -> Vec<(ComponentId, Arc<BalancerStats>)> {
        all(&self.balancers)
    }

    /// One of many destinations of an exporter has gone. What was counted for it is added to what counts for none, so that
    /// the sums stay and the number of labels does not grow forever.
    pub fn forget_destination(&self, id: &ComponentId, pipeline: &PipelineId, to: Destination) {
        let rest = self.exporter(id, pipeline, Destination::default());
        let gone = {
            let mut exporters = self.exporters.lock().unwrap_or_else(PoisonError::into_inner);
            exporters.remove(&(id.clone(), pipeline.clone(), to))
        };
        gone.iter().filter(|gone| !Arc::ptr_eq(gone, &rest)).for_each(|gone| rest.absorb(gone));
    }

    /// The counters of an exporter in a pipeline, for all that it sends to.
    pub fn destinations(&self, id: &ComponentId, pipeline: &PipelineId) -> Vec<(Destination, Arc<ExporterStats>)> {
        let exporters = self.exporters.lock().unwrap_or_else(PoisonError::into_inner);
        let of = exporters.iter().filter(|((by, within, _), _)| by == id && within == pipeline);
        of.map(|((.., to), stats)| (to.clone(), stats.clone())).collect()
    }

    /// The counters of a pipeline.
    pub fn pipeline(&self, id: &PipelineId) -> Arc<PipelineStats> {
        get_or_make(&self.pipelines, id.clone())
    }

    /// The counters of a tail sampler.
    pub fn sampler(&self, id: &ComponentId) -> Arc<TailStats> {
        get_or_make(&self.samplers, id.clone())
    }

    /// All tail samplers that there are or were.
    pub fn samplers(&self) -> Vec<(ComponentId, Arc<TailStats>)> {
        all(&self.samplers)
    }

    /// Shows what is used of a memory budget, as long as it exists.
    pub fn watch_budget(&self, limiter: &ComponentId, budget: &Arc<Budget>) {
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.insert(limiter.clone(), Arc::downgrade(budget));
    }

    /// The memory budgets that exist.
    pub fn budgets(&self) -> Vec<(ComponentId, Arc<Budget>)> {
        let budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        budgets.iter().filter_map(|(id, budget)| Some((id.clone(), budget.upgrade()?))).collect()
    }

    /// All receivers.
    pub fn receivers(&self) -> Vec<((ComponentId, Transport), Arc<ReceiverStats>)> {
        all(&self.receivers)
    }

    /// All processors.
    pub fn processors(&self) -> Vec<((ComponentId, Signal), Arc<ProcessorStats>)> {
        all(&self.processors)
    }

    /// All exporters.
    pub fn exporters(&self) -> Vec<((ComponentId, PipelineId, Destination), Arc<ExporterStats>)> {
        all(&self.exporters)
    }

    /// All pipelines that there are or were.
    pub fn pipelines(&self) -> Vec<(PipelineId, Arc<PipelineStats>)> {
        all(&self.pipelines)
    }
}
