//! Where receivers hand in what they got: memory first, then the data.
//!
//! A receiver asks for [`Intake::admit`] with the length that it is about to read, before it reads. Every pipeline that
//! it feeds is charged by itself; those without memory are left out, and only when none has any is the sender refused: for good, if
//! none ever could have enough.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use kubewake_otlp::{Signal, Traits};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    Answer, Arrival, Batch, Charge, Consumer, DropReason, Member, Origin, PART_BYTES, Part, Pipeline, Refusal,
    SenderShare, link,
};

/// The pipelines that a receiver feeds, by signal. They can be exchanged while data flows.
#[derive(Default)]
pub struct Intake {
    traces: ArcSwap<Vec<Arc<Pipeline>>>,
    metrics: ArcSwap<Vec<Arc<Pipeline>>>,
    logs: ArcSwap<Vec<Arc<Pipeline>>>,
}

impl Intake {
    /// Feeds `pipelines` from now on.
    pub fn point_at(&self, signal: Signal, pipelines: Vec<Arc<Pipeline>>) {
        self.slot(signal).store(Arc::new(pipelines));
    }

    /// Whether anybody wants this signal.
    pub fn serves(&self, signal: Signal) -> bool {
        !self.slot(signal).load().is_empty()
    }

    /// Reserves memory for a request of `bytes` bytes, and not less than any request takes.
    pub fn admit(&self, signal: Signal, bytes: usize) -> Result<Admission, Refusal> {
        let bytes = bytes.max(PART_BYTES);
        let pipelines = self.slot(signal).load();
        let mut admission = Admission::new(signal, Vec::with_capacity(pipelines.len()), Vec::new());
        for pipeline in pipelines.iter() {
            match pipeline.admit(bytes as u64) {
                Some(charge) => admission.seats.push((pipeline.clone(), charge)),
                None => admission.full.push(pipeline.clone()),
            }
        }
        if admission.seats.is_empty() {
            return Err(refuse(&admission.full, |member| member.could_ever_admit(bytes as u64)));
        }
        Ok(admission)
    }

    /// Begins a request that has not arrived as a whole and claims to have `claim` bytes. Nothing is reserved for it yet, but where
    /// the memory for it is not free now, or never is, the sender is refused at once.
    pub fn begin_arrival(&self, signal: Signal, claim: usize, sender: &Arc<SenderShare>) -> Result<Arrival, Refusal> {
        Arrival::begin(signal, &self.slot(signal).load(), claim as u64, sender.clone())
    }

    fn slot(&self, signal: Signal) -> &ArcSwap<Vec<Arc<Pipeline>>> {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }
}

/// Memory that was reserved for one request, in each pipeline that will get it.
pub struct Admission {
    signal: Signal,
    seats: Vec<(Arc<Pipeline>, Charge)>,
    full: Vec<Arc<Pipeline>>,
    /// Its sender's place among those whose heavy work waits for a turn or has one.
    place: Option<OwnedSemaphorePermit>,
}

impl Admission {
    /// A request that has arrived as a whole, with its memory in each pipeline, and the pipelines that have none for it.
    pub(super) fn new(signal: Signal, seats: Vec<(Arc<Pipeline>, Charge)>, full: Vec<Arc<Pipeline>>) -> Self {
        Self { signal, seats, full, place: None }
    }

    /// Waits for a place among those whose heavy work is done, and keeps it until the request is handed in or given up. However
    /// many requests a sender has, it has few places, so that the work of others comes between, and so does memory for what
    /// its requests become.
    pub async fn take_place(&mut self, sender: &SenderShare) {
        if self.place.is_none() {
            self.place = sender.places().take().await;
        }
    }

    /// Reserves `more`, as a request grows while it is decompressed. A pipeline that has no more is left out; the
    /// request is refused when there is none left.
    pub fn grow(&mut self, more: usize) -> Result<(), Refusal> {
        self.grow_by(more, Charge::grow)
    }

    /// The same for work on the request, which is over soon and leaves some memory to others.
    pub fn grow_for_work(&mut self, more: usize) -> Result<(), Refusal> {
        self.grow_by(more, Charge::grow_for_work)
    }

    fn grow_by(&mut self, more: usize, grow: fn(&mut Charge, u64) -> bool) -> Result<(), Refusal> {
        let mut wanted = 0;
        for (pipeline, mut charge) in std::mem::take(&mut self.seats) {
            match grow(&mut charge, more as u64) {
                true => self.seats.push((pipeline, charge)),
                false => {
                    wanted = charge.bytes().saturating_add(more as u64);
                    self.full.push(pipeline);
                }
            }
        }
        match self.seats.is_empty() {
            true => Err(refuse(&self.full, |member| member.could_ever_hold(wanted))),
            false => Ok(()),
        }
    }

    /// Reserves `more` in every pipeline, or in none.
    #[must_use]
    pub fn grow_all(&mut self, more: usize) -> bool {
        let grow = |(_, charge): &mut (_, Charge)| charge.grow(more as u64).then_some(());
        let grown = self.seats.iter_mut().map_while(grow).count();
        let all = grown == self.seats.len();
        if !all {
            let undo = self.seats.iter_mut().take(grown);
            undo.for_each(|(_, charge)| charge.shrink_to(charge.bytes().saturating_sub(more as u64)));
        }
        all
    }

    /// Gives back all but `bytes`, and what any request takes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let bytes = bytes.max(PART_BYTES);
        self.seats.iter_mut().for_each(|(_, charge)| charge.shrink_to(bytes as u64));
    }

    /// Hands the request to the pipelines, and answers for them together.
    pub fn submit(self, bytes: Bytes, items: usize, traits: Traits, origin: Arc<Origin>) -> Answer {
        let Self { signal, seats, full, place: _until_handed_in } = self;
        let mut offers = seats.into_iter().map(|(pipeline, charge)| {
            let part = Part { traits, ..Part::new(bytes.clone(), items, origin.clone(), Arc::new(charge)) };
            (pipeline, Batch::single(signal, part))
        });
        let answer = match (offers.next(), offers.len()) {
            (Some((pipeline, batch)), 0) => link::offer_to_one(&pipeline, batch),
            (first, _) => {
                let offers = first.into_iter().chain(offers);
                link::offer_to_many(offers.map(|(pipeline, batch)| (pipeline as Arc<dyn Consumer>, batch)).collect())
            }
        };
        if full.is_empty() {
            return answer;
        }
        answer.when_taken(move || count_losses(&full, signal, items))
    }
}

/// What a sender is told for whom no pipeline has memory. It is to come again if one of them may have it then; one that feeds none is about to feed others.
#[cold]
pub(super) fn refuse(full: &[Arc<Pipeline>], may_have: impl Fn(&Member) -> bool) -> Refusal {
    full.iter().for_each(|pipeline| pipeline.stats().refuse());
    match full.is_empty() || full.iter().any(|pipeline| may_have(&pipeline.member())) {
        true => Refusal::memory(),
        false => Refusal::larger_than_memory(),
    }
}

/// Pipelines that had no memory while others took the request lost it.
#[cold]
fn count_losses(full: &[Arc<Pipeline>], signal: Signal, items: usize) {
    let charge = Arc::new(Charge::free());
    let tally = Part::new(Bytes::new(), items, Arc::default(), charge);
    let tally = Batch::single(signal, tally);
    full.iter().for_each(|pipeline| pipeline.lost(&tally, DropReason::MemoryLimit));
}

#[cfg(test)]
mod tests;
