//! Splitting of a batch that was refused for good, so that only the refused requests are lost.

use std::collections::VecDeque;

use super::{Batch, ExporterQueue, SendError};

/// A batch is split into this many pieces at a time. One poisoned request among a thousand is found with some
/// thirty attempts. If all requests are refused, each takes an attempt of its own, and the batches around them
/// add a seventh: an eighth, an eighth of that, and so on.
const PIECES_PER_SPLIT: usize = 8;

impl ExporterQueue {
    /// Sends a batch as a whole, or in pieces if it is refused for good.
    pub(super) async fn deliver_or_split(&self, batch: &Batch, told: bool) -> Result<(), SendError> {
        let (batch, error) = match self.attempt_or_fail_over(batch, told).await {
            Ok(()) => return Ok(()),
            Err((batch, error)) if should_split(&batch, &error) => (batch, error),
            Err((batch, error)) => {
                self.give_up(&batch, &error, told);
                return Err(error);
            }
        };
        tracing::warn!(exporter = %self.id, pipeline = %self.pipeline, requests = batch.parts().len(), error = %error,
            "the destination rejected a batch permanently; its requests are sent in smaller batches");
        self.deliver_split(batch).await;
        Ok(())
    }

    /// Sends the pieces of a batch, and splits those that are refused again.
    async fn deliver_split(&self, batch: Batch) {
        let mut pieces = VecDeque::from(batch.split_into(PIECES_PER_SPLIT));
        while let Some(piece) = pieces.pop_front() {
            match self.attempt_or_fail_over(&piece, false).await {
                Ok(()) => {}
                Err((piece, error)) if should_split(&piece, &error) => {
                    piece.split_into(PIECES_PER_SPLIT).into_iter().rev().for_each(|piece| pieces.push_front(piece));
                }
                Err((piece, error)) => self.give_up(&piece, &error, false),
            }
        }
    }
}

/// Whether the data is refused, and more than one request may be the cause.
fn should_split(batch: &Batch, error: &SendError) -> bool {
    !error.retryable && error.code.blames_data() && batch.parts().len() > 1
}
