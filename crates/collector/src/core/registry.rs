//! All counters of a process, found by what they are labelled with.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError, Weak, atomic::AtomicU64},
};

use kubewake_config::{ComponentId, PipelineId};
use kubewake_otlp::Signal;

use super::{
    Budget, Destination, ExporterStats, PipelineStats, ProcessorStats, ReceiverStats, Shared as SharedThings,
    TailStats, Transport, balancing::BalancerStats, cluster::ClusterStats,
};

type Shared<K, V> = Mutex<BTreeMap<K, Arc<V>>>;
type OfExporter = (ComponentId, PipelineId, Destination);
/// Several for a key, of which some may still count.
type Ended<K, V> = Mutex<BTreeMap<K, Vec<Arc<V>>>>;

/// So many pipelines that went are told of. What an earlier one lost is in the metrics alone.
const MAX_LAST_ENDED: usize = 64;

/// A pipeline that is not in the document any more.
#[derive(Clone, Debug)]
pub struct EndedPipeline {
    /// Its id.
    pub id: PipelineId,
    /// Which one it was of all that have had its id, if the document said so.
    pub uid: Option<String>,
    /// The uids of the pipelines elsewhere for which it carried data.
    pub carries: Vec<String>,
    /// What it counted, and may still count.
    pub stats: Arc<PipelineStats>,
}

/// All counters of a process, by what they are labelled with.
#[derive(Debug, Default)]
pub struct Registry {
    receivers: Shared<(ComponentId, Transport), ReceiverStats>,
    processors: Shared<(ComponentId, Signal), ProcessorStats>,
    exporters: Shared<OfExporter, ExporterStats>,
    pipelines: Shared<PipelineId, PipelineStats>,
    /// Of pipelines that are gone. They may still deliver what they hold.
    ended_exporters: Ended<OfExporter, ExporterStats>,
    ended_pipelines: Ended<PipelineId, PipelineStats>,
    /// The last pipelines that went, oldest first, with whose they were.
    last_ended: Mutex<VecDeque<EndedPipeline>>,
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

/// Puts counters aside. Those that nobody counts with any more are added up, so that they do not become ever more.
fn end<K: Ord, V>(map: &Shared<K, V>, ended: &Ended<K, V>, is_gone: impl Fn(&K) -> bool, absorb: impl Fn(&V, &V)) {
    // This lock first, here and where both are read, so that nobody finds counters in none of them or in both.
    let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
    let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
    map.extract_if(.., |key, _| is_gone(key)).for_each(|(key, stats)| ended.entry(key).or_default().push(stats));
    for all in ended.values_mut() {
        let (idle, counting) = std::mem::take(all).into_iter().partition(|stats| Arc::strong_count(stats) == 1);
        let idle: Vec<Arc<V>> = idle;
        *all = counting;
        if let [first, rest @ ..] = idle.as_slice() {
            rest.iter().for_each(|more| absorb(first, more));
            all.push(Arc::clone(first));
        }
    }
}

/// Those that count, and those that are put aside.
fn with_ended<K: Clone, V>(map: &Shared<K, V>, ended: &Ended<K, V>) -> Vec<(K, Arc<V>)> {
    let ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = all(map);
    found.extend(ended.iter().flat_map(|(key, all)| all.iter().map(|stats| (key.clone(), Arc::clone(stats)))));
    found
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

    /// One of many destinations of an exporter has gone. What was counted for it is added to what counts for none, the `rest`, so that
    /// the sums stay and the number of labels does not grow forever. Of a pipeline that ended everything stays as it is.
    pub fn forget_destination(
        &self,
        id: &ComponentId,
        pipeline: &PipelineId,
        to: Destination,
        rest: &Arc<ExporterStats>,
    ) {
        if !Arc::ptr_eq(rest, &self.exporter(id, pipeline, Destination::default())) {
            return;
        }
        let gone = {
            let mut exporters = self.exporters.lock().unwrap_or_else(PoisonError::into_inner);
            exporters.remove(&(id.clone(), pipeline.clone(), to))
        };
        gone.iter().filter(|gone| !Arc::ptr_eq(gone, rest)).for_each(|gone| rest.absorb(gone));
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

    /// All exporters that there are or were. One is there several times if its pipeline is not the first of its id.
    pub fn exporters(&self) -> Vec<(OfExporter, Arc<ExporterStats>)> {
        with_ended(&self.exporters, &self.ended_exporters)
    }

    /// All pipelines that there are or were. An id is there several times if several have had it.
    pub fn pipelines(&self) -> Vec<(PipelineId, Arc<PipelineStats>)> {
        with_ended(&self.pipelines, &self.ended_pipelines)
    }

    /// A pipeline is gone. Its parts count on with what they have, and whoever has its id next begins with zero.
    pub fn end_pipeline(&self, id: &PipelineId, uid: Option<&str>, carries: &[String]) {
        let ended = EndedPipeline {
            id: id.clone(),
            uid: uid.map(str::to_owned),
            carries: carries.to_vec(),
            stats: self.pipeline(id),
        };
        let mut last = self.last_ended.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that nobody counts with any more, beside this list and the one below, and that lost nothing: there is nothing to tell of them.
        last.retain(|ended| Arc::strong_count(&ended.stats) > 2 || ended.stats.last_dropped().is_some());
        last.push_back(ended);
        while last.len() > MAX_LAST_ENDED {
            last.pop_front();
        }
        drop(last);
        end(&self.pipelines, &self.ended_pipelines, |ended| ended == id, PipelineStats::absorb);
        end(&self.exporters, &self.ended_exporters, |(_, within, _)| within == id, ExporterStats::absorb);
    }

    /// The last pipelines that went, oldest first. They may still count, and lose what they hold.
    pub fn last_ended(&self) -> Vec<EndedPipeline> {
        self.last_ended.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
