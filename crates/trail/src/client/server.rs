//! Whom a client asks, and whether it answers: kube's own errors do not say who did not.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Uri;
use tower::BoxError;

use crate::errors::in_words;

/// An API server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) uri: Uri,
    /// The last call had no answer.
    pub(super) is_away: AtomicBool,
}

/// A call had no answer.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach {server}")]
struct Unreachable {
    server: String,
    source: BoxError,
}

impl Server {
    /// Names the server in an error, and says in the log when it goes away and when it is back.
    pub(super) fn told<T>(&self, answer: Result<T, BoxError>) -> Result<T, BoxError> {
        match answer {
            Ok(answer) => {
                if self.is_away.swap(false, Ordering::Relaxed) {
                    tracing::info!(server = self.name(), "the API server answers again");
                }
                Ok(answer)
            }
            // Nothing was sent: a token could not be had, or the like.
            Err(error) if error.is::<kube::Error>() => Err(error),
            Err(source) => {
                let error = Unreachable { server: self.name(), source };
                if !self.is_away.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        error = in_words(&error),
                        "there is no API server; this is said once until it answers"
                    );
                }
                Err(Box::new(error))
            }
        }
    }

    /// Without what may be secret.
    fn name(&self) -> String {
        let scheme = self.uri.scheme_str().unwrap_or("https");
        let port = self.uri.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{scheme}://{}{port}", self.uri.host().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_named_without_secrets() {
        let server =
            Server { uri: "https://ann:pass@cluster:6443/prefix".parse().unwrap(), is_away: AtomicBool::new(false) };
        let broken: BoxError = Box::new(std::io::Error::other("connection refused"));
        let error = kube::Error::Service(server.told::<()>(Err(broken)).unwrap_err());
        assert_eq!(in_words(&error), "cannot reach https://cluster:6443: connection refused");
        assert!(server.is_away.load(Ordering::Relaxed));
        assert!(server.told(Ok(())).is_ok() && !server.is_away.load(Ordering::Relaxed));
        let own: BoxError = Box::new(kube::Error::LinesCodecMaxLineLengthExceeded);
        assert!(server.told::<()>(Err(own)).unwrap_err().is::<kube::Error>());
    }
}
