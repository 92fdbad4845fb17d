//! Charges of requests that have not arrived completely.
//!
//! Such a request holds memory for as long as its sender is slow, so the sum of these charges is bounded in two
//! ways. *Guarantees.* Together they leave a quarter of the available memory to complete requests. Once they
//! hold more than half of it, no sender may hold more than an eighth. A request that arrives alone is bound by
//! neither, since otherwise one that needs most of the budget could never be taken. *Assumes* that a caller
//! reserves no more than a small multiple of what has arrived. Several threads may decide on the same figures,
//! so that a bound may be exceeded by one step of each thread; the budget itself never is.

use std::sync::{Arc, atomic::Ordering};

use super::{Charge, ChargePurpose, Member};

/// The charge of a request that has not arrived completely. It is released on drop.
#[derive(Debug)]
pub struct ArrivingCharge {
    member: Arc<Member>,
    charge: Charge,
}

impl Member {
    /// Begins the charge of a request that will need `claim` bytes, if they are free now. None of them is
    /// reserved.
    pub fn begin_arrival(self: &Arc<Self>, claim: u64) -> Option<ArrivingCharge> {
        let (used, limit) = self.usage();
        if !self.could_ever_reserve(claim) || used.saturating_add(claim) > limit {
            return None;
        }
        Some(ArrivingCharge { member: self.clone(), charge: self.reserve(0)? })
    }
}

impl ArrivingCharge {
    pub fn bytes(&self) -> u64 {
        self.charge.bytes()
    }

    /// Whether `more` may be reserved for a sender whose incomplete requests hold `sender_held`.
    fn may_grow(&self, more: u64, sender_held: u64) -> bool {
        let (used, limit) = self.member.usage();
        let arriving = self.member.arriving.load(Ordering::Relaxed);
        if arriving <= self.charge.bytes() {
            return true;
        }
        let available = limit.saturating_sub(used).saturating_add(arriving);
        let wanted = arriving.saturating_add(more);
        let is_crowded = wanted > available / 2;
        wanted <= available / 4 * 3 && !(is_crowded && sender_held.saturating_add(more) > available / 8)
    }

    /// Reserves `more`; returns false, and changes nothing, if there is no memory.
    #[must_use]
    pub fn grow(&mut self, more: u64, sender_held: u64) -> bool {
        if !self.may_grow(more, sender_held) {
            return false;
        }
        // As for a new request: the spike reserve is only for requests in progress.
        let Some(share) = self.member.take(more, ChargePurpose::Request) else { return false };
        self.charge.add(share, more);
        self.member.arriving.fetch_add(more, Ordering::Relaxed);
        true
    }

    /// Turns it into the charge of a complete request.
    pub fn finish(mut self) -> Charge {
        self.stop_counting();
        std::mem::replace(&mut self.charge, Charge::exempt())
    }

    fn stop_counting(&self) {
        self.member.arriving.fetch_sub(self.charge.bytes(), Ordering::Relaxed);
    }
}

impl Drop for ArrivingCharge {
    fn drop(&mut self) {
        self.stop_counting();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Budget;

    #[test]
    fn arriving_requests_leave_a_quarter_to_whole_ones() {
        let budget = Budget::new(1000, 0);
        let member = budget.join();
        let mut arriving: Vec<_> = (0..100).map(|_| member.begin_arrival(100).unwrap()).collect();
        let grown = arriving.iter_mut().filter_map(|charge| charge.grow(10, 0).then_some(())).count();
        assert_eq!(grown, 75);
        assert!(member.reserve(250).is_some());
    }

    #[test]
    fn sender_holds_an_eighth_once_half_is_taken() {
        let budget = Budget::new(1000, 0);
        let member = budget.join();
        let mut arriving: Vec<_> = (0..100).map(|_| member.begin_arrival(100).unwrap()).collect();
        let mut held = 0;
        for charge in &mut arriving {
            held += if charge.grow(10, held) { 10 } else { 0 };
        }
        assert_eq!(held, 500, "beyond half nothing, as it has more than an eighth");
        let mut other = member.begin_arrival(200).unwrap();
        assert!(other.grow(125, 0));
        assert!(!other.grow(1, 125));
    }

    #[test]
    fn lone_request_may_have_all() {
        let budget = Budget::new(1000, 0);
        let member = budget.join();
        assert!(member.begin_arrival(1001).is_none());
        let mut lone = member.begin_arrival(1000).unwrap();
        assert_eq!(budget.used(), 0, "a claim reserves nothing");
        assert!(lone.grow(600, 0) && lone.grow(400, 600));
        assert!(member.begin_arrival(1).is_none());
        drop(lone.finish());
        assert_eq!(budget.used(), 0);
        assert!(member.begin_arrival(1000).is_some_and(|mut next| next.grow(1000, 0)));
    }

    #[test]
    fn dropped_arrival_gives_everything_back() {
        let budget = Budget::new(1000, 0);
        let member = budget.join();
        for _ in 0..3 {
            let mut charge = member.begin_arrival(900).unwrap();
            assert!(charge.grow(900, 0));
        }
        assert_eq!(budget.used(), 0);
    }
}
