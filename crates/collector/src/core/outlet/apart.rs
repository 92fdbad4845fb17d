//! A batch that was refused for good, taken apart.

use std::collections::VecDeque;

use super::{Batch, Outlet, SendError};

/// Into how many pieces a batch is taken apart at once. One poisoned request among a thousand is found with some thirty
/// attempts. Where all are refused each takes an attempt of its own, and those for the batches that they were in are a seventh more:
/// an eighth, an eighth of that, and so on.
const PIECES: usize = 8;

impl Outlet {
    /// Sends a batch as a whole; if it is refused for good, in pieces.
    pub(super) async fn deliver_whole_or_apart(&self, batch: &Batch, told: bool) -> Result<(), SendError> {
        let (batch, error) = match self.attempt_here_or_elsewhere(batch, told).await {
            Ok(()) => return Ok(()),
            Err((batch, error)) if is_to_be_taken_apart(&batch, &error) => (batch, error),
            Err((batch, error)) => {
                self.give_up(&batch, &error, told);
                return Err(error);
            }
        };
        tracing::warn!(exporter = %self.id, pipeline = %self.pipeline, requests = batch.parts().len(), error = %error,
            "a batch was refused for good; its requests are sent in smaller ones");
        self.deliver_apart(batch).await;
        Ok(())
    }

    /// Sends the pieces of a batch, and the pieces of those that are refused too.
    async fn deliver_apart(&self, batch: Batch) {
        let mut pieces = VecDeque::from(batch.apart(PIECES));
        while let Some(piece) = pieces.pop_front() {
            match self.attempt_here_or_elsewhere(&piece, false).await {
                Ok(()) => {}
                Err((piece, error)) if is_to_be_taken_apart(&piece, &error) => {
                    piece.apart(PIECES).into_iter().rev().for_each(|piece| pieces.push_front(piece));
                }
                Err((piece, error)) => self.give_up(&piece, &error, false),
            }
        }
    }
}

/// Whether it is the data that is refused, and there is more than one request to blame.
fn is_to_be_taken_apart(batch: &Batch, error: &SendError) -> bool {
    !error.retryable && error.code.blames_data() && batch.parts().len() > 1
}
