//! What becomes of a batch that one of several equal destinations does not take.

use std::{future::Future, pin::Pin, time::Duration};

use super::{Batch, SendError};

/// What an outlet does after an attempt that may be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It waits, and tries again, as its settings say.
    Retry,
    /// It tries again without a pause.
    AtOnce,
    /// It leaves the batch to whoever else takes it.
    HandOver,
}

/// The future of handing a batch over. It ends with what the outlet itself is to try again, if that is the best place for
/// it after all, and with an error if nobody takes it in time.
pub type HandOver<'a> = Pin<Box<dyn Future<Output = Result<Option<Batch>, SendError>> + Send + 'a>>;

/// Whoever stands behind an outlet whose destination is one of several. An outlet with a destination of its own has none.
pub trait Rescue: Send + Sync {
    /// Whether an attempt is worth the while.
    fn is_open(&self) -> bool;

    /// An attempt ended.
    fn attempted(&self, taken: bool, took: Duration);

    /// An attempt at a batch failed, after `in_a_row` others of it that had no answer either.
    fn failed(&self, error: &SendError, in_a_row: u32) -> Next;

    /// There is room again.
    fn room(&self);

    /// Finds another place for what was not taken.
    fn hand_over<'a>(&'a self, batch: Batch, error: SendError) -> HandOver<'a>;
}
