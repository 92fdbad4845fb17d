//! How much memory is in use, and who makes room.
//!
//! *Guarantees.* What lingers for late errors is given up, oldest first and in all shards, before a new trace does not wait and before a request is
//! refused.

use std::sync::atomic::Ordering;

use super::{Request, TailSampler, arrival::Share, shard::Moment};
use crate::core::{Charge, Refusal};

/// New traces do not wait any more when so much of the memory for new requests is in use, in percent, and wait again at so much.
const OVERLOAD: (u64, u64) = (85, 60);
/// From so much on nothing lingers: never the reason that an overload goes on, and requests of any size that could be taken find room.
const LINGER: u64 = OVERLOAD.1;

impl TailSampler {
    /// Where memory for what is written comes from: the account of the pipeline that requests come through.
    pub(super) fn open_account(&self, charge: &Charge) {
        let known = self.account.load();
        if !known.as_ref().is_some_and(|account| account.is_of_the_same(charge)) {
            self.account.store(charge.another(0).map(std::sync::Arc::new));
        }
    }

    /// This moment, with a look at the memory.
    pub(super) fn moment(&self) -> Moment {
        let (mut used, limit) = self.fill();
        if self.lingers.load(Ordering::Relaxed) && is_at(LINGER, used, limit) {
            self.give_up_lingering(LINGER);
            used = self.fill().0;
        }
        let was = self.overloaded.load(Ordering::Relaxed);
        let overloaded = is_at(if was { OVERLOAD.1 } else { OVERLOAD.0 }, used, limit);
        if overloaded != was && self.overloaded.swap(overloaded, Ordering::Relaxed) != overloaded {
            self.tell(overloaded);
        }
        // One trace never takes more than an eighth of what there is. One that went lets nothing wait, and need not look on.
        Moment { now: self.start.elapsed(), overloaded: overloaded && !self.retired(), largest: limit / 8 }
    }

    /// How much of the memory for new requests is in use, and how much that is.
    fn fill(&self) -> (u64, u64) {
        let fill = self.account.load().as_ref().and_then(|account| account.fill());
        fill.unwrap_or((0, u64::MAX))
    }

    /// Reserves memory for all of it, or for nothing. For one that is too large to fit beside what lingers, that goes.
    pub(super) fn reserve(&self, requests: &[Request]) -> Option<Vec<Charge>> {
        let charges = self.try_reserve(requests);
        if charges.is_some() || !self.lingers.load(Ordering::Relaxed) {
            return charges;
        }
        self.give_up_lingering(0);
        self.try_reserve(requests)
    }

    fn try_reserve(&self, requests: &[Request]) -> Option<Vec<Charge>> {
        let mut charges = Vec::new();
        for request in requests {
            for cost in self.costs(request) {
                charges.push(request.part.charge.to_hold(cost)?);
            }
        }
        Some(charges)
    }

    /// What each shard needs to hold its part of a request.
    fn costs(&self, request: &Request) -> impl Iterator<Item = u64> {
        (0..self.lanes.len()).filter_map(|lane| request.arrival.share(lane)).map(Share::cost)
    }

    /// What a sender is told for whose request there is no memory to note what is in it: to come again, if there may be then.
    pub(super) fn unread(&self, charge: &Charge, needed: u64) -> Refusal {
        match charge.could_ever_have(std::iter::once(charge), needed) {
            true => Refusal::memory(),
            false => Refusal::larger_than_memory(),
        }
    }

    /// The same where there is no memory to hold what was read.
    pub(super) fn unheld(&self, requests: &[Request]) -> Refusal {
        let Some(first) = requests.first() else { return Refusal::memory() };
        let held = requests.iter().flat_map(|request| [&*request.part.charge, request.arrival.charge()]);
        let needed = requests.iter().flat_map(|request| self.costs(request));
        match first.part.charge.could_ever_hold(held, needed) {
            true => Refusal::memory(),
            false => Refusal::larger_than_memory(),
        }
    }

    /// Gives up what lingers, that with the least time left first, until less of the memory is in use than so many percent, or nothing lingers.
    pub(super) fn give_up_lingering(&self, percent: u64) {
        // Before the look, so that nothing that lingers from now on is missed.
        self.lingers.store(false, Ordering::Relaxed);
        let first = || self.lanes.iter().filter_map(|lane| lane.shard.state().lingers_until()).min();
        while let Some(tick) = first() {
            self.lanes.iter().for_each(|lane| lane.shard.state().stop_lingering(tick));
            let (used, limit) = self.fill();
            if !is_at(percent, used, limit) {
                self.lingers.store(true, Ordering::Relaxed);
                return;
            }
        }
    }

    fn tell(&self, overloaded: bool) {
        if overloaded {
            self.sampling.overloaded.fetch_add(1, Ordering::Relaxed);
            self.sampling.overloads.fetch_add(1, Ordering::Relaxed);
            let percentage = self.rules.load().settings.overload_percentage;
            tracing::warn!(processor = %self.id, percentage,
                "memory runs short: new traces do not wait, a share of them is kept at random");
        } else {
            self.sampling.overloaded.fetch_sub(1, Ordering::Relaxed);
            tracing::info!(processor = %self.id, "there is memory again: new traces wait for their decision");
        }
    }
}

/// Whether so many percent of the limit are in use.
fn is_at(percent: u64, used: u64, limit: u64) -> bool {
    u128::from(used) * 100 >= u128::from(limit.max(1)) * u128::from(percent)
}
