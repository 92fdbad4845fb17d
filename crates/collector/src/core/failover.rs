//! The interface between an exporter queue and a load balancer: what to do with a batch that one peer does not
//! take.

use std::{future::Future, pin::Pin, time::Duration};

use super::{Batch, SendError};

/// What an exporter queue does after an attempt with a retryable error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Wait as the retry settings say, and try again.
    Retry,
    /// Try again at once.
    RetryNow,
    /// Pass the batch to [`Failover::fail_over`].
    FailOver,
}

/// The future of a failover. It returns the part of the batch that the same exporter queue should try again, if
/// that is the best place for it after all, and an error if no peer takes the batch in time.
pub type FailoverFuture<'a> = Pin<Box<dyn Future<Output = Result<Option<Batch>, SendError>> + Send + 'a>>;

/// The other peers of an exporter queue whose destination is one of several. An exporter queue with a single
/// destination has no failover.
pub trait Failover: Send + Sync {
    /// Whether an attempt is worthwhile now.
    fn is_available(&self) -> bool;

    fn record_attempt(&self, taken: bool, took: Duration);

    /// Decides what to do after a failed attempt at a batch. `in_a_row` earlier attempts had no response
    /// either.
    fn decide_retry(&self, error: &SendError, in_a_row: u32) -> RetryDecision;

    fn notify_room(&self);

    /// Finds another destination for a batch that was not taken.
    fn fail_over<'a>(&'a self, batch: Batch, error: SendError) -> FailoverFuture<'a>;
}
