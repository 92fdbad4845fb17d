//! Base of the processors that turn one request into another at once: filters, samplers, and edits of
//! attributes.
//!
//! Such a processor is a [`RequestTransform`]: a function from the bytes of one request to the bytes of another
//! one, or to none. A [`TransformProcessor`] makes it a component of a pipeline.
//!
//! *Guaranteed*: requests stay apart, in order, and keep their origin. An unchanged request is passed on
//! without a copy. A request without remaining records ends here, and its sender is told that it was accepted:
//! the document asks for that, and it is no loss. The charge follows the bytes: a request that shrinks gives
//! memory back, and one that grows is charged before anything is allocated, including the memory of the work
//! itself ([`WorkMemory`]); only a few hundred kilobytes for each thread are not charged. Without memory the
//! sender is refused. Data that was acknowledged before it came here waits for memory for
//! [`MEMORY_WAIT_TIMEOUT`]. Then it goes on with its old charge if it needs no more than [`UNCHARGED_FACTOR`]
//! times as much, and is counted as dropped otherwise. *Assumed*: a transform takes no longer than a scan
//! would: it runs on the thread that reads the request, or on another one if the request is large. *Not done*:
//! nothing is held back or buffered.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use kubewake_otlp::{Allowance, NoMemory, RetainedRecords, Signal, SpanTraits};
use tokio::time::Instant;

use crate::core::{
    Batch, Charge, ConsumeOutcome, Consumer, ConsumerFanout, DropReason, OverflowPolicy, PART_OVERHEAD_BYTES, Part,
    Processor, ProcessorStats, Refusal, WorkMemory, heavy_work,
};

/// Time that acknowledged data waits for memory. Exporters free memory with each batch that they deliver, so
/// that the wait is over at once unless nothing is delivered.
const MEMORY_WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The first pause between two attempts to get memory; it doubles with each attempt.
const INITIAL_BACKOFF: Duration = Duration::from_millis(20);

/// Limit of uncharged memory for acknowledged data, as a multiple of its charge. A span of 200 bytes that is
/// given an attribute or two takes three times as much meanwhile: a smaller factor would drop ordinary data.
const UNCHARGED_FACTOR: u64 = 4;

#[derive(Clone, Debug)]
pub struct TransformedRequest {
    /// A complete OTLP request; the same bytes if nothing changed.
    pub bytes: Bytes,
    /// Spans, data points or log records in it. A changed request without any ends here.
    pub items: usize,
}

impl TransformedRequest {
    /// Passes the request on as it is.
    pub fn unchanged(part: &Part) -> Self {
        Self { bytes: part.bytes.clone(), items: part.items }
    }
}

impl From<RetainedRecords> for TransformedRequest {
    fn from(retained: RetainedRecords) -> Self {
        Self { bytes: retained.bytes, items: retained.items }
    }
}

/// Turns a request into another one.
pub trait RequestTransform: Send + Sync {
    /// Transforms a request. Its bytes were scanned, and the result must be as valid.
    ///
    /// # Errors
    ///
    /// If `memory` refuses a reservation. It is asked before any allocation whose size a sender decides.
    fn transform(
        &self,
        signal: Signal,
        part: &Part,
        memory: &mut dyn Allowance,
    ) -> Result<TransformedRequest, NoMemory>;
}

/// A transform as a component of a pipeline.
pub struct TransformProcessor {
    signal: Signal,
    transform: ArcSwap<Box<dyn RequestTransform>>,
    stats: Arc<ProcessorStats>,
    next: ConsumerFanout,
}

impl TransformProcessor {
    /// Creates a processor that is not connected to consumers yet.
    pub fn new(signal: Signal, mapper: Box<dyn RequestTransform>, stats: Arc<ProcessorStats>) -> Arc<Self> {
        Arc::new(Self { signal, transform: ArcSwap::from_pointee(mapper), stats, next: ConsumerFanout::default() })
    }

    /// Uses another transform from the next request on.
    pub fn reconfigure(&self, mapper: Box<dyn RequestTransform>) {
        self.transform.store(Arc::new(mapper));
    }

    pub fn stats(&self) -> &ProcessorStats {
        &self.stats
    }

    /// Transforms the requests of a sender that can be refused.
    fn transform_batch(&self, batch: &mut Batch) -> Result<(), Refusal> {
        let mapper = self.transform.load();
        let mut refused = None;
        batch.retain_mut(|part| {
            if refused.is_some() {
                return true;
            }
            transform_part(&***mapper, self.signal, part, 0).unwrap_or_else(|refusal| {
                refused = Some(refusal);
                true
            })
        });
        refused.map_or(Ok(()), Err)
    }

    /// Transforms acknowledged requests, one after another. A request without memory waits, and is counted as
    /// dropped if waiting does not help.
    async fn transform_acknowledged(self: &Arc<Self>, batch: Batch) -> Batch {
        let mut out = Batch::empty(batch.signal()).with_failing_since(batch.failing_since());
        let mut since_yield = 0;
        for part in batch.into_parts() {
            since_yield += part.bytes.len();
            if let Some(part) = self.transform_waiting_for_memory(part).await {
                out.push(part);
            }
            // Many small requests take as long as a large one.
            if since_yield >= heavy_work::HEAVY_WORK_MIN_BYTES {
                since_yield = 0;
                tokio::task::yield_now().await;
            }
        }
        out
    }

    /// The transformed request; `None` if it has no records left or was dropped.
    async fn transform_waiting_for_memory(self: &Arc<Self>, mut part: Part) -> Option<Part> {
        let deadline = Instant::now() + MEMORY_WAIT_TIMEOUT;
        let mut pause = INITIAL_BACKOFF;
        let mut uncharged = 0;
        loop {
            let me = self.clone();
            let size = part.bytes.len();
            let work = move || {
                let result = transform_part(&***me.transform.load(), me.signal, &mut part, uncharged);
                (part, result)
            };
            let result;
            (part, result) = heavy_work::run(size, work).await;
            match result {
                Ok(is_left) => return is_left.then_some(part),
                Err(refusal) if refusal.is_retryable() && Instant::now() < deadline => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                Err(_) if uncharged == 0 => uncharged = part.charge.bytes().max(1).saturating_mul(UNCHARGED_FACTOR),
                Err(_) => {
                    self.drop_for_lack_of_memory(part);
                    return None;
                }
            }
        }
    }

    fn drop_for_lack_of_memory(&self, part: Part) {
        let items = part.items;
        tracing::error!(
            items,
            reason = DropReason::MemoryLimit.name(),
            "dropped data: processing needs more memory than the budget allows"
        );
        self.stats.refused.fetch_add(items as u64, Ordering::Relaxed);
        self.next.count_loss(&Batch::single(self.signal, part), DropReason::MemoryLimit);
    }

    /// Counts accepted items. Items that the sender has to keep did not come in.
    fn count(&self, incoming: usize, outgoing: usize) {
        self.stats.incoming.fetch_add(incoming as u64, Ordering::Relaxed);
        self.stats.outgoing.fetch_add(outgoing as u64, Ordering::Relaxed);
        self.stats.filtered.fetch_add(incoming.saturating_sub(outgoing) as u64, Ordering::Relaxed);
    }
}

impl Consumer for TransformProcessor {
    fn consume(self: Arc<Self>, mut batch: Batch, pressure: OverflowPolicy) -> ConsumeOutcome {
        let incoming = batch.items();
        if pressure == OverflowPolicy::Wait {
            return ConsumeOutcome::later(async move {
                let batch = self.transform_acknowledged(batch).await;
                self.count(incoming, batch.items());
                if !batch.is_empty() {
                    self.next.deliver(batch).await;
                }
                Ok(())
            });
        }
        if let Err(refusal) = self.transform_batch(&mut batch) {
            self.stats.refused.fetch_add(incoming as u64, Ordering::Relaxed);
            return ConsumeOutcome::Now(Err(refusal));
        }
        let outgoing = batch.items();
        if batch.is_empty() {
            self.count(incoming, outgoing);
            return ConsumeOutcome::Now(Ok(()));
        }
        let answer = self.next.offer(batch);
        answer.when_taken(move || self.count(incoming, outgoing))
    }

    // The consumer without room has counted the refusal already: this processor holds nothing, and is never one
    // of several consumers that are offered the same batch.
    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.next.count_loss(batch, reason);
    }
}

impl Processor for TransformProcessor {
    fn output(&self) -> &ConsumerFanout {
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

/// Transforms a request, with so much memory uncharged if there is none. False if no records are left; a
/// refused request stays as it was.
fn transform_part(
    mapper: &dyn RequestTransform,
    signal: Signal,
    part: &mut Part,
    uncharged: u64,
) -> Result<bool, Refusal> {
    let mut memory = WorkMemory::new(&part.charge).with_uncharged(uncharged);
    let mapped = mapper.transform(signal, part, &mut memory);
    let mapped = mapped.map_err(|NoMemory| memory.refusal())?;
    if is_same(&part.bytes, &mapped.bytes) {
        return Ok(true);
    }
    if mapped.items == 0 {
        return Ok(false);
    }
    let held = memory.into_charge();
    replace_bytes(part, mapped, held, uncharged)?;
    Ok(true)
}

/// Replaces the bytes of a request, and clears its traits. `held` was reserved for the new bytes, and
/// `uncharged` may be held without a charge.
fn replace_bytes(
    part: &mut Part,
    mapped: TransformedRequest,
    held: Option<Charge>,
    uncharged: u64,
) -> Result<(), Refusal> {
    let TransformedRequest { mut bytes, items } = mapped;
    let within = is_within(&part.bytes, &bytes);
    // A slice keeps all of the old request allocated. That is fine for most of it, and a waste for a small
    // part.
    let stays = within && bytes.len() >= part.bytes.len() / 2;
    if within && !stays {
        bytes = Bytes::copy_from_slice(&bytes);
    }
    let size = bytes.len().max(PART_OVERHEAD_BYTES) as u64;
    match held.filter(|held| held.bytes() >= size && !stays) {
        Some(mut held) => {
            held.shrink_to(size);
            part.charge = Arc::new(held);
        }
        None if stays || recharge(&mut part.charge, part.bytes.len(), bytes.len()) || size <= uncharged => {}
        None => return Err(Refusal::out_of_memory()),
    }
    (part.bytes, part.items, part.traits) = (bytes, items, SpanTraits::default());
    Ok(())
}

fn is_within(old: &Bytes, new: &Bytes) -> bool {
    let start = old.as_ptr().addr();
    (start..=start + old.len()).contains(&new.as_ptr().addr()) && new.len() <= old.len()
}

/// Changes a charge for `old` bytes into one for `new` bytes; false if there is no memory for more.
fn recharge(charge: &mut Arc<Charge>, old: usize, new: usize) -> bool {
    let wanted = new.max(PART_OVERHEAD_BYTES) as u64;
    let Some(own) = Arc::get_mut(charge) else {
        // The charge is shared by several parts of one request, this one among them.
        return new <= old || charge.reserve_copy(wanted).map(|another| *charge = Arc::new(another)).is_some();
    };
    let grown = own.grow(wanted.saturating_sub(own.bytes()));
    if grown {
        own.shrink_to(wanted);
    }
    grown
}

#[cfg(test)]
mod tests;
