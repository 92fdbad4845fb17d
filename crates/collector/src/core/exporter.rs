//! What an outlet asks of an exporter: one attempt, and a clear answer.

use std::{borrow::Cow, future::Future, pin::Pin, time::Duration};

use super::{Batch, Code, ErrorClass, Refusal, RefusalKind, Said};

/// What the destination said to a request that it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Items that it rejected all the same.
    pub rejected: u64,
    /// Its words about that, or a warning.
    pub message: String,
}

/// Why an attempt failed. The message is safe to show: it holds no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct SendError {
    /// The destination's code, or the one that fits.
    pub code: Code,
    /// Where to look.
    pub class: ErrorClass,
    /// The destination's own answer, if it gave one.
    pub said: Option<Said>,
    /// For people.
    pub message: Cow<'static, str>,
    /// The destination's hint.
    pub retry_after: Option<Duration>,
    /// Whether the same batch may be sent again.
    pub retryable: bool,
}

impl SendError {
    /// The destination cannot be reached, or hung up.
    pub fn connection(message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: Code::Unavailable,
            class: ErrorClass::Connection,
            said: None,
            message: message.into(),
            retry_after: None,
            retryable: true,
        }
    }

    /// Something on this machine failed: a file, a stream. Time may help.
    pub fn local(message: impl Into<Cow<'static, str>>) -> Self {
        Self { class: ErrorClass::Local, ..Self::connection(message) }
    }

    /// The data cannot be written in the form that the destination wants. Time does not help.
    pub fn malformed(message: impl Into<Cow<'static, str>>) -> Self {
        Self { code: Code::InvalidArgument, class: ErrorClass::Refused, retryable: false, ..Self::connection(message) }
    }

    /// The destination did not answer in time.
    pub(super) fn timeout(limit: Duration) -> Self {
        Self {
            code: Code::DeadlineExceeded,
            class: ErrorClass::Timeout,
            ..Self::connection(format!("no answer within {limit:?}"))
        }
    }

    /// The exporter panicked over this batch. It would again, so that only its requests by themselves are worth a try.
    pub(super) fn panicked() -> Self {
        Self {
            code: Code::Internal,
            class: ErrorClass::Local,
            retryable: false,
            ..Self::connection("the exporter panicked, which is a bug of this program")
        }
    }

    /// A task that an exporter left its work to did not end as it should: by a panic, or with the runtime itself.
    pub fn of_task(error: &tokio::task::JoinError) -> Self {
        if error.is_panic() { Self::panicked() } else { Self::local(error.to_string()) }
    }

    /// Nobody is there to be tried.
    pub(super) fn unattended() -> Self {
        Self::connection("the destination does not answer")
    }

    /// Whether nothing came back: nobody knows whether the destination took it.
    pub fn is_silence(&self) -> bool {
        matches!(self.class, ErrorClass::Connection | ErrorClass::Timeout)
    }

    /// The time for draining is over.
    pub(super) fn halted() -> Self {
        Self { class: ErrorClass::Local, ..Self::connection("shutting down") }
    }

    /// What a sender is told that waits for the delivery. It may try again if we might: then the answer says so in
    /// words of its own, whatever those of the destination were.
    pub(super) fn refusal(self) -> Refusal {
        let code = if self.retryable && !self.code.is_retryable(true) { Code::Unavailable } else { self.code };
        let hint = self.retry_after.filter(|after| !after.is_zero());
        // Where only a hint makes the code retryable there must be one; elsewhere the destination's silence is passed on.
        let needed = self.retryable && !code.is_retryable(false);
        let retry_after = hint.or(needed.then_some(Refusal::RETRY_AFTER));
        Refusal { kind: RefusalKind::Backend, code, message: self.message, retry_after }
    }
}

/// The future of one attempt.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<Delivered, SendError>> + Send + 'a>>;

/// Makes one attempt at sending.
pub trait Exporter: Send + Sync {
    /// Sends the batch once. The batch is the caller's; its bytes can be shared.
    fn send<'a>(&'a self, batch: &'a Batch) -> SendFuture<'a>;
}
