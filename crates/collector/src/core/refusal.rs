//! Why data was not taken.

use std::{borrow::Cow, time::Duration};

use super::{Code, DropReason};

/// Who said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A buffer of ours has no room now. Nothing was lost: the sender is told, or the holder waits.
    NoRoom,
    /// Memory is used up.
    NoMemory,
    /// Nobody is known to whom it could go. As with a full buffer nothing was lost.
    NoPeer,
    /// The request itself is not valid.
    BadRequest,
    /// The destination said so, or could not be reached, and the sender was waiting for its answer.
    Backend,
}

/// The answer to a sender whose data was not taken. The message is safe to show: it holds no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Who said no.
    pub kind: RefusalKind,
    /// What the sender is told on gRPC, and from which its HTTP status follows.
    pub code: Code,
    /// For people.
    pub message: Cow<'static, str>,
    /// When to try again.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// How long a refused sender is asked to wait. One second: long enough to stop a tight loop, and short enough
    /// that a queue which drains in bursts does not run dry.
    pub const RETRY_AFTER: Duration = Duration::from_secs(1);

    /// The buffer of an exporter is full.
    pub fn queue_full() -> Self {
        Self::busy(RefusalKind::NoRoom, "sending queue is full")
    }

    /// It does not fit into the buffer of an exporter, however empty that is.
    pub fn larger_than_queue() -> Self {
        let refusal = Self::busy(RefusalKind::NoRoom, "the request is larger than the whole sending queue");
        // The Collector's code, and no promise that it gets better.
        Self { retry_after: None, ..refusal }
    }

    /// The memory budget is used up.
    pub fn memory() -> Self {
        Self::busy(RefusalKind::NoMemory, "data refused: the memory budget is used up")
    }

    /// It needs more memory than there is for data, however little is in use. The specification asks for no hint where the same
    /// request never has a chance.
    pub fn larger_than_memory() -> Self {
        let message = "the request is larger than the memory budget".into();
        Self { kind: RefusalKind::BadRequest, code: Code::ResourceExhausted, message, retry_after: None }
    }

    /// None of the peers to which it could go is known.
    pub fn no_peer(message: &'static str) -> Self {
        Self::busy(RefusalKind::NoPeer, message)
    }

    /// The collector is going down.
    pub fn shutting_down() -> Self {
        Self::busy(RefusalKind::NoRoom, "shutting down")
    }

    /// The request is not valid, and never will be.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RefusalKind::BadRequest, code: Code::InvalidArgument, message: message.into(), retry_after: None }
    }

    fn busy(kind: RefusalKind, message: &'static str) -> Self {
        Self { kind, code: Code::Unavailable, message: message.into(), retry_after: Some(Self::RETRY_AFTER) }
    }

    /// Whether the same request may be sent again.
    pub fn is_retryable(&self) -> bool {
        self.code.is_retryable(self.retry_after.is_some())
    }

    /// Whether nothing failed, and it would be taken if there were room for it somewhere.
    pub fn is_want_of_room(&self) -> bool {
        matches!(self.kind, RefusalKind::NoRoom | RefusalKind::NoMemory | RefusalKind::NoPeer)
    }

    /// Why data is lost that goes on without whoever refused it.
    pub fn as_loss(&self) -> DropReason {
        match self.kind {
            RefusalKind::NoRoom => DropReason::QueueFull,
            RefusalKind::NoMemory => DropReason::MemoryLimit,
            RefusalKind::NoPeer => DropReason::RetriesExhausted,
            RefusalKind::Backend if self.is_retryable() => DropReason::RetriesExhausted,
            RefusalKind::Backend | RefusalKind::BadRequest => DropReason::Refused,
        }
    }

    /// Of two refusals of one request by two pipelines, the one that the sender should hear: one that lets it try
    /// again, if there is one.
    pub fn or(self, other: Refusal) -> Refusal {
        if self.is_retryable() || !other.is_retryable() { self } else { other }
    }
}
