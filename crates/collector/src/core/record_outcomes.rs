//! What became of each record of a batch, for destinations that answer for every record.
//!
//! *Guarantees.* Every record is settled once: it is delivered, rejected with a reason, or part of the rest that is
//! sent again. Where there is no memory to separate the rest of a request from what is settled, the whole request
//! is sent again and counted then.
//!
//! *Assumes* that a record is an item, which is so for spans and log records.

use kubewake_otlp::{NoMemory, retain_within};

use super::{
    Batch, PART_OVERHEAD_BYTES, Part, PartialDelivery, RejectReason, RejectionCounts, SendError, SendSuccess,
    WorkMemory,
};

/// What became of a record. Of several outcomes for parts of one record the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordOutcome {
    Delivered,
    Rejected(RejectReason),
    /// The destination did not take it; it is to be sent again.
    Unsent,
}

/// The outcomes of all records of a batch, in their order. A record without a remark is unsent.
#[derive(Debug)]
pub struct RecordOutcomes(Vec<RecordOutcome>);

impl RecordOutcomes {
    /// The bytes that the outcomes of so many records take.
    pub fn bytes_for(items: usize) -> usize {
        items * size_of::<RecordOutcome>()
    }

    /// Outcomes of a batch of which nothing was sent yet.
    pub fn unsent(items: usize) -> Self {
        Self(vec![RecordOutcome::Unsent; items])
    }

    /// Sets the outcome of a record.
    pub fn set(&mut self, record: usize, outcome: RecordOutcome) {
        if let Some(known) = self.0.get_mut(record) {
            *known = outcome;
        }
    }

    /// Notes the outcome of a part of a record.
    pub fn worsen(&mut self, record: usize, outcome: RecordOutcome) {
        if let Some(known) = self.0.get_mut(record) {
            *known = outcome.max(*known);
        }
    }

    /// The outcome of a record.
    pub fn get(&self, record: usize) -> RecordOutcome {
        self.0.get(record).copied().unwrap_or(RecordOutcome::Unsent)
    }

    /// The result of an attempt: a success if every record was delivered or rejected, and otherwise the error, with
    /// the records that are left. `message` is the destination's about the rejected records.
    pub fn into_result(
        self,
        batch: &Batch,
        message: String,
        error: impl FnOnce() -> SendError,
    ) -> Result<SendSuccess, SendError> {
        let mut rest = Batch::empty(batch.signal()).with_failing_since(batch.failing_since());
        let mut rejected = RejectionCounts::default();
        let mut first = 0;
        for part in batch.parts() {
            let next = first + part.items;
            let outcomes = self.0.get(first..next).unwrap_or_default();
            first = next;
            let left = outcomes.iter().filter(|outcome| **outcome == RecordOutcome::Unsent).count();
            let unsent = match left {
                0 if outcomes.len() == part.items => None,
                _ if left < outcomes.len() => Some(unsent_part(batch, part, outcomes)),
                _ => Some(part.clone()),
            };
            // Of a part that is sent again as a whole nothing is settled.
            if unsent.as_ref().is_none_or(|unsent| unsent.items < part.items) {
                count_rejected(outcomes, &mut rejected);
            }
            unsent.into_iter().for_each(|part| rest.push(part));
        }
        let outcome = SendSuccess { rejected, message, truncated: 0 };
        if rest.is_empty() {
            return Ok(outcome);
        }
        let error = error();
        if rest.items() == batch.items() {
            return Err(error);
        }
        Err(SendError { partial: Some(Box::new(PartialDelivery { outcome, rest })), ..error })
    }
}

fn count_rejected(outcomes: &[RecordOutcome], rejected: &mut RejectionCounts) {
    for outcome in outcomes {
        if let RecordOutcome::Rejected(reason) = outcome {
            rejected.add(*reason, 1);
        }
    }
}

/// A request of the unsent records of a part, or the part itself if there is no memory for another request.
fn unsent_part(batch: &Batch, part: &Part, outcomes: &[RecordOutcome]) -> Part {
    let mut memory = WorkMemory::new(&part.charge);
    let mut next = outcomes.iter();
    let mut is_unsent = || next.next().is_none_or(|outcome| *outcome == RecordOutcome::Unsent);
    let kept = retain_within(batch.signal(), &part.bytes, |_| is_unsent(), &mut memory);
    let Ok(kept) = kept.map_err(|NoMemory| ()) else { return part.clone() };
    let bytes = (kept.bytes.len() + PART_OVERHEAD_BYTES) as u64;
    match part.charge.reserve_copy(bytes) {
        Some(charge) => Part::new(kept.bytes, kept.items, part.origin.clone(), charge.into()),
        None => part.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        Budget, Charge,
        testing::{numbers, part, request},
    };

    fn settle(batch: &Batch, outcomes: &[RecordOutcome]) -> Result<SendSuccess, SendError> {
        let mut all = RecordOutcomes::unsent(batch.items());
        outcomes.iter().enumerate().for_each(|(record, outcome)| all.set(record, *outcome));
        all.into_result(batch, String::new(), || SendError::connection("busy"))
    }

    const MAPPING: RecordOutcome = RecordOutcome::Rejected(RejectReason::Mapping);
    use RecordOutcome::{Delivered, Unsent};

    #[test]
    fn rest_consists_of_the_unsent_records_alone() {
        let mut batch = request([1, 2, 3]);
        batch.append(request([4, 5]));
        batch.append(request([6]));
        let error = settle(&batch, &[Delivered, Unsent, MAPPING, Unsent, Unsent, Delivered]).unwrap_err();
        let partial = error.partial.unwrap();
        assert_eq!(numbers(&partial.rest), [2, 4, 5]);
        assert_eq!(partial.outcome.rejected, RejectionCounts::from_reason(RejectReason::Mapping, 1));
    }

    #[test]
    fn settled_batch_is_a_success_and_an_unsent_one_an_error_without_rest() {
        let batch = request([1, 2]);
        let success = settle(&batch, &[MAPPING, Delivered]).unwrap();
        assert_eq!(success.rejected.total(), 1);
        assert!(settle(&batch, &[Unsent, Unsent]).unwrap_err().partial.is_none());
        assert!(settle(&batch, &[]).unwrap_err().partial.is_none(), "a record without a remark is unsent");
    }

    #[test]
    fn worst_outcome_of_a_record_counts() {
        let mut outcomes = RecordOutcomes::unsent(1);
        outcomes.set(0, Delivered);
        outcomes.worsen(0, MAPPING);
        outcomes.worsen(0, Delivered);
        assert_eq!(outcomes.get(0), MAPPING);
        outcomes.worsen(0, Unsent);
        assert_eq!((outcomes.get(0), outcomes.get(1)), (Unsent, Unsent));
    }

    #[test]
    fn request_is_sent_again_as_a_whole_when_there_is_no_memory_for_its_rest() {
        let charge: Charge = Budget::new(512, 0).join().reserve(400).unwrap();
        let batch = Batch::single(kubewake_otlp::Signal::Traces, part([1, 2, 3], charge));
        let error = settle(&batch, &[MAPPING, Delivered, Unsent]).unwrap_err();
        assert!(error.partial.is_none(), "nothing is settled, so that nothing is counted twice");
    }
}
