//! What became of the records of a batch, over all requests of an attempt.

use crate::core::{BackendStatus, Batch, RecordOutcome, RecordOutcomes, RejectReason, SendError, SendSuccess};

/// The outcomes of an attempt that makes several requests of one batch.
pub(crate) struct BatchDelivery {
    outcomes: RecordOutcomes,
    /// Whether anything was stored.
    any_stored: bool,
    /// Records that were stored with less than they had.
    truncated: u64,
    /// The destination's last message about rejected records.
    message: String,
    /// Why records are to be sent again.
    retry: Option<SendError>,
    /// Why records were refused for good.
    refusal: Option<SendError>,
}

/// Whether there is any use in further requests of this attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// The destination has answered, and may take other requests.
    Continue,
    Stop,
}

impl BatchDelivery {
    /// Nothing was sent yet. [`RecordOutcomes::bytes_for`] tells the memory that this takes.
    pub(crate) fn new(batch: &Batch) -> Self {
        let outcomes = RecordOutcomes::unsent(batch.items());
        Self { outcomes, any_stored: false, truncated: 0, message: String::new(), retry: None, refusal: None }
    }

    /// Notes that the destination stored records, some of which were truncated before.
    pub(crate) fn store(&mut self, records: impl IntoIterator<Item = usize>, truncated: u64) {
        self.truncated += truncated;
        for record in records {
            self.any_stored = true;
            self.outcomes.set(record, RecordOutcome::Delivered);
        }
    }

    /// Notes that records were rejected, out of a request that was stored otherwise, or before they were sent.
    pub(crate) fn reject(&mut self, records: impl IntoIterator<Item = usize>, reason: RejectReason) {
        for record in records {
            self.outcomes.set(record, RecordOutcome::Rejected(reason));
        }
    }

    /// Sets the destination's message about records that it rejected.
    pub(crate) fn set_message(&mut self, message: impl Into<String>) {
        self.message = message.into();
    }

    /// Notes that a whole request was refused for good.
    pub(crate) fn refuse(&mut self, records: impl IntoIterator<Item = usize>, reason: RejectReason, error: SendError) {
        self.reject(records, reason);
        self.set_message(error.message.clone());
        self.refusal.get_or_insert(error);
    }

    /// Notes why records that are left are sent again.
    pub(crate) fn retry_later(&mut self, error: SendError) -> Continuation {
        let continuation = match error.backend_status {
            Some(BackendStatus::Http(_)) => Continuation::Continue,
            _ => Continuation::Stop,
        };
        let hint = error.retry_after.max(self.retry.as_ref().and_then(|first| first.retry_after));
        self.retry.get_or_insert(error).retry_after = hint;
        continuation
    }

    /// The result of the attempt. If nothing was stored and nothing is left, it is the refusal, so that the queue can
    /// look for the records that are its cause.
    pub(crate) fn into_result(self, batch: &Batch) -> Result<SendSuccess, SendError> {
        let Self { outcomes, any_stored, truncated, message, retry, refusal } = self;
        match (refusal, &retry) {
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
}
