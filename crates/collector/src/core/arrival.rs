//! Memory for requests that are still on their way.
//!
//! A request that is here as a whole is charged in one step ([`super::Intake::admit`]). One that only announces its length
//! is charged as its data arrives, so that an announcement holds nothing. What such requests may hold together, and what
//! one sender may hold with them, is bounded: see [`super::ArrivingCharge`].

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use kubewake_otlp::Signal;

use super::{Admission, ArrivingCharge, PART_BYTES, Pipeline, Refusal, heavy::SenderPlaces, intake};

/// What one sender holds with requests that have not arrived as a whole, and what heavy work is done for it.
#[derive(Debug, Default)]
pub struct SenderShare {
    held: AtomicU64,
    places: SenderPlaces,
}

impl SenderShare {
    /// The places of its heavy work.
    pub(super) fn places(&self) -> &SenderPlaces {
        &self.places
    }
}

/// A request on its way, with the memory that is reserved for it in each pipeline that will get it.
pub struct Arrival {
    signal: Signal,
    seats: Vec<(Arc<Pipeline>, ArrivingCharge)>,
    full: Vec<Arc<Pipeline>>,
    sender: Arc<SenderShare>,
    held: u64,
}

impl Arrival {
    pub(super) fn begin(
        signal: Signal,
        pipelines: &[Arc<Pipeline>],
        claim: u64,
        sender: Arc<SenderShare>,
    ) -> Result<Self, Refusal> {
        let seats = Vec::with_capacity(pipelines.len());
        let mut arrival = Self { signal, seats, full: Vec::new(), sender, held: 0 };
        for pipeline in pipelines {
            match pipeline.member().begin_arrival(claim) {
                Some(charge) => arrival.seats.push((pipeline.clone(), charge)),
                None => arrival.full.push(pipeline.clone()),
            }
        }
        match arrival.seats.is_empty() {
            true => Err(intake::refuse(&arrival.full, |member| member.could_ever_admit(claim))),
            false => Ok(arrival),
        }
    }

    /// Reserves `more` for data that arrived. A pipeline that has no more is left out. Where none has, the sender is refused and
    /// nothing changes, so that the caller may ask again.
    pub fn grow(&mut self, more: usize) -> Result<(), Refusal> {
        // However little arrives, a request takes more than that when it is whole.
        let more = if self.held == 0 { more.max(PART_BYTES) } else { more };
        let (more, sender_held) = (more as u64, self.sender.held.load(Ordering::Relaxed));
        let grown: Vec<bool> = self.seats.iter_mut().map(|(_, charge)| charge.grow(more, sender_held)).collect();
        if !grown.contains(&true) {
            let wanted = self.held.saturating_add(more);
            let full: Vec<_> = self.seats.iter().map(|(pipeline, _)| pipeline.clone()).collect();
            return Err(intake::refuse(&full, |member| member.could_ever_hold(wanted)));
        }
        let seats = std::mem::take(&mut self.seats);
        for ((pipeline, charge), has_grown) in seats.into_iter().zip(grown) {
            match has_grown {
                true => self.seats.push((pipeline, charge)),
                false => self.full.push(pipeline),
            }
        }
        self.sender.held.fetch_add(more, Ordering::Relaxed);
        self.held += more;
        Ok(())
    }

    /// The request is here as a whole.
    pub fn finish(mut self) -> Admission {
        let seats = std::mem::take(&mut self.seats).into_iter();
        let seats = seats.map(|(pipeline, charge)| (pipeline, charge.finish())).collect();
        Admission::new(self.signal, seats, std::mem::take(&mut self.full))
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.sender.held.fetch_sub(self.held, Ordering::Relaxed);
    }
}
