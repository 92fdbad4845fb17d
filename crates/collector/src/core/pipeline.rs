//! A pipeline: a memory allowance, a chain of processors, and exporter queues.

use std::{
    any::Any,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use arc_swap::ArcSwap;
use kubewake_config::{ComponentId, PipelineId};
use tokio::sync::watch;

use super::{
    Batch, Charge, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, Member, OverflowPolicy, PipelineStats,
    ProcessorStats,
};

/// A processor between the receivers and the exporters.
pub trait Processor: Consumer + Any {
    /// The consumers that it passes data to.
    fn output(&self) -> &ConsumerFanout;

    /// Removes it from its pipeline. Data that still arrives from callers with an old reference is passed on at
    /// once.
    fn retire(&self);

    /// Passes on everything that it holds.
    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The memory that a pipeline may use.
pub struct Allowance {
    /// The access to its budget.
    pub member: Arc<Member>,
    /// The counters of the `memory_limiter` that owns the budget.
    pub limiter: Option<Arc<ProcessorStats>>,
}

/// The entry of a pipeline. Everything behind it can be replaced while data flows.
pub struct Pipeline {
    id: PipelineId,
    allowance: ArcSwap<Allowance>,
    head: ConsumerFanout,
    /// Its exporters and connectors, each of which a receipt of a request has a token for.
    outputs: ArcSwap<Vec<ComponentId>>,
    stats: Arc<PipelineStats>,
    /// Never written to: it is dropped with the pipeline, which wakes [`PipelineGone`].
    alive: watch::Sender<()>,
}

/// Resolves when no reference to a pipeline is left, so that no data can come through it any more.
pub struct PipelineGone(watch::Receiver<()>);

impl PipelineGone {
    /// Ends when the pipeline is gone.
    pub async fn wait(&self) {
        let _ = self.0.clone().changed().await;
    }
}

impl Pipeline {
    /// Creates a pipeline without consumers.
    pub fn new(id: PipelineId, allowance: Allowance, stats: Arc<PipelineStats>) -> Arc<Self> {
        stats.set_memory(&allowance.member);
        let alive = watch::Sender::new(());
        Arc::new(Self {
            id,
            allowance: ArcSwap::from_pointee(allowance),
            head: ConsumerFanout::default(),
            outputs: ArcSwap::default(),
            stats,
            alive,
        })
    }

    /// Returns a future for the drop of the last reference. A request holds its pipelines from its reservation
    /// on.
    pub fn watch_gone(&self) -> PipelineGone {
        PipelineGone(self.alive.subscribe())
    }

    pub fn id(&self) -> &PipelineId {
        &self.id
    }

    pub fn stats(&self) -> &Arc<PipelineStats> {
        &self.stats
    }

    pub fn head(&self) -> &ConsumerFanout {
        &self.head
    }

    /// The exporters and connectors at its end.
    pub fn outputs(&self) -> Arc<Vec<ComponentId>> {
        self.outputs.load_full()
    }

    /// Sets the exporters and connectors at its end, if they have changed.
    pub fn set_outputs(&self, outputs: Vec<ComponentId>) {
        if **self.outputs.load() != outputs {
            self.outputs.store(Arc::new(outputs));
        }
    }

    /// Charges new requests to another budget from now on.
    pub fn set_allowance(&self, allowance: Allowance) {
        self.stats.set_memory(&allowance.member);
        self.allowance.store(Arc::new(allowance));
    }

    /// Reserves memory for a new request.
    pub fn reserve(&self, bytes: u64) -> Option<Charge> {
        self.allowance.load().member.reserve(bytes)
    }

    /// The budget member that the pipeline is charged to.
    pub fn member(&self) -> Arc<Member> {
        self.allowance.load().member.clone()
    }

    /// Counts accepted items. Refused items stay with their sender: they are neither lost nor held.
    fn count_received(&self, items: u64) {
        self.stats.count_received(items);
        if let Some(limiter) = &self.allowance.load().limiter {
            limiter.incoming.fetch_add(items, Ordering::Relaxed);
            limiter.outgoing.fetch_add(items, Ordering::Relaxed);
        }
    }
}

impl Consumer for Pipeline {
    fn consume(self: Arc<Self>, batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let items = batch.items() as u64;
        match pressure {
            OverflowPolicy::Refuse => {
                let answer = self.head.offer(batch);
                answer.when_taken(move || self.count_received(items))
            }
            OverflowPolicy::Wait => ConsumeOutcome::later(async move {
                self.head.deliver(batch).await;
                self.count_received(items);
                Ok(())
            }),
        }
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        let items = batch.items() as u64;
        // Counted as received because the sender considers it taken.
        self.stats.count_received(items);
        self.stats.count_dropped(reason, items);
        if reason == DropReason::MemoryLimit
            && let Some(limiter) = &self.allowance.load().limiter
        {
            limiter.incoming.fetch_add(items, Ordering::Relaxed);
            limiter.refused.fetch_add(items, Ordering::Relaxed);
        }
    }
}
