//! Extensions: client and server authentication, and health endpoints.

use std::{future::Future, net::IpAddr, pin::Pin};

#[cfg(feature = "extension-auth")]
pub(crate) mod basic;
#[cfg(feature = "extension-auth")]
pub(crate) mod bearer;
#[cfg(feature = "extension-health-check")]
pub(crate) mod health;
#[cfg(feature = "extension-auth")]
pub(crate) mod oauth2;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Why credentials are unavailable or were rejected. The message holds no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuthError(pub String);

pub type HeadersFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<(HeaderName, HeaderValue)>, AuthError>> + Send + 'a>>;

/// Authenticates an exporter: provides the headers for each request that it sends.
pub trait ClientAuth: Send + Sync {
    /// The headers to send now, marked as sensitive.
    fn headers(&self) -> HeadersFuture<'_>;

    /// The destination rejected the headers: cached credentials are stale.
    fn invalidate(&self) {}
}

/// Why a sender is refused.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthRefusal {
    /// The credentials are missing or wrong.
    #[error(transparent)]
    Unauthenticated(#[from] AuthError),
    /// The sender is not allowed, whatever its credentials are.
    #[error("{0}")]
    Forbidden(&'static str),
    /// Too many logins wait to be checked. The sender may retry.
    #[error("too many logins wait to be checked")]
    Busy,
}

/// The authenticated subject, if the authenticator knows one; an error if the sender is refused.
pub type AuthResult = Result<Option<String>, AuthRefusal>;

pub enum AuthDecision {
    Now(AuthResult),
    /// The decision takes long, and is made off the threads that serve connections.
    Later(Pin<Box<dyn Future<Output = AuthResult> + Send>>),
}

impl AuthDecision {
    pub async fn wait(self) -> AuthResult {
        match self {
            Self::Now(identified) => identified,
            Self::Later(future) => future.await,
        }
    }
}

pub trait ServerAuth: Send + Sync {
    /// Authenticates a request by its headers and the address it came from.
    fn authenticate(&self, headers: &HeaderMap, peer: IpAddr) -> AuthDecision;
}
