//! The counters of a process, by component or pipeline.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Weak, atomic::AtomicU64},
};

use kubewake_config::{ComponentId, PipelineId};
use kubewake_otlp::Signal;
use kubewake_runtime::lock::Mutex;

use super::{
    Budget, DestinationLabels, ExporterStats, PipelineStats, ProcessorStats, ReceiverStats,
    SharedInstances as SharedThings, TailSamplerStats, Transport, balancer_stats::BalancerStats,
    cluster_stats::ClusterStats, log_file_stats::LogFileStats,
};

type StatsMap<K, V> = Mutex<BTreeMap<K, Arc<V>>>;
type ExporterKey = (ComponentId, PipelineId, DestinationLabels);
/// Several for a key, of which some may still count.
type EndedStatsMap<K, V> = Mutex<BTreeMap<K, Vec<Arc<V>>>>;

/// The number of ended pipelines that `/status` can report. Losses of earlier ones remain in the metrics.
const MAX_ENDED_PIPELINES: usize = 64;

/// A pipeline that is no longer in the document.
#[derive(Clone, Debug)]
pub struct EndedPipeline {
    pub id: PipelineId,
    /// Tells pipelines with the same id apart, if the document set it.
    pub uid: Option<String>,
    /// The uids of the pipelines in other collectors for which it carried data.
    pub carries: Vec<String>,
    /// Its counters, which may still change while it drains.
    pub stats: Arc<PipelineStats>,
}

/// The counters of a process, by component or pipeline.
#[derive(Debug, Default)]
pub struct StatsRegistry {
    receivers: StatsMap<(ComponentId, Transport), ReceiverStats>,
    processors: StatsMap<(ComponentId, Signal), ProcessorStats>,
    exporters: StatsMap<ExporterKey, ExporterStats>,
    pipelines: StatsMap<PipelineId, PipelineStats>,
    /// Counters of pipelines that ended. They may still deliver what they hold.
    ended_exporters: EndedStatsMap<ExporterKey, ExporterStats>,
    ended_pipelines: EndedStatsMap<PipelineId, PipelineStats>,
    /// The pipelines that ended last, oldest first.
    last_ended_pipelines: Mutex<VecDeque<EndedPipeline>>,
    samplers: StatsMap<ComponentId, TailSamplerStats>,
    balancers: StatsMap<ComponentId, BalancerStats>,
    clusters: StatsMap<ComponentId, ClusterStats>,
    log_files: StatsMap<ComponentId, LogFileStats>,
    pub shared: SharedThings,
    budgets: Mutex<BTreeMap<ComponentId, Weak<Budget>>>,
    /// Documents refused since the start.
    pub reloads_refused: AtomicU64,
    /// Documents put into effect since the start.
    pub reloads_applied: AtomicU64,
}

fn get_or_create<K: Ord, V: Default>(map: &StatsMap<K, V>, key: K) -> Arc<V> {
    map.lock().entry(key).or_default().clone()
}

/// Moves counters aside. Those that are no longer in use are merged, so that their number stays bounded.
fn set_aside<K: Ord, V>(
    map: &StatsMap<K, V>,
    ended: &EndedStatsMap<K, V>,
    is_gone: impl Fn(&K) -> bool,
    absorb: impl Fn(&V, &V),
) {
    // Lock order, here and wherever both are read, so that no reader finds counters in neither or both.
    let mut ended = ended.lock();
    let mut map = map.lock();
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

/// The current counters, and those that were set aside.
fn entries_with_ended<K: Clone, V>(map: &StatsMap<K, V>, ended: &EndedStatsMap<K, V>) -> Vec<(K, Arc<V>)> {
    let ended = ended.lock();
    let mut found = entries(map);
    found.extend(ended.iter().flat_map(|(key, all)| all.iter().map(|stats| (key.clone(), Arc::clone(stats)))));
    found
}

fn entries<K: Clone, V>(map: &StatsMap<K, V>) -> Vec<(K, Arc<V>)> {
    let map = map.lock();
    map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

impl StatsRegistry {
    pub fn receiver(&self, id: &ComponentId, transport: Transport) -> Arc<ReceiverStats> {
        get_or_create(&self.receivers, (id.clone(), transport))
    }

    pub fn processor(&self, id: &ComponentId, signal: Signal) -> Arc<ProcessorStats> {
        get_or_create(&self.processors, (id.clone(), signal))
    }

    /// The counters of an exporter for one pipeline and destination.
    pub fn exporter(&self, id: &ComponentId, pipeline: &PipelineId, to: DestinationLabels) -> Arc<ExporterStats> {
        get_or_create(&self.exporters, (id.clone(), pipeline.clone(), to))
    }

    /// The counters of a load balancing exporter, over all its pipelines.
    pub fn balancer(&self, id: &ComponentId) -> Arc<BalancerStats> {
        get_or_create(&self.balancers, id.clone())
    }

    /// The counters of a receiver of log files.
    pub fn log_file(&self, id: &ComponentId) -> Arc<LogFileStats> {
        get_or_create(&self.log_files, id.clone())
    }

    pub fn log_files(&self) -> Vec<(ComponentId, Arc<LogFileStats>)> {
        entries(&self.log_files)
    }

    /// The counters of a processor that watches a cluster.
    pub fn cluster(&self, id: &ComponentId) -> Arc<ClusterStats> {
        get_or_create(&self.clusters, id.clone())
    }

    /// All processors that watch a cluster.
    pub fn clusters(&self) -> Vec<(ComponentId, Arc<ClusterStats>)> {
        entries(&self.clusters)
    }

    /// All load balancing exporters.
    pub fn balancers(&self) -> Vec<(ComponentId, Arc<BalancerStats>)> {
        entries(&self.balancers)
    }

    /// Removes a destination of a load balancing exporter. Its counters are added to `rest`, the counters
    /// without a destination, so that the sums stay and the number of labels stays bounded. The counters of a
    /// pipeline that ended are left as they are.
    pub fn forget_destination(
        &self,
        id: &ComponentId,
        pipeline: &PipelineId,
        to: DestinationLabels,
        rest: &Arc<ExporterStats>,
    ) {
        if !Arc::ptr_eq(rest, &self.exporter(id, pipeline, DestinationLabels::default())) {
            return;
        }
        let gone = {
            let mut exporters = self.exporters.lock();
            exporters.remove(&(id.clone(), pipeline.clone(), to))
        };
        gone.iter().filter(|gone| !Arc::ptr_eq(gone, rest)).for_each(|gone| rest.absorb(gone));
    }

    /// The counters of an exporter in a pipeline, by destination.
    pub fn destinations(
        &self,
        id: &ComponentId,
        pipeline: &PipelineId,
    ) -> Vec<(DestinationLabels, Arc<ExporterStats>)> {
        let exporters = self.exporters.lock();
        let of = exporters.iter().filter(|((by, within, _), _)| by == id && within == pipeline);
        of.map(|((.., to), stats)| (to.clone(), stats.clone())).collect()
    }

    pub fn pipeline(&self, id: &PipelineId) -> Arc<PipelineStats> {
        get_or_create(&self.pipelines, id.clone())
    }

    /// The counters of a tail sampler.
    pub fn sampler(&self, id: &ComponentId) -> Arc<TailSamplerStats> {
        get_or_create(&self.samplers, id.clone())
    }

    /// All tail samplers, current and former.
    pub fn samplers(&self) -> Vec<(ComponentId, Arc<TailSamplerStats>)> {
        entries(&self.samplers)
    }

    /// Reports the usage of a memory budget for as long as it exists.
    pub fn watch_budget(&self, limiter: &ComponentId, budget: &Arc<Budget>) {
        let mut budgets = self.budgets.lock();
        budgets.insert(limiter.clone(), Arc::downgrade(budget));
    }

    pub fn budgets(&self) -> Vec<(ComponentId, Arc<Budget>)> {
        let budgets = self.budgets.lock();
        budgets.iter().filter_map(|(id, budget)| Some((id.clone(), budget.upgrade()?))).collect()
    }

    pub fn receivers(&self) -> Vec<((ComponentId, Transport), Arc<ReceiverStats>)> {
        entries(&self.receivers)
    }

    pub fn processors(&self) -> Vec<((ComponentId, Signal), Arc<ProcessorStats>)> {
        entries(&self.processors)
    }

    /// All exporters, current and former. An exporter occurs several times if its pipeline id was used before.
    pub fn exporters(&self) -> Vec<(ExporterKey, Arc<ExporterStats>)> {
        entries_with_ended(&self.exporters, &self.ended_exporters)
    }

    /// All pipelines, current and former. An id occurs several times if it was used before.
    pub fn pipelines(&self) -> Vec<(PipelineId, Arc<PipelineStats>)> {
        entries_with_ended(&self.pipelines, &self.ended_pipelines)
    }

    /// Ends a pipeline. Its components keep their counters, and the next pipeline of the same id starts at
    /// zero.
    pub fn end_pipeline(&self, id: &PipelineId, uid: Option<&str>, carries: &[String]) {
        let ended = EndedPipeline {
            id: id.clone(),
            uid: uid.map(str::to_owned),
            carries: carries.to_vec(),
            stats: self.pipeline(id),
        };
        let mut last = self.last_ended_pipelines.lock();
        // Pipelines that no component counts for any more (the two references are this list and the one below)
        // and that lost nothing need not be reported.
        last.retain(|ended| Arc::strong_count(&ended.stats) > 2 || ended.stats.last_dropped().is_some());
        last.push_back(ended);
        while last.len() > MAX_ENDED_PIPELINES {
            last.pop_front();
        }
        drop(last);
        set_aside(&self.pipelines, &self.ended_pipelines, |ended| ended == id, PipelineStats::absorb);
        set_aside(&self.exporters, &self.ended_exporters, |(_, within, _)| within == id, ExporterStats::absorb);
    }

    /// The pipelines that ended last, oldest first. Those still draining may still count losses.
    pub fn last_ended(&self) -> Vec<EndedPipeline> {
        self.last_ended_pipelines.lock().iter().cloned().collect()
    }
}
