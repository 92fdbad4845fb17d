//! The interface between an exporter queue and an exporter: one attempt, and a classified result.

use std::{borrow::Cow, future::Future, pin::Pin, time::Duration};

use super::{BackendStatus, Batch, Code, ErrorClass, Refusal, RefusalKind, RejectionCounts};

/// The response of a destination to a request that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendSuccess {
    /// Items that it rejected nevertheless, for good.
    pub rejected: RejectionCounts,
    /// Its message about the rejected items, or a warning.
    pub message: String,
    /// Items that it took with less than they had, because they were shortened to its limits.
    pub truncated: u64,
}

/// What became of a batch of which a part is to be sent again.
#[derive(Clone, Debug)]
pub struct PartialDelivery {
    /// The outcome of the records that are settled.
    pub outcome: SendSuccess,
    /// The records that are left, with the origins that they had.
    pub rest: Batch,
}

/// Why an attempt failed. The message is safe to show: it holds no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    /// The destination's code, or the closest equivalent.
    pub code: Code,
    pub class: ErrorClass,
    /// The destination's own status, if it responded.
    pub backend_status: Option<BackendStatus>,
    pub message: Cow<'static, str>,
    pub retry_after: Option<Duration>,
    /// Whether the same batch may be sent again.
    pub retryable: bool,
    /// If the destination has settled a part of the batch: that part, and the rest to which the error applies.
    pub partial: Option<Box<PartialDelivery>>,
}

impl SendError {
    /// The destination cannot be reached, or closed the connection.
    pub fn connection(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: Code::Unavailable,
            class: ErrorClass::Connection,
            backend_status: None,
            message: message.into(),
            retry_after: None,
            retryable: true,
            partial: None,
        }
    }

    /// A local failure (a file, a stream), which may be transient.
    pub fn local(message: impl Into<Cow<'static, str>>) -> Self {
        Self { class: ErrorClass::Local, ..Self::connection(message) }
    }

    /// The data cannot be encoded in the format of the destination. Retrying does not help.
    pub fn malformed(message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: Code::InvalidArgument, class: ErrorClass::Refused, retryable: false, ..Self::connection(message) }
    }

    /// The destination did not respond in time.
    pub fn timeout(limit: Duration) -> Self {
        Self {
            code: Code::DeadlineExceeded,
            class: ErrorClass::Timeout,
            ..Self::connection(format!("no answer within {limit:?}"))
        }
    }

    /// The exporter panicked on this batch. It would panic again, so the batch is only worth splitting.
    pub(super) fn panicked() -> Self {
        Self {
            code: Code::Internal,
            class: ErrorClass::Local,
            retryable: false,
            ..Self::connection("the exporter panicked, which is a bug of this program")
        }
    }

    /// A task of an exporter did not end normally: it panicked, or the runtime shut down.
    pub fn from_join_error(error: &tokio::task::JoinError) -> Self {
        if error.is_panic() { Self::panicked() } else { Self::local(error.to_string()) }
    }

    /// No destination is available.
    pub(super) fn destination_down() -> Self {
        Self::connection("the destination does not respond")
    }

    /// Whether there was no response, so that it is unknown if the destination took the batch.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.class, ErrorClass::Connection | ErrorClass::Timeout)
    }

    /// The drain deadline has passed.
    pub(super) fn halted() -> Self {
        Self { class: ErrorClass::Local, ..Self::connection("shutting down") }
    }

    /// The refusal for a sender that waits for the delivery. If the error is retryable, so is the refusal, with
    /// a code of its own if the destination's code would not say so.
    pub(super) fn into_refusal(self) -> Refusal {
        let code = if self.retryable && !self.code.is_retryable(true) { Code::Unavailable } else { self.code };
        let hint = self.retry_after.filter(|after| !after.is_zero());
        // Some codes are retryable only with a hint, so one is added for them. Otherwise a missing hint stays
        // missing.
        let needed = self.retryable && !code.is_retryable(false);
        let retry_after = hint.or(needed.then_some(Refusal::DEFAULT_RETRY_AFTER));
        Refusal { kind: RefusalKind::Backend, code, message: self.message, retry_after }
    }
}

pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<SendSuccess, SendError>> + Send + 'a>>;

pub trait Exporter: Send + Sync {
    /// Sends the batch once. The batch stays with the caller; its bytes can be shared.
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a>;
}
