//! What the processors have in common that turn a request into another one at once: filters, samplers, and all that change
//! attributes.
//!
//! Such a processor is a [`Mapper`]: a function from the bytes of one request to the bytes of another one, or to none. A
//! [`Mapping`] makes a step of a pipeline of it.
//!
//! *Guarantees.* Requests stay apart, in order, and keep their origin. One that is not changed is passed on as it is, without a
//! copy. One that has nothing left ends here, and its sender is told that it was taken: that is what the document
//! asks for, and no loss. The charge follows the bytes: what shrinks gives memory back, and what grows is charged for
//! that before it is handed on; a sender is refused when there is no memory for it. What was acknowledged before it came here is
//! never given up for want of memory: it goes on with the charge that it had.
//! *Assumes* that a mapper takes no longer than a scan would: it runs on the thread that reads the request. While it does, the old and
//! the new bytes are both there, which is bounded by the number of threads, and not charged.
//! *Does not* hold anything.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use kubewake_otlp::{Retained, Signal, Traits};

use crate::core::{
    Answer, Batch, Charge, Consumer, DropReason, Link, Part, Pressure, Processor, ProcessorStats, Refusal,
};

/// What a request became.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// A complete OTLP request; the same bytes if nothing changed.
    pub bytes: Bytes,
    /// Spans, data points or log records in it. A request that is not the same and has none ends here.
    pub items: usize,
}

impl Mapped {
    /// The request as it is.
    pub fn unchanged(part: &Part) -> Self {
        Self { bytes: part.bytes.clone(), items: part.items }
    }
}

impl From<Retained> for Mapped {
    fn from(retained: Retained) -> Self {
        Self { bytes: retained.bytes, items: retained.items }
    }
}

/// Turns a request into another one.
pub trait Mapper: Send + Sync {
    /// What the request becomes. Its bytes were scanned, and those of the answer must be as good.
    fn map(&self, signal: Signal, part: &Part) -> Mapped;
}

/// A mapper as a step of a pipeline.
pub struct Mapping {
    signal: Signal,
    mapper: ArcSwap<Box<dyn Mapper>>,
    stats: Arc<ProcessorStats>,
    next: Link,
}

impl Mapping {
    /// A step that leads nowhere yet.
    pub fn new(signal: Signal, mapper: Box<dyn Mapper>, stats: Arc<ProcessorStats>) -> Arc<Self> {
        Arc::new(Self { signal, mapper: ArcSwap::from_pointee(mapper), stats, next: Link::default() })
    }

    /// Maps by other rules from the next request on.
    pub fn reconfigure(&self, mapper: Box<dyn Mapper>) {
        self.mapper.store(Arc::new(mapper));
    }

    /// What it counts.
    pub fn stats(&self) -> &ProcessorStats {
        &self.stats
    }

    fn map(&self, batch: &mut Batch, pressure: Pressure) -> Result<(), Refusal> {
        let mapper = self.mapper.load();
        let mut refused = None;
        batch.retain_mut(|part| {
            let mapped = mapper.map(self.signal, part);
            if is_same(&part.bytes, &mapped.bytes) {
                return true;
            }
            let is_left = mapped.items > 0;
            if is_left && let Err(refusal) = replace(part, mapped, pressure) {
                refused = Some(refusal);
            }
            is_left
        });
        refused.map_or(Ok(()), Err)
    }

    /// Counts what was taken. What the sender was told to keep did not come in.
    fn count(&self, incoming: usize, outgoing: usize) {
        self.stats.incoming.fetch_add(incoming as u64, Ordering::Relaxed);
        self.stats.outgoing.fetch_add(outgoing as u64, Ordering::Relaxed);
        self.stats.filtered.fetch_add(incoming.saturating_sub(outgoing) as u64, Ordering::Relaxed);
    }
}

impl Consumer for Mapping {
    fn consume(self: Arc<Self>, mut batch: Batch, pressure: Pressure) -> Answer {
        let incoming = batch.items();
        if let Err(refusal) = self.map(&mut batch, pressure) {
            self.stats.refused.fetch_add(incoming as u64, Ordering::Relaxed);
            return Answer::Now(Err(refusal));
        }
        let outgoing = batch.items();
        if batch.is_empty() {
            self.count(incoming, outgoing);
            return Answer::Now(Ok(()));
        }
        if pressure == Pressure::Wait {
            self.count(incoming, outgoing);
            return Answer::later(async move {
                self.next.deliver(batch).await;
                Ok(())
            });
        }
        let answer = self.next.offer(batch);
        answer.when_taken(move || self.count(incoming, outgoing))
    }

    // Whoever had no room has counted that already: this holds nothing, and is never one of several that are offered the same.
    fn refused(&self, _: &Batch) {}

    fn lost(&self, _: &Batch, _: DropReason) {}
}

impl Processor for Mapping {
    fn next(&self) -> &Link {
        &self.next
    }

    fn retire(&self) {}

    fn flush<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }
}

fn is_same(old: &Bytes, new: &Bytes) -> bool {
    old.as_ptr() == new.as_ptr() && old.len() == new.len()
}

/// Gives a request other bytes, of which nothing more is known.
fn replace(part: &mut Part, mapped: Mapped, pressure: Pressure) -> Result<(), Refusal> {
    let Mapped { mut bytes, items } = mapped;
    let within = is_within(&part.bytes, &bytes);
    // It would hold on to all of the old request. That is fine for most of one, and a waste for a little.
    let stays = within && bytes.len() >= part.bytes.len() / 2;
    if within && !stays {
        bytes = Bytes::copy_from_slice(&bytes);
    }
    if !stays && !recharge(&mut part.charge, part.bytes.len(), bytes.len()) && pressure == Pressure::Refuse {
        return Err(Refusal::memory());
    }
    (part.bytes, part.items, part.traits) = (bytes, items, Traits::default());
    Ok(())
}

fn is_within(old: &Bytes, new: &Bytes) -> bool {
    let start = old.as_ptr().addr();
    (start..=start + old.len()).contains(&new.as_ptr().addr()) && new.len() <= old.len()
}

/// Makes a charge for `old` bytes one for `new` bytes; false if there is no memory for more.
fn recharge(charge: &mut Arc<Charge>, old: usize, new: usize) -> bool {
    let wanted = new as u64;
    let Some(own) = Arc::get_mut(charge) else {
        // It is for several pieces of one request together, this one among them.
        return new <= old || charge.another(wanted).map(|another| *charge = Arc::new(another)).is_some();
    };
    let grown = own.grow(wanted.saturating_sub(own.bytes()));
    if grown {
        own.shrink_to(wanted);
    }
    grown
}

#[cfg(test)]
mod tests;
