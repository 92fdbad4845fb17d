//! Classifies errors into a closed set of causes, for labels of metrics. Pure.

use std::{error::Error as StdError, io, iter};

use kube::{Error, core::Status, runtime::watcher};
use kubewake_runtime::label_enum;

use crate::{layer, objects::apply, pipeline::slot_lock};

/// The limit of a chain of causes. Real chains are shorter, but an error could be its own source.
const MAX_DEPTH: usize = 16;

label_enum! {
    pub enum FailureCause {
        /// Somebody else wrote the object at the same time.
        Conflict => "conflict",
        /// The operator lacks the right, or a quota or a policy of the cluster forbids it: API servers answer
        /// all three with 403.
        Forbidden => "forbidden",
        /// The API server rejects the operator's credentials.
        Unauthorized => "unauthorized",
        NotFound => "not_found",
        /// A watch is too old to resume, and starts again. That is ordinary.
        Expired => "expired",
        /// The API server, or a webhook behind it, refuses the object.
        Invalid => "invalid",
        /// The API server is overloaded or shutting down.
        Busy => "busy",
        ServerError => "server_error",
        /// There was no response in time.
        Timeout => "timeout",
        Unreachable => "unreachable",
        /// The API server's response cannot be parsed.
        Malformed => "malformed",
        /// The collector's rules refuse the document.
        DocumentRefused => "document_refused",
    }
}

impl From<&Status> for FailureCause {
    fn from(status: &Status) -> Self {
        match status.code {
            401 => Self::Unauthorized,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            408 | 504 => Self::Timeout,
            409 => Self::Conflict,
            410 => Self::Expired,
            429 | 503 => Self::Busy,
            400..=499 => Self::Invalid,
            _ => Self::ServerError,
        }
    }
}

impl From<&Error> for FailureCause {
    fn from(error: &Error) -> Self {
        match error {
            Error::Api(status) => Self::from(&**status),
            Error::SerdeError(_) | Error::FromUtf8(_) | Error::LinesCodecMaxLineLengthExceeded => Self::Malformed,
            Error::Auth(_) => Self::Unauthorized,
            error if is_timeout(error) => Self::Timeout,
            _ => Self::Unreachable,
        }
    }
}

impl From<&watcher::Error> for FailureCause {
    fn from(error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(source)
            | watcher::Error::WatchStartFailed(source)
            | watcher::Error::WatchFailed(source) => source.into(),
            watcher::Error::WatchError(status) => Self::from(&**status),
            watcher::Error::NoResourceVersion => Self::Malformed,
        }
    }
}

impl From<&slot_lock::SlotLockError> for FailureCause {
    fn from(error: &slot_lock::SlotLockError) -> Self {
        match error {
            slot_lock::SlotLockError::Api { source, .. } => Self::from(&**source),
            slot_lock::SlotLockError::Contended(_) => Self::Conflict,
        }
    }
}

impl From<&apply::ObjectApplyError> for FailureCause {
    fn from(error: &apply::ObjectApplyError) -> Self {
        Self::from(error.api_error())
    }
}

impl From<&layer::LayerError> for FailureCause {
    fn from(error: &layer::LayerError) -> Self {
        match error {
            layer::LayerError::Lock(error) => error.into(),
            layer::LayerError::Read(source) | layer::LayerError::List(source) => Self::from(&**source),
            layer::LayerError::Apply(error) => error.into(),
            layer::LayerError::AnchorLost => Self::NotFound,
            layer::LayerError::Refused(_) => Self::DocumentRefused,
        }
    }
}

fn is_timeout(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = iter::successors(Some(error), |&error| error.source()).take(MAX_DEPTH);
    causes.any(|cause| {
        let of_io = cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
        of_io || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: u16) -> FailureCause {
        FailureCause::from(&Error::Api(Box::new(Status::failure("", "").with_code(code))))
    }

    #[test]
    fn an_answer_has_a_cause_by_its_code() {
        let cases = [
            (400, "invalid"),
            (401, "unauthorized"),
            (403, "forbidden"),
            (404, "not_found"),
            (409, "conflict"),
            (410, "expired"),
            (422, "invalid"),
            (429, "busy"),
            (500, "server_error"),
            (503, "busy"),
            (504, "timeout"),
        ];
        for (code, cause) in cases {
            assert_eq!(answered(code).name(), cause, "{code}");
        }
    }

    #[test]
    fn no_answer_is_late_or_none_at_all() {
        let broken = |kind| FailureCause::from(&Error::Service(Box::new(io::Error::from(kind))));
        assert_eq!(broken(io::ErrorKind::TimedOut), FailureCause::Timeout);
        assert_eq!(broken(io::ErrorKind::ConnectionRefused), FailureCause::Unreachable);
        let nonsense = serde_json::from_str::<u8>("no").unwrap_err();
        assert_eq!(
            FailureCause::from(&watcher::Error::WatchFailed(Error::SerdeError(nonsense))),
            FailureCause::Malformed
        );
        assert_eq!(FailureCause::from(&slot_lock::SlotLockError::Contended("lock".into())), FailureCause::Conflict);
        assert_eq!(FailureCause::from(&layer::LayerError::Refused("it".into())), FailureCause::DocumentRefused);
    }

    #[test]
    fn every_cause_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<&str> = FailureCause::ALL.iter().map(|cause| cause.name()).collect();
        assert_eq!(words.len(), FailureCause::ALL.len());
    }
}
