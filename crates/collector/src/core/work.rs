//! Memory for work on a request that was let in.
//!
//! A request is charged for the bytes that it holds. What is made of it may be far larger, and so may the lists that it
//! takes to make it: a stranger decides that. [`WorkMemory`] asks the account of the request's pipeline for that before it is allocated.

use kubewake_otlp::Allowance;

use super::{Batch, Charge, Refusal, SendError};

/// What work on one request may take, and has taken.
#[derive(Debug)]
pub struct WorkMemory<'a> {
    account: &'a Charge,
    held: Option<Charge>,
    /// All that was asked for, granted or not.
    asked: u64,
    /// What is granted although the account has no memory for it.
    uncharged: u64,
}

impl<'a> WorkMemory<'a> {
    /// Memory from the account that this charge is of.
    pub fn new(account: &'a Charge) -> Self {
        Self { account, held: None, asked: 0, uncharged: 0 }
    }

    /// The same, and `bytes` more when the account has none.
    #[must_use]
    pub fn with_uncharged(self, bytes: u64) -> Self {
        Self { uncharged: bytes, ..self }
    }

    /// Memory from the account of the first request in a batch; `None` if there is none in it.
    pub fn for_batch(batch: &'a Batch) -> Option<Self> {
        batch.parts().first().map(|part| Self::new(&part.charge))
    }

    /// What an exporter says that cannot have the memory for a batch: to try again, if it may fit then. If it never fits its
    /// requests are tried one by one.
    pub fn send_error(&self) -> SendError {
        match self.could_ever_suffice() {
            true => SendError::local("there is no memory to write the batch in the form that is sent"),
            false => {
                SendError::malformed("to write the batch in the form that is sent takes more memory than there is")
            }
        }
    }

    /// What a sender is told whose request needs more than there is: to come again, if it may fit then.
    pub fn refusal(&self) -> Refusal {
        match self.could_ever_suffice() {
            true => Refusal::memory(),
            false => Refusal::larger_than_memory(),
        }
    }

    /// Whether all that was asked for would have been granted if nothing else were held.
    pub fn could_ever_suffice(&self) -> bool {
        self.account.could_ever_work_with(self.account.bytes().saturating_add(self.asked))
    }

    /// All that was granted. Whoever holds what was made gives back the rest.
    pub fn into_charge(self) -> Option<Charge> {
        self.held
    }

    /// A part of what was granted, as a charge of its own. `None` if so much was not granted.
    pub fn take(&mut self, bytes: u64) -> Option<Charge> {
        self.held.as_mut().and_then(|held| held.split_off(bytes))
    }
}

impl Allowance for WorkMemory<'_> {
    fn reserve(&mut self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.asked = self.asked.saturating_add(bytes);
        let granted = match &mut self.held {
            Some(held) => held.grow_for_work(bytes),
            None => {
                self.held = self.account.for_work(bytes);
                self.held.is_some()
            }
        };
        granted || self.uncharged.checked_sub(bytes).map(|left| self.uncharged = left).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Budget;

    #[test]
    fn memory_is_charged_while_work_lasts_and_what_stays_goes_on() {
        let budget = Budget::new(1600, 0);
        let member = budget.join();
        let account = member.admit(100).unwrap();
        let other = member.admit(400).unwrap();
        let mut memory = WorkMemory::new(&account);
        assert!(memory.reserve(400) && memory.reserve(300));
        assert_eq!(budget.used(), 1200);
        assert!(!memory.reserve(201) && memory.reserve(200));
        assert!(member.admit(200).is_some(), "an eighth is left to new requests");
        assert!(memory.refusal().is_retryable(), "there is enough when the other one is gone");
        drop(other);
        let piece = memory.take(50).unwrap();
        assert_eq!((piece.bytes(), budget.used()), (50, 1000));
        let mut stays = memory.into_charge().unwrap();
        stays.shrink_to(10);
        assert_eq!(budget.used(), 160);
        drop((piece, stays));
        assert_eq!(budget.used(), 100);
    }

    #[test]
    fn request_that_can_never_fit_is_refused_for_good() {
        let account = Budget::new(1600, 0).join().admit(100).unwrap();
        let mut memory = WorkMemory::new(&account);
        assert!(!memory.reserve(1301));
        assert!(!memory.refusal().is_retryable());
    }

    #[test]
    fn uncharged_memory_is_bounded() {
        let account = Budget::new(100, 0).join().admit(100).unwrap();
        let mut memory = WorkMemory::new(&account).with_uncharged(50);
        assert!(memory.reserve(30) && !memory.reserve(30) && memory.reserve(20));
        assert!(memory.into_charge().is_none());
    }
}
