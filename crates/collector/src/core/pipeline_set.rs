//! The pipelines of a receiver: a request reserves memory first, and hands in its data afterwards.
//!
//! A receiver calls [`PipelineSet::reserve`] with the length that it is about to read, before it reads. Every
//! pipeline that it feeds is charged separately, and pipelines without memory are left out. The sender is
//! refused only when no pipeline has memory: for good, if none could ever have enough.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use kubewake_otlp::{Signal, SpanTraits};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    ArrivingReservation, Batch, Charge, ConsumeOutcome, Consumer, DropReason, Member, Origin, PART_OVERHEAD_BYTES,
    Part, Pipeline, Refusal, SenderShare, fanout,
};

/// The pipelines that a receiver feeds, by signal. They can be replaced while data flows.
#[derive(Default)]
pub struct PipelineSet {
    traces: ArcSwap<Vec<Arc<Pipeline>>>,
    metrics: ArcSwap<Vec<Arc<Pipeline>>>,
    logs: ArcSwap<Vec<Arc<Pipeline>>>,
}

impl PipelineSet {
    /// Feeds `pipelines` from now on.
    pub fn set_pipelines(&self, signal: Signal, pipelines: Vec<Arc<Pipeline>>) {
        self.pipelines(signal).store(Arc::new(pipelines));
    }

    /// Whether any pipeline takes this signal.
    pub fn serves(&self, signal: Signal) -> bool {
        !self.pipelines(signal).load().is_empty()
    }

    /// The pipelines for this signal. They are drained only when nothing holds them any more.
    pub fn current(&self, signal: Signal) -> Arc<Vec<Arc<Pipeline>>> {
        self.pipelines(signal).load_full()
    }

    /// Reserves memory for a request of `bytes` bytes, at least [`PART_OVERHEAD_BYTES`].
    pub fn reserve(&self, signal: Signal, bytes: usize) -> Result<RequestReservation, Refusal> {
        let bytes = bytes.max(PART_OVERHEAD_BYTES);
        let pipelines = self.pipelines(signal).load();
        let mut admission = RequestReservation::new(signal, Vec::with_capacity(pipelines.len()), Vec::new());
        for pipeline in pipelines.iter() {
            match pipeline.reserve(bytes as u64) {
                Some(charge) => admission.charges.push((pipeline.clone(), charge)),
                None => admission.full_pipelines.push(pipeline.clone()),
            }
        }
        if admission.charges.is_empty() {
            return Err(memory_refusal(&admission.full_pipelines, |member| member.could_ever_reserve(bytes as u64)));
        }
        Ok(admission)
    }

    /// Begins a request that has not arrived completely and announces `claim` bytes. Nothing is reserved yet,
    /// but the sender is refused at once if that much memory is not free now, or never will be.
    pub fn begin_arrival(
        &self,
        signal: Signal,
        claim: usize,
        sender: &Arc<SenderShare>,
    ) -> Result<ArrivingReservation, Refusal> {
        ArrivingReservation::begin(signal, &self.pipelines(signal).load(), claim as u64, sender.clone())
    }

    fn pipelines(&self, signal: Signal) -> &ArcSwap<Vec<Arc<Pipeline>>> {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }
}

/// The memory reserved for one request, in each pipeline that will get it.
pub struct RequestReservation {
    signal: Signal,
    charges: Vec<(Arc<Pipeline>, Charge)>,
    full_pipelines: Vec<Arc<Pipeline>>,
    /// Charges of a refused request. They are released only after the refusal was sent.
    refused: Vec<Charge>,
    /// The slot of its sender for heavy work that waits or runs.
    heavy_work_slot: Option<OwnedSemaphorePermit>,
}

impl RequestReservation {
    /// A request that has arrived completely, with its charge in each pipeline, and the pipelines without
    /// memory for it.
    pub(super) fn new(
        signal: Signal,
        charges: Vec<(Arc<Pipeline>, Charge)>,
        full_pipelines: Vec<Arc<Pipeline>>,
    ) -> Self {
        Self { signal, charges, full_pipelines, refused: Vec::new(), heavy_work_slot: None }
    }

    /// Waits for a heavy work slot of the sender, and keeps it until the request is submitted or dropped. A
    /// sender has few slots however many requests it sends, so that the work of other senders is interleaved,
    /// and so is the memory for its results.
    pub async fn acquire_heavy_work_slot(&mut self, sender: &SenderShare) {
        if self.heavy_work_slot.is_none() {
            self.heavy_work_slot = sender.heavy_work_slots().acquire().await;
        }
    }

    /// Reserves `more`, as a request grows while it is decompressed. A pipeline without memory is left out; the
    /// request is refused when none is left.
    pub fn grow(&mut self, more: usize) -> Result<(), Refusal> {
        self.grow_by(more, Charge::grow)
    }

    /// Reserves `more` for short-lived work on the request, which leaves some memory to other requests.
    pub fn grow_for_work(&mut self, more: usize) -> Result<(), Refusal> {
        self.grow_by(more, Charge::grow_for_work)
    }

    fn grow_by(&mut self, more: usize, grow: fn(&mut Charge, u64) -> bool) -> Result<(), Refusal> {
        let mut wanted = 0;
        let mut left_out = Vec::new();
        for (pipeline, mut charge) in std::mem::take(&mut self.charges) {
            if grow(&mut charge, more as u64) {
                self.charges.push((pipeline, charge))
            } else {
                wanted = charge.bytes().saturating_add(more as u64);
                self.full_pipelines.push(pipeline);
                left_out.push(charge);
            }
        }
        if self.charges.is_empty() {
            self.refused = left_out;
            Err(memory_refusal(&self.full_pipelines, |member| member.could_ever_hold(wanted)))
        } else {
            Ok(())
        }
    }

    /// Reserves memory for the origin of the request, unless another request with the same origin did. A
    /// pipeline without memory is left out; the request is refused when none is left.
    pub fn hold_origin(&mut self, origin: &Origin) -> Result<(), Refusal> {
        let bytes = origin.metadata_bytes() as u64;
        if bytes == 0 || origin.charge.0.get().is_some() {
            return Ok(());
        }
        let mut charges = Vec::with_capacity(self.charges.len());
        let mut wanted = 0;
        for (pipeline, charge) in std::mem::take(&mut self.charges) {
            match charge.reserve_held(bytes) {
                Some(held) => {
                    charges.push(held);
                    self.charges.push((pipeline, charge));
                }
                None => {
                    wanted = charge.bytes().saturating_add(bytes);
                    self.full_pipelines.push(pipeline);
                }
            }
        }
        if self.charges.is_empty() {
            return Err(memory_refusal(&self.full_pipelines, |member| member.could_ever_reserve(wanted)));
        }
        // If another request charged it in the meantime, these charges are released.
        drop(origin.charge.0.set(charges));
        Ok(())
    }

    /// Reserves `more` in every pipeline, or in none.
    #[must_use]
    pub fn grow_all(&mut self, more: usize) -> bool {
        let grow = |(_, charge): &mut (_, Charge)| charge.grow(more as u64).then_some(());
        let grown = self.charges.iter_mut().map_while(grow).count();
        let all = grown == self.charges.len();
        if !all {
            let undo = self.charges.iter_mut().take(grown);
            undo.for_each(|(_, charge)| charge.shrink_to(charge.bytes().saturating_sub(more as u64)));
        }
        all
    }

    /// Releases all but `bytes`, and at least [`PART_OVERHEAD_BYTES`].
    pub fn shrink_to(&mut self, bytes: usize) {
        let bytes = bytes.max(PART_OVERHEAD_BYTES);
        self.charges.iter_mut().for_each(|(_, charge)| charge.shrink_to(bytes as u64));
    }

    /// Hands the request to the pipelines and combines their outcomes.
    pub fn submit(self, bytes: Bytes, items: usize, traits: SpanTraits, origin: Arc<Origin>) -> ConsumeOutcome {
        let Self { signal, charges: seats, full_pipelines: full, refused: _, heavy_work_slot: _until_handed_in } = self;
        let mut offers = seats.into_iter().map(|(pipeline, charge)| {
            let part = Part { traits, ..Part::new(bytes.clone(), items, origin.clone(), Arc::new(charge)) };
            (pipeline, Batch::single(signal, part))
        });
        let answer = match (offers.next(), offers.len()) {
            (Some((pipeline, batch)), 0) => fanout::offer_to_one(&pipeline, batch),
            (first, _) => {
                let offers = first.into_iter().chain(offers);
                fanout::offer_to_many(offers.map(|(pipeline, batch)| (pipeline as Arc<dyn Consumer>, batch)).collect())
            }
        };
        if full.is_empty() {
            return answer;
        }
        answer.when_taken(move || count_losses(&full, signal, items))
    }
}

/// The refusal of a request for which no pipeline has memory. It is retryable if one of them may have enough
/// later, or if the receiver feeds no pipeline, since it is about to feed others.
#[cold]
pub(super) fn memory_refusal(full: &[Arc<Pipeline>], may_have: impl Fn(&Member) -> bool) -> Refusal {
    full.iter().for_each(|pipeline| pipeline.stats().mark_refused());
    if full.is_empty() || full.iter().any(|pipeline| may_have(&pipeline.member())) {
        Refusal::out_of_memory()
    } else {
        Refusal::larger_than_memory()
    }
}

/// Counts a loss for pipelines that had no memory while others took the request.
#[cold]
fn count_losses(full: &[Arc<Pipeline>], signal: Signal, items: usize) {
    let charge = Arc::new(Charge::exempt());
    let tally = Part::new(Bytes::new(), items, Arc::default(), charge);
    let tally = Batch::single(signal, tally);
    full.iter().for_each(|pipeline| pipeline.count_lost(&tally, DropReason::MemoryLimit));
}

#[cfg(test)]
mod tests;
