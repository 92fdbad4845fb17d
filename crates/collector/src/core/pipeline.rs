//! A pipeline: an account of memory, a chain of processors, and outlets.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use arc_swap::ArcSwap;
use kubewake_config::PipelineId;

use super::{Answer, Batch, Charge, Consumer, DropReason, Link, Member, PipelineStats, Pressure};

/// A step between the receivers and the outlets that looks at the data.
pub trait Processor: Consumer {
    /// Where it hands data on.
    fn next(&self) -> &Link;

    /// Hands on everything that it holds.
    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The entry of a pipeline. Everything behind it can be exchanged while data flows.
pub struct Pipeline {
    id: PipelineId,
    member: ArcSwap<Member>,
    head: Link,
    stats: Arc<PipelineStats>,
}

impl Pipeline {
    /// A pipeline that leads nowhere yet.
    pub fn new(id: PipelineId, member: Arc<Member>, stats: Arc<PipelineStats>) -> Arc<Self> {
        Arc::new(Self { id, member: ArcSwap::new(member), head: Link::default(), stats })
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
    pub fn draw_on(&self, member: Arc<Member>) {
        self.member.store(member);
    }

    /// Reserves memory for a new request.
    pub fn admit(&self, bytes: u64) -> Option<Charge> {
        self.member.load().admit(bytes)
    }
}

impl Consumer for Pipeline {
    fn consume(self: Arc<Self>, batch: Batch, _: Pressure) -> Answer {
        let items = batch.items() as u64;
        match self.head.offer(batch) {
            Answer::Now(Ok(())) => {
                self.stats.received.fetch_add(items, Ordering::Relaxed);
                Answer::Now(Ok(()))
            }
            Answer::Now(refused) => Answer::Now(refused),
            Answer::Later(future) => Answer::later(async move {
                let result = future.await;
                if result.is_ok() {
                    self.stats.received.fetch_add(items, Ordering::Relaxed);
                }
                result
            }),
        }
    }

    fn refused(&self, _: &Batch) {}

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.stats.dropped(reason, batch.items() as u64);
    }
}
