//! Memory use of the tail sampler, and its reaction to overload.
//!
//! *Guaranteed*: traces that linger for late errors are given up, oldest first and in all shards, before a new
//! trace is decided without a wait and before a request is refused.

use std::sync::atomic::Ordering;

use super::{ArrivedRequest, TailSampler, arrival::ShardShare, shard::SamplingMoment};
use crate::core::{Charge, Refusal};

/// Overload begins when so many percent of the memory for new requests are in use, and ends at so many: new
/// traces do not wait meanwhile.
const OVERLOAD_PERCENT: (u64, u64) = (85, 60);
/// From this use on no trace lingers: lingering traces are never the reason that an overload goes on, and
/// requests of any acceptable size find room.
const MAX_LINGER_PERCENT: u64 = OVERLOAD_PERCENT.1;

impl TailSampler {
    /// Sets the account that memory for output is taken from: that of the pipeline that requests come through.
    pub(super) fn open_account(&self, charge: &Charge) {
        let known = self.account.load();
        if !known.as_ref().is_some_and(|account| account.has_same_member(charge)) {
            self.account.store(charge.reserve_copy(0).map(std::sync::Arc::new));
        }
    }

    /// The current time and load; checks the memory.
    pub(super) fn observe_moment(&self) -> SamplingMoment {
        let (mut used, limit) = self.memory_fill();
        if self.lingers.load(Ordering::Relaxed) && is_filled_to(MAX_LINGER_PERCENT, used, limit) {
            self.give_up_lingering(MAX_LINGER_PERCENT);
            used = self.memory_fill().0;
        }
        let was = self.overloaded.load(Ordering::Relaxed);
        let overloaded = is_filled_to(if was { OVERLOAD_PERCENT.1 } else { OVERLOAD_PERCENT.0 }, used, limit);
        if overloaded != was && self.overloaded.swap(overloaded, Ordering::Relaxed) != overloaded {
            self.report_overload(overloaded);
        }
        // One trace never takes more than an eighth of the limit. A retired sampler lets no trace wait, and
        // need not watch the memory.
        SamplingMoment { now: self.start.elapsed(), overloaded: overloaded && !self.is_retired(), largest: limit / 8 }
    }

    /// The used part of the memory for new requests, and its limit.
    fn memory_fill(&self) -> (u64, u64) {
        let fill = self.account.load().as_ref().and_then(|account| account.usage());
        fill.unwrap_or((0, u64::MAX))
    }

    /// Reserves memory for all requests, or for none. If they do not fit, lingering traces are given up.
    pub(super) fn reserve(&self, requests: &[ArrivedRequest]) -> Option<Vec<Charge>> {
        let charges = self.try_reserve(requests);
        if charges.is_some() || !self.lingers.load(Ordering::Relaxed) {
            return charges;
        }
        self.give_up_lingering(0);
        self.try_reserve(requests)
    }

    fn try_reserve(&self, requests: &[ArrivedRequest]) -> Option<Vec<Charge>> {
        let mut charges = Vec::new();
        for request in requests {
            for cost in self.costs(request) {
                charges.push(request.part.charge.reserve_held(cost)?);
            }
        }
        Some(charges)
    }

    /// The memory that each shard needs for its part of a request.
    fn costs(&self, request: &ArrivedRequest) -> impl Iterator<Item = u64> {
        (0..self.lanes.len()).filter_map(|lane| request.arrival.share(lane)).map(ShardShare::cost)
    }

    /// The refusal of a request without memory for its facts: retryable, if there may be enough memory later.
    pub(super) fn read_refusal(&self, charge: &Charge, needed: u64) -> Refusal {
        if charge.could_ever_copy(std::iter::once(charge), needed) {
            Refusal::out_of_memory()
        } else {
            Refusal::larger_than_memory()
        }
    }

    /// The refusal of requests without memory for their spans.
    pub(super) fn hold_refusal(&self, requests: &[ArrivedRequest]) -> Refusal {
        let Some(first) = requests.first() else { return Refusal::out_of_memory() };
        let held = requests.iter().flat_map(|request| [&*request.part.charge, request.arrival.charge()]);
        let needed = requests.iter().flat_map(|request| self.costs(request));
        if first.part.charge.could_ever_hold(held, needed) {
            Refusal::out_of_memory()
        } else {
            Refusal::larger_than_memory()
        }
    }

    /// Gives up lingering traces, those with the least time left first, until memory use is below so many
    /// percent, or none are left.
    pub(super) fn give_up_lingering(&self, percent: u64) {
        // Cleared before the pass, so that no trace that lingers from now on is missed.
        self.lingers.store(false, Ordering::Relaxed);
        let first = || self.lanes.iter().filter_map(|lane| lane.shard.state().lingers_until()).min();
        while let Some(tick) = first() {
            self.lanes.iter().for_each(|lane| lane.shard.state().stop_lingering(tick));
            let (used, limit) = self.memory_fill();
            if !is_filled_to(percent, used, limit) {
                self.lingers.store(true, Ordering::Relaxed);
                return;
            }
        }
    }

    fn report_overload(&self, overloaded: bool) {
        if overloaded {
            self.sampling.overloaded.fetch_add(1, Ordering::Relaxed);
            self.sampling.overloads.fetch_add(1, Ordering::Relaxed);
            let percentage = self.rules.load().settings.overload_percentage;
            tracing::warn!(processor = %self.id, percentage,
                "memory is short: new traces are kept or dropped at random immediately");
        } else {
            self.sampling.overloaded.fetch_sub(1, Ordering::Relaxed);
            tracing::info!(processor = %self.id, "memory is available again: new traces wait for their decision");
        }
    }
}

/// Whether so many percent of the limit are used.
fn is_filled_to(percent: u64, used: u64, limit: u64) -> bool {
    u128::from(used) * 100 >= u128::from(limit.max(1)) * u128::from(percent)
}
