//! What the processors have in common that turn a request into another one at once: filters, samplers, and all that change
//! attributes.
//!
//! Such a processor is a [`Mapper`]: a function from the bytes of one request to the bytes of another one, or to none. A
//! [`Mapping`] makes a step of a pipeline of it.
//!
//! *Guarantees.* Requests stay apart, in order, and keep their origin. One that is not changed is passed on as it is, without a
//! copy. One that has nothing left ends here, and its sender is told that it was taken: that is what the document
//! asks for, and no loss. The charge follows the bytes: what shrinks gives memory back, and what grows is charged for
//! that before it is allocated, with all that it takes to make it ([`WorkMemory`]); only a few hundred kilobytes for each thread are
//! not. A sender is refused when there is no memory for it. What was acknowledged before it came here waits for memory for
//! [`MEMORY_WAIT`]. Then it goes on with the charge that it had if it needs no more than [`UNCHARGED_FACTOR`] times as much, and is
//! counted as dropped otherwise.
//! *Assumes* that a mapper takes no longer than a scan would: it runs on the thread that reads the request, or on another one if the request is
//! large.
//! *Does not* hold anything.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use kubewake_otlp::{Allowance, NoMemory, Retained, Signal, Traits};
use tokio::time::Instant;

use crate::core::{
    Answer, Batch, Charge, Consumer, DropReason, Link, PART_BYTES, Part, Pressure, Processor, ProcessorStats, Refusal,
    WorkMemory, heavy,
};

/// How long acknowledged data waits for memory. Exporters free some with each batch that they deliver, so that this
/// is over at once unless nothing is delivered.
const MEMORY_WAIT: Duration = Duration::from_secs(5);

/// The first pause between two attempts to get memory; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Up to how many times its charge acknowledged data may take uncharged when there is no memory. A span of 200 bytes that is given an
/// attribute or two takes three times as much while that is done: less would drop ordinary data.
const UNCHARGED_FACTOR: u64 = 4;

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
    ///
    /// # Errors
    ///
    /// If `memory`, which is asked before anything is allocated that a sender decides the size of, does not grant it.
    fn map(&self, signal: Signal, part: &Part, memory: &mut dyn Allowance) -> Result<Mapped, NoMemory>;
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

    /// Maps the requests of a sender who can be refused.
    fn map(&self, batch: &mut Batch) -> Result<(), Refusal> {
        let mapper = self.mapper.load();
        let mut refused = None;
        batch.retain_mut(|part| {
            if refused.is_some() {
                return true;
            }
            map_one(&***mapper, self.signal, part, 0).unwrap_or_else(|refusal| {
                refused = Some(refusal);
                true
            })
        });
        refused.map_or(Ok(()), Err)
    }

    /// Maps requests that were acknowledged, one after another. What there is no memory for waits, and is counted if that does not help.
    async fn map_acknowledged(self: &Arc<Self>, batch: Batch) -> Batch {
        let mut out = Batch::empty(batch.signal()).failed_at(batch.failing_since());
        let mut since_yield = 0;
        for part in batch.into_parts() {
            since_yield += part.bytes.len();
            if let Some(part) = self.map_when_there_is_memory(part).await {
                out.push(part);
            }
            // Many small requests take as long as a large one.
            if since_yield >= heavy::HEAVY_BYTES {
                since_yield = 0;
                tokio::task::yield_now().await;
            }
        }
        out
    }

    /// The request as the mapper has it; `None` if nothing is left of it, or it was dropped.
    async fn map_when_there_is_memory(self: &Arc<Self>, mut part: Part) -> Option<Part> {
        let deadline = Instant::now() + MEMORY_WAIT;
        let (mut pause, mut uncharged) = (FIRST_PAUSE, 0);
        loop {
            let (me, size) = (self.clone(), part.bytes.len());
            let work = move || {
                let result = map_one(&***me.mapper.load(), me.signal, &mut part, uncharged);
                (part, result)
            };
            let result;
            (part, result) = heavy::run(size, work).await;
            match result {
                Ok(is_left) => return is_left.then_some(part),
                Err(refusal) if refusal.is_retryable() && Instant::now() < deadline => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(_) if uncharged == 0 => uncharged = part.charge.bytes().max(1).saturating_mul(UNCHARGED_FACTOR),
                Err(_) => {
                    self.drop_for_memory(part);
                    return None;
                }
            }
        }
    }

    fn drop_for_memory(&self, part: Part) {
        let items = part.items;
        tracing::error!(
            items,
            reason = DropReason::MemoryLimit.name(),
            "dropped data: it needs more memory than there is"
        );
        self.stats.refused.fetch_add(items as u64, Ordering::Relaxed);
        self.next.count_loss(&Batch::single(self.signal, part), DropReason::MemoryLimit);
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
        if pressure == Pressure::Wait {
            return Answer::later(async move {
                let batch = self.map_acknowledged(batch).await;
                self.count(incoming, batch.items());
                if !batch.is_empty() {
                    self.next.deliver(batch).await;
                }
                Ok(())
            });
        }
        if let Err(refusal) = self.map(&mut batch) {
            self.stats.refused.fetch_add(incoming as u64, Ordering::Relaxed);
            return Answer::Now(Err(refusal));
        }
        let outgoing = batch.items();
        if batch.is_empty() {
            self.count(incoming, outgoing);
            return Answer::Now(Ok(()));
        }
        let answer = self.next.offer(batch);
        answer.when_taken(move || self.count(incoming, outgoing))
    }

    // Whoever had no room has counted that already: this holds nothing, and is never one of several that are offered the same.
    fn refused(&self, _: &Batch) {}

    fn lost(&self, batch: &Batch, reason: DropReason) {
        self.next.count_loss(batch, reason);
    }
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

/// Maps a request, with so much memory uncharged if there is none. False if there is nothing left of it; if it is refused it
/// stays as it was.
fn map_one(mapper: &dyn Mapper, signal: Signal, part: &mut Part, uncharged: u64) -> Result<bool, Refusal> {
    let mut memory = WorkMemory::new(&part.charge).with_uncharged(uncharged);
    let mapped = mapper.map(signal, part, &mut memory);
    let mapped = mapped.map_err(|NoMemory| memory.refusal())?;
    if is_same(&part.bytes, &mapped.bytes) {
        return Ok(true);
    }
    if mapped.items == 0 {
        return Ok(false);
    }
    let held = memory.into_charge();
    replace(part, mapped, held, uncharged)?;
    Ok(true)
}

/// Gives a request other bytes, of which nothing more is known. `held` was reserved to make them, and so much may be held
/// uncharged.
fn replace(part: &mut Part, mapped: Mapped, held: Option<Charge>, uncharged: u64) -> Result<(), Refusal> {
    let Mapped { mut bytes, items } = mapped;
    let within = is_within(&part.bytes, &bytes);
    // It would hold on to all of the old request. That is fine for most of one, and a waste for a little.
    let stays = within && bytes.len() >= part.bytes.len() / 2;
    if within && !stays {
        bytes = Bytes::copy_from_slice(&bytes);
    }
    let size = bytes.len().max(PART_BYTES) as u64;
    match held.filter(|held| held.bytes() >= size && !stays) {
        Some(mut held) => {
            held.shrink_to(size);
            part.charge = Arc::new(held);
        }
        None if stays || recharge(&mut part.charge, part.bytes.len(), bytes.len()) || size <= uncharged => {}
        None => return Err(Refusal::memory()),
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
    let wanted = new.max(PART_BYTES) as u64;
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
