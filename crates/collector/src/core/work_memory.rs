//! Memory for work on a request that was accepted.
//!
//! A request is charged for the bytes that it holds. The result of processing it may be far larger, and so may
//! temporary lists: the sender decides that. [`WorkMemory`] reserves that memory from the pipeline of the
//! request before it is allocated.

use kubewake_otlp::Allowance;

use super::{Batch, Charge, Refusal, SendError};

/// A memory allowance for work on one request.
#[derive(Debug)]
pub struct WorkMemory<'a> {
    account: &'a Charge,
    held: Option<Charge>,
    /// All requested bytes, granted or not.
    asked: u64,
    /// Bytes that are granted even if the pipeline has no memory for them.
    uncharged: u64,
    /// Whether the reserve for requests in progress may be used.
    uses_reserve: bool,
}

impl<'a> WorkMemory<'a> {
    /// Memory from the pipeline of this charge.
    pub fn new(account: &'a Charge) -> Self {
        Self { account, held: None, asked: 0, uncharged: 0, uses_reserve: false }
    }

    /// The same, plus `bytes` that are granted when the pipeline has none.
    #[must_use]
    pub fn with_uncharged(self, bytes: u64) -> Self {
        Self { uncharged: bytes, ..self }
    }

    /// Memory from the pipeline of the first request in a batch; `None` for an empty batch.
    pub fn for_batch(batch: &'a Batch) -> Option<Self> {
        batch.parts().first().map(|part| Self::new(&part.charge))
    }

    /// Memory to deliver a batch, which frees more than it takes: it may come from the reserve for requests in
    /// progress, so that a queue which has filled all memory for requests can empty itself.
    pub fn for_delivery(batch: &'a Batch) -> Option<Self> {
        Self::for_batch(batch).map(|memory| Self { uses_reserve: true, ..memory })
    }

    /// The error of an exporter without memory for a batch: retryable, if the batch may fit later. If it never
    /// fits, its requests are tried one by one.
    pub fn send_error(&self) -> SendError {
        if self.could_ever_suffice() {
            SendError::local("not enough free memory to encode the batch")
        } else {
            SendError::malformed("encoding the batch needs more memory than the budget allows")
        }
    }

    /// The refusal of a request that needs more memory than there is: retryable, if it may fit later.
    pub fn refusal(&self) -> Refusal {
        if self.could_ever_suffice() { Refusal::out_of_memory() } else { Refusal::larger_than_memory() }
    }

    /// Whether all requested bytes would have been granted if nothing else were held.
    pub fn could_ever_suffice(&self) -> bool {
        self.account.could_ever_reserve_for_work(self.account.bytes().saturating_add(self.asked))
    }

    /// Everything that was granted. The caller releases what its result does not need.
    pub fn into_charge(self) -> Option<Charge> {
        self.held
    }

    /// Splits a part of the granted memory into a separate charge. `None` if less was granted.
    pub fn split_off(&mut self, bytes: u64) -> Option<Charge> {
        self.held.as_mut().and_then(|held| held.split_off(bytes))
    }
}

impl Allowance for WorkMemory<'_> {
    fn reserve(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.asked = self.asked.saturating_add(bytes);
        let granted = match &mut self.held {
            Some(held) => held.grow_for_work(bytes) || (self.uses_reserve && held.grow(bytes)),
            None => {
                let reserved = self.account.reserve_for_work(bytes);
                let from_reserve = || self.uses_reserve.then(|| self.account.reserve_copy(bytes)).flatten();
                self.held = reserved.or_else(from_reserve);
                self.held.is_some()
            }
        };
        granted || self.uncharged.checked_sub(bytes).map(|left| self.uncharged = left).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::core::{Budget, Part};

    #[test]
    fn memory_is_charged_while_work_lasts_and_what_stays_goes_on() {
        let budget = Budget::new(1600, 0);
        let member = budget.join();
        let account = member.reserve(100).unwrap();
        let other = member.reserve(400).unwrap();
        let mut memory = WorkMemory::new(&account);
        assert!(memory.reserve(400) && memory.reserve(300));
        assert_eq!(budget.used(), 1200);
        assert!(!memory.reserve(201) && memory.reserve(200));
        assert!(member.reserve(200).is_some(), "an eighth is left to new requests");
        assert!(memory.refusal().is_retryable(), "there is enough when the other one is gone");
        drop(other);
        let piece = memory.split_off(50).unwrap();
        assert_eq!((piece.bytes(), budget.used()), (50, 1000));
        let mut stays = memory.into_charge().unwrap();
        stays.shrink_to(10);
        assert_eq!(budget.used(), 160);
        drop((piece, stays));
        assert_eq!(budget.used(), 100);
    }

    #[test]
    fn request_that_can_never_fit_is_refused_for_good() {
        let account = Budget::new(1600, 0).join().reserve(100).unwrap();
        let mut memory = WorkMemory::new(&account);
        assert!(!memory.reserve(1301));
        assert!(!memory.refusal().is_retryable());
    }

    #[test]
    fn delivery_of_a_batch_may_use_the_reserve() {
        let budget = Budget::new(1000, 200);
        let member = budget.join();
        let charge = member.reserve(800).unwrap();
        let batch =
            Batch::single(kubewake_otlp::Signal::Logs, Part::new(Bytes::new(), 0, Arc::default(), charge.into()));
        assert!(!WorkMemory::for_batch(&batch).unwrap().reserve(1));
        let mut memory = WorkMemory::for_delivery(&batch).unwrap();
        assert!(memory.reserve(150) && !memory.reserve(51) && memory.reserve(50));
        assert_eq!(budget.used(), 1000);
        drop(memory);
        assert_eq!(budget.used(), 800);
    }

    #[test]
    fn uncharged_memory_is_bounded() {
        let account = Budget::new(100, 0).join().reserve(100).unwrap();
        let mut memory = WorkMemory::new(&account).with_uncharged(50);
        assert!(memory.reserve(30) && !memory.reserve(30) && memory.reserve(20));
        assert!(memory.into_charge().is_none());
    }
}
