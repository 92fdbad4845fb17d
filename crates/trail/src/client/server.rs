//! The API server that a client calls, and whether it responds: kube's own errors do not name the server.

use std::sync::atomic::{AtomicBool, Ordering};

use http::Uri;
use tower::BoxError;

use crate::errors::error_chain;

#[derive(Debug)]
pub(super) struct ApiServerEndpoint {
    pub(super) uri: Uri,
    /// Whether the last call got no response.
    pub(super) is_unreachable: AtomicBool,
}

/// A call that got no response.
#[derive(Debug, thiserror::Error)]
#[error("failed to reach {server}")]
struct ApiServerUnreachable {
    server: String,
    source: BoxError,
}

impl ApiServerEndpoint {
    /// Adds the server to an error, and logs when it becomes unreachable and reachable again.
    pub(super) fn log_reachability<T>(&self, answer: Result<T, BoxError>) -> Result<T, BoxError> {
        match answer {
            Ok(answer) => {
                if self.is_unreachable.swap(false, Ordering::Relaxed) {
                    tracing::info!(server = self.redacted_uri(), "the API server is reachable again");
                }
                Ok(answer)
            }
            // Nothing was sent: for example, no token could be obtained.
            Err(error) if error.is::<kube::Error>() => Err(error),
            Err(source) => {
                let error = ApiServerUnreachable { server: self.redacted_uri(), source };
                if !self.is_unreachable.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        error = error_chain(&error),
                        "failed to reach the API server; further failures are not logged until it is reachable again"
                    );
                }
                Err(Box::new(error))
            }
        }
    }

    /// The URI without credentials.
    fn redacted_uri(&self) -> String {
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
        let server = ApiServerEndpoint {
            uri: "https://ann:pass@cluster:6443/prefix".parse().unwrap(),
            is_unreachable: AtomicBool::new(false),
        };
        let broken: BoxError = Box::new(std::io::Error::other("connection refused"));
        let error = kube::Error::Service(server.log_reachability::<()>(Err(broken)).unwrap_err());
        assert_eq!(error_chain(&error), "failed to reach https://cluster:6443: connection refused");
        assert!(server.is_unreachable.load(Ordering::Relaxed));
        assert!(server.log_reachability(Ok(())).is_ok() && !server.is_unreachable.load(Ordering::Relaxed));
        let own: BoxError = Box::new(kube::Error::LinesCodecMaxLineLengthExceeded);
        assert!(server.log_reachability::<()>(Err(own)).unwrap_err().is::<kube::Error>());
    }
}
