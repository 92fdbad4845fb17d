//! A pipeline: an account of memory, a chain of processors, and outlets.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use arc_swap::ArcSwap;
use kubewake_config::PipelineId;
use tokio::sync::watch;

use super::{Answer, Batch, Charge, Consumer, DropReason, Link, Member, PipelineStats, Pressure, ProcessorStats};

/// A step between the receivers and the outlets that looks at the data.
pub trait Processor: Consumer {
    /// Where it hands data on.
    fn next(&self) -> &Link;

    /// It is no longer part of its pipeline. What still comes, from whoever had not heard of that, it does not hold back.
    fn retire(&self);

    /// Hands on everything that it holds.
    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The memory that a pipeline may use.
pub struct Allowance {
    /// Its access to a budget.
    pub member: Arc<Member>,
    /// The counters of the `memory_limiter` that the budget belongs to.
    pub limiter: Option<Arc<ProcessorStats>>,
}

/// The entry of a pipeline. Everything behind it can be exchanged while data flows.
pub struct Pipeline {
    id: PipelineId,
    allowance: ArcSwap<Allowance>,
    head: Link,
    stats: Arc<PipelineStats>,
    /// Never sent on: it is there to go with the pipeline.
    alive: watch::Sender<()>,
}

/// Tells when nobody holds a pipeline any more, so that nothing can come through it.
pub struct Gone(watch::Receiver<()>);

impl Gone {
    /// Ends when it is gone.
    pub async fn wait(&self) {
        let _ = self.0.clone().changed().await;
    }
}

impl Pipeline {
    /// A pipeline that leads nowhere yet.
    pub fn new(id: PipelineId, allowance: Allowance, stats: Arc<PipelineStats>) -> Arc<Self> {
        stats.draws_on(&allowance.member);
        let alive = watch::Sender::new(());
        Arc::new(Self { id, allowance: ArcSwap::from_pointee(allowance), head: Link::default(), stats, alive })
    }

    /// Tells when the last holder has let go. A request holds its pipelines from the moment it is let in.
    pub fn gone(&self) -> Gone {
        Gone(self.alive.subscribe())
    }

    /// Its id.
    pub fn id(&self) -> &PipelineId {
        &self.id
    }

    /// Its counters.
    pub fn stats(&self) -> &Arc<PipelineStats> {
        &self.stats
    }

    /// Where data goes first.
    pub fn head(&self) -> &Link {
        &self.head
    }

    /// Draws on another budget from now on.
    pub fn draw_on(&self, allowance: Allowance) {
        self.stats.draws_on(&allowance.member);
        self.allowance.store(Arc::new(allowance));
    }

    /// Reserves memory for a new request.
    pub fn admit(&self, bytes: u64) -> Option<Charge> {
        self.allowance.load().member.admit(bytes)
    }

    /// The memory that it draws on.
    pub fn member(&self) -> Arc<Member> {
        self.allowance.load().member.clone()
    }

    /// Counts what came in. What the sender was told to keep did not: it is neither lost nor held.
    fn count(&self, items: u64) {
        self.stats.receive(items);
        if let Some(limiter) = &self.allowance.load().limiter {
            limiter.incoming.fetch_add(items, Ordering::Relaxed);
            limiter.outgoing.fetch_add(items, Ordering::Relaxed);
        }
    }
}

impl Consumer for Pipeline {
    fn consume(self: Arc<Self>, batch: Batch, _: Pressure) -> Answer {
        let items = batch.items() as u64;
        let answer = self.head.offer(batch);
        answer.when_taken(move || self.count(items))
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, batch: &Batch, reason: DropReason) {
        let items = batch.items() as u64;
        // It came in, since the sender considers it taken.
        self.stats.receive(items);
        self.stats.dropped(reason, items);
        if reason == DropReason::MemoryLimit
            && let Some(limiter) = &self.allowance.load().limiter
        {
            limiter.incoming.fetch_add(items, Ordering::Relaxed);
            limiter.refused.fetch_add(items, Ordering::Relaxed);
        }
    }
}
