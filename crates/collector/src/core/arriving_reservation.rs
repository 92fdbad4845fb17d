//! Memory for requests that have not arrived completely.
//!
//! A complete request is charged in one step ([`super::PipelineSet::reserve`]). A request that announces its
//! length is charged as its data arrives, so that an announcement holds nothing. [`super::ArrivingCharge`]
//! bounds what such requests may hold together, and what one sender may hold with them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kubewake_otlp::Signal;

use super::{
    ArrivingCharge, PART_OVERHEAD_BYTES, Pipeline, Refusal, RequestReservation, heavy_work::HeavyWorkSlots,
    pipeline_set,
};

/// The memory that one sender holds with incomplete requests, and its slots for heavy work.
#[derive(Debug, Default)]
pub struct SenderShare {
    held: AtomicU64,
    heavy_work_slots: HeavyWorkSlots,
}

impl SenderShare {
    pub(super) fn heavy_work_slots(&self) -> &HeavyWorkSlots {
        &self.heavy_work_slots
    }
}

/// An incomplete request, with the memory reserved for it in each pipeline that will get it.
pub struct ArrivingReservation {
    signal: Signal,
    charges: Vec<(Arc<Pipeline>, ArrivingCharge)>,
    full_pipelines: Vec<Arc<Pipeline>>,
    sender: Arc<SenderShare>,
    held: u64,
}

impl ArrivingReservation {
    pub(super) fn begin(
        signal: Signal,
        pipelines: &[Arc<Pipeline>],
        claim: u64,
        sender: Arc<SenderShare>,
    ) -> Result<Self, Refusal> {
        let seats = Vec::with_capacity(pipelines.len());
        let mut arrival = Self { signal, charges: seats, full_pipelines: Vec::new(), sender, held: 0 };
        for pipeline in pipelines {
            match pipeline.member().begin_arrival(claim) {
                Some(charge) => arrival.charges.push((pipeline.clone(), charge)),
                None => arrival.full_pipelines.push(pipeline.clone()),
            }
        }
        if arrival.charges.is_empty() {
            Err(pipeline_set::memory_refusal(&arrival.full_pipelines, |member| member.could_ever_reserve(claim)))
        } else {
            Ok(arrival)
        }
    }

    /// Reserves `more` for data that arrived. Pipelines without memory are left out. If none has memory, the
    /// sender is refused and nothing changes, so that the caller may try again.
    pub fn grow(&mut self, more: usize) -> Result<(), Refusal> {
        // A complete request takes at least this much, however little has arrived.
        let more = if self.held == 0 { more.max(PART_OVERHEAD_BYTES) } else { more };
        let more = more as u64;
        let sender_held = self.sender.held.load(Ordering::Relaxed);
        let grown: Vec<bool> = self.charges.iter_mut().map(|(_, charge)| charge.grow(more, sender_held)).collect();
        if !grown.contains(&true) {
            let wanted = self.held.saturating_add(more);
            let full: Vec<_> = self.charges.iter().map(|(pipeline, _)| pipeline.clone()).collect();
            return Err(pipeline_set::memory_refusal(&full, |member| member.could_ever_hold(wanted)));
        }
        let seats = std::mem::take(&mut self.charges);
        for ((pipeline, charge), has_grown) in seats.into_iter().zip(grown) {
            if has_grown { self.charges.push((pipeline, charge)) } else { self.full_pipelines.push(pipeline) }
        }
        self.sender.held.fetch_add(more, Ordering::Relaxed);
        self.held += more;
        Ok(())
    }

    /// Turns it into the reservation of a complete request.
    pub fn finish(mut self) -> RequestReservation {
        let seats = std::mem::take(&mut self.charges).into_iter();
        let seats = seats.map(|(pipeline, charge)| (pipeline, charge.finish())).collect();
        RequestReservation::new(self.signal, seats, std::mem::take(&mut self.full_pipelines))
    }
}

impl Drop for ArrivingReservation {
    fn drop(&mut self) {
        self.sender.held.fetch_sub(self.held, Ordering::Relaxed);
    }
}
