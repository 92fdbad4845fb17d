//! What became of the records of a batch, over all requests of an attempt.

use super::{
    Continuation,
    push_plan::{PlannedEntry, PushPlan},
    push_request::PushRequest,
    response,
};
use crate::core::{BackendStatus, Batch, RecordOutcome, RecordOutcomes, RejectReason, SendError, SendSuccess};

pub(super) struct Delivery {
    outcomes: RecordOutcomes,
    /// Whether anything was stored.
    any_stored: bool,
    /// Records that were stored with less than they had.
    truncated: u64,
    /// The destination's last message about rejected lines.
    message: String,
    /// Why records are to be sent again.
    retry: Option<SendError>,
    /// Why records were refused for good.
    refusal: Option<SendError>,
}

impl Delivery {
    pub(super) fn new(plan: &PushPlan) -> Self {
        let mut outcomes = RecordOutcomes::unsent(plan.batch.items());
        for (record, reason) in &plan.rejected {
            outcomes.set(*record, RecordOutcome::Rejected(*reason));
        }
        Self { outcomes, any_stored: false, truncated: 0, message: String::new(), retry: None, refusal: None }
    }

    pub(super) fn store(&mut self, entries: &[PlannedEntry], request: &PushRequest) {
        self.any_stored |= request.lines > 0;
        self.truncated += request.truncated;
        self.settle(entries, RecordOutcome::Delivered);
    }

    /// Notes that so many lines were not stored. Which ones is not known, so that the first ones stand for them.
    pub(super) fn store_except(
        &mut self,
        entries: &[PlannedEntry],
        request: &PushRequest,
        lines: u64,
        error: &SendError,
    ) {
        let rejected = usize::try_from(lines).unwrap_or(usize::MAX).min(request.lines);
        self.any_stored = true;
        self.truncated += request.truncated;
        self.settle(entries, RecordOutcome::Delivered);
        // Both are in the order of the request.
        let mut too_long = request.too_long.iter().peekable();
        let sent =
            entries.iter().filter(|entry| too_long.next_if(|record| **record == entry.record as usize).is_none());
        let reason = response::reject_reason(&error.message);
        for entry in sent.take(rejected) {
            self.outcomes.set(entry.record as usize, RecordOutcome::Rejected(reason));
        }
        self.message = error.message.to_string();
    }

    pub(super) fn reject(&mut self, entries: &[PlannedEntry], reason: RejectReason) {
        self.settle(entries, RecordOutcome::Rejected(reason));
    }

    /// Notes that records were refused for good.
    pub(super) fn refuse(&mut self, entries: &[PlannedEntry], error: SendError) {
        let reason = match error.code.blames_data() {
            false => RejectReason::Target,
            true if response::is_too_large(&error) => RejectReason::TooLarge,
            true => response::reject_reason(&error.message),
        };
        self.reject(entries, reason);
        self.message = error.message.to_string();
        self.refusal.get_or_insert(error);
    }

    pub(super) fn reject_long_lines(&mut self, request: &PushRequest) {
        for record in &request.too_long {
            self.outcomes.set(*record, RecordOutcome::Rejected(RejectReason::TooLarge));
        }
    }

    /// Notes why the records of a tenant that are left are sent again.
    pub(super) fn retry_later(&mut self, error: SendError) -> Continuation {
        let continuation = match error.backend_status {
            // Loki has answered: it may take the records of other tenants.
            Some(BackendStatus::Http(_)) => Continuation::NextTenant,
            _ => Continuation::Stop,
        };
        let hint = error.retry_after.max(self.retry.as_ref().and_then(|first| first.retry_after));
        self.retry.get_or_insert(error).retry_after = hint;
        continuation
    }

    pub(super) fn into_result(self, batch: &Batch) -> Result<SendSuccess, SendError> {
        let Self { outcomes, any_stored, truncated, message, retry, refusal } = self;
        match (refusal, &retry) {
            // Nothing was stored, so that the queue can look for the records that are the cause.
            (Some(refusal), None) if !any_stored => return Err(refusal),
            _ => {}
        }
        let retry = || retry.unwrap_or_else(|| SendError::local("the batch was not sent as a whole"));
        match outcomes.into_result(batch, message, retry) {
            Ok(success) => Ok(SendSuccess { truncated, ..success }),
            Err(mut error) => {
                if let Some(partial) = &mut error.partial {
                    partial.outcome.truncated = truncated;
                }
                Err(error)
            }
        }
    }

    fn settle(&mut self, entries: &[PlannedEntry], outcome: RecordOutcome) {
        for entry in entries {
            self.outcomes.set(entry.record as usize, outcome);
        }
    }
}
