//! Why something failed, as one of few words: what a label of a metric may say. Pure.

use std::{error::Error as StdError, io, iter};

use kube::{Error, core::Status, runtime::watcher};

use crate::{apply, closed::closed, layer, lock};

/// Causes of causes. Nobody has more, but an error could be its own.
const MAX_DEPTH: usize = 16;

closed! {
    /// Why something failed.
    Cause {
        /// Somebody else wrote it at the same time.
        Conflict => "conflict",
        /// The operator may not, or a quota or a policy of the cluster is against it: an API server answers all three with 403.
        Forbidden => "forbidden",
        /// The API server does not know who asks.
        Unauthorized => "unauthorized",
        /// It is not there.
        NotFound => "not_found",
        /// A watch is too old to go on, and begins anew. That happens.
        Expired => "expired",
        /// The API server, or a webhook behind it, does not want it as it is.
        Invalid => "invalid",
        /// The API server has too much to do, or is about to go.
        Busy => "busy",
        /// The API server did not manage to.
        ServerError => "server_error",
        /// There was no answer in time.
        Timeout => "timeout",
        /// There is no connection.
        Unreachable => "unreachable",
        /// What the API server answers cannot be understood.
        Malformed => "malformed",
        /// The collector would refuse the document.
        DocumentRefused => "document_refused",
    }
}

impl From<&Status> for Cause {
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

impl From<&Error> for Cause {
    fn from(error: &Error) -> Self {
        match error {
            Error::Api(status) => Self::from(&**status),
            Error::SerdeError(_) | Error::FromUtf8(_) | Error::LinesCodecMaxLineLengthExceeded => Self::Malformed,
            Error::Auth(_) => Self::Unauthorized,
            error if is_late(error) => Self::Timeout,
            _ => Self::Unreachable,
        }
    }
}

impl From<&watcher::Error> for Cause {
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

impl From<&lock::Error> for Cause {
    fn from(error: &lock::Error) -> Self {
        match error {
            lock::Error::Api { source, .. } => Self::from(&**source),
            lock::Error::Contended(_) => Self::Conflict,
        }
    }
}

impl From<&apply::Error> for Cause {
    fn from(error: &apply::Error) -> Self {
        Self::from(error.failure())
    }
}

impl From<&layer::Error> for Cause {
    fn from(error: &layer::Error) -> Self {
        match error {
            layer::Error::Lock(error) => error.into(),
            layer::Error::Read(source) => Self::from(&**source),
            layer::Error::Apply(error) => error.into(),
            layer::Error::Adrift => Self::NotFound,
            layer::Error::Refused(_) => Self::DocumentRefused,
        }
    }
}

/// Whether it took too long.
fn is_late(error: &(dyn StdError + 'static)) -> bool {
    let mut causes = iter::successors(Some(error), |&error| error.source()).take(MAX_DEPTH);
    causes.any(|cause| {
        let of_io = cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
        of_io || cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_timeout)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: u16) -> Cause {
        Cause::from(&Error::Api(Box::new(Status::failure("", "").with_code(code))))
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
            assert_eq!(answered(code).as_str(), cause, "{code}");
        }
    }

    #[test]
    fn no_answer_is_late_or_none_at_all() {
        let broken = |kind| Cause::from(&Error::Service(Box::new(io::Error::from(kind))));
        assert_eq!(broken(io::ErrorKind::TimedOut), Cause::Timeout);
        assert_eq!(broken(io::ErrorKind::ConnectionRefused), Cause::Unreachable);
        let nonsense = serde_json::from_str::<u8>("no").unwrap_err();
        assert_eq!(Cause::from(&watcher::Error::WatchFailed(Error::SerdeError(nonsense))), Cause::Malformed);
        assert_eq!(Cause::from(&lock::Error::Contended("lock".into())), Cause::Conflict);
        assert_eq!(Cause::from(&layer::Error::Refused("it".into())), Cause::DocumentRefused);
    }

    #[test]
    fn every_cause_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<&str> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
        assert_eq!(words.len(), Cause::ALL.len());
    }
}
