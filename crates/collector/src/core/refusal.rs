//! The reason why data was not taken, as its sender sees it.

use std::{borrow::Cow, time::Duration};

use super::{Code, DropReason};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// A queue of the collector has no room now. Nothing was lost: the sender is refused, or the caller waits.
    NoRoom,
    NoMemory,
    /// No peer is known that could take it. As with a full queue, nothing was lost.
    NoPeer,
    BadRequest,
    /// The destination refused it or could not be reached, while the sender waited for the result.
    Backend,
}

/// The response to a sender whose data was not taken. The message is safe to show: it holds no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub kind: RefusalKind,
    /// The gRPC code of the response. Its HTTP status follows from it.
    pub code: Code,
    pub message: Cow<'static, str>,
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// How long a refused sender should wait. One second is long enough to stop a tight loop, and short enough
    /// that a queue which drains in bursts does not run dry.
    pub const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

    pub fn queue_full() -> Self {
        Self::busy(RefusalKind::NoRoom, "sending queue is full")
    }

    /// The batch does not fit into the queue of an exporter, even if that is empty.
    pub fn larger_than_queue() -> Self {
        let refusal = Self::busy(RefusalKind::NoRoom, "the request is larger than the whole sending queue");
        // The code is the Collector's. Without a hint it does not promise that a retry may succeed.
        Self { retry_after: None, ..refusal }
    }

    pub fn out_of_memory() -> Self {
        Self::busy(RefusalKind::NoMemory, "data refused: the memory budget is used up")
    }

    /// The request needs more memory than the whole budget. The OTLP specification asks for no hint if the same
    /// request can never succeed.
    pub fn larger_than_memory() -> Self {
        let message = "the request is larger than the memory budget".into();
        Self { kind: RefusalKind::BadRequest, code: Code::ResourceExhausted, message, retry_after: None }
    }

    /// None of the peers that could take it is known.
    pub fn no_peer(message: &'static str) -> Self {
        Self::busy(RefusalKind::NoPeer, message)
    }

    pub fn shutting_down() -> Self {
        Self::busy(RefusalKind::NoRoom, "shutting down")
    }

    /// The request is not valid, and never will be.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: RefusalKind::BadRequest, code: Code::InvalidArgument, message: message.into(), retry_after: None }
    }

    fn busy(kind: RefusalKind, message: &'static str) -> Self {
        Self { kind, code: Code::Unavailable, message: message.into(), retry_after: Some(Self::DEFAULT_RETRY_AFTER) }
    }

    pub fn is_retryable(&self) -> bool {
        self.code.is_retryable(self.retry_after.is_some())
    }

    /// Whether nothing failed, and the data would be taken if there were room.
    pub fn is_lack_of_room(&self) -> bool {
        matches!(self.kind, RefusalKind::NoRoom | RefusalKind::NoMemory | RefusalKind::NoPeer)
    }

    /// Whether the same data may be taken later.
    pub fn is_temporary(&self) -> bool {
        self.is_lack_of_room() || self.is_retryable()
    }

    /// The drop reason if the data continues without the consumer that refused it.
    pub fn drop_reason(&self) -> DropReason {
        match self.kind {
            RefusalKind::NoRoom => DropReason::QueueFull,
            RefusalKind::NoMemory => DropReason::MemoryLimit,
            RefusalKind::NoPeer => DropReason::RetriesExhausted,
            RefusalKind::Backend if self.is_retryable() => DropReason::RetriesExhausted,
            RefusalKind::Backend | RefusalKind::BadRequest => DropReason::Refused,
        }
    }

    /// Chooses between the refusals of one request by two pipelines: a retryable one, if there is one.
    pub fn prefer_retryable(self, other: Refusal) -> Refusal {
        if self.is_retryable() || !other.is_retryable() { self } else { other }
    }
}
