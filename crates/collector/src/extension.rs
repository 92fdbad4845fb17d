//! Extensions: credentials and health.

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

/// Why credentials could not be had or were not accepted. The message holds no secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct AuthError(pub String);

/// The future of [`ClientAuth::headers`].
pub type HeadersFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Vec<(HeaderName, HeaderValue)>, AuthError>> + Send + 'a>>;

/// Says who we are: headers for each request that an exporter sends.
pub trait ClientAuth: Send + Sync {
    /// The headers to send now, marked as sensitive.
    fn headers(&self) -> HeadersFuture<'_>;

    /// The destination did not accept them: whatever was cached is stale.
    fn rejected(&self) {}
}

/// Why a sender does not come in.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AuthRefusal {
    /// Its credentials are missing or wrong.
    #[error(transparent)]
    Unauthenticated(#[from] AuthError),
    /// It is not allowed, whatever its credentials are.
    #[error("{0}")]
    Forbidden(&'static str),
    /// Too many credentials wait to be checked. It may come again.
    #[error("too many logins wait to be checked")]
    Busy,
}

/// Who it is, if the authenticator can tell; an error if it may not come in.
pub type Identified = Result<Option<String>, AuthRefusal>;

/// What an authenticator says.
pub enum Verdict {
    /// Known at once.
    Now(Identified),
    /// Known when the future ends: what takes long is not done on a thread that serves connections.
    Later(Pin<Box<dyn Future<Output = Identified> + Send>>),
}

impl Verdict {
    /// Waits for it.
    pub async fn wait(self) -> Identified {
        match self {
            Self::Now(identified) => identified,
            Self::Later(future) => future.await,
        }
    }
}

/// Checks who comes.
pub trait ServerAuth: Send + Sync {
    /// Who sent these headers from this address.
    fn authenticate(&self, headers: &HeaderMap, peer: IpAddr) -> Verdict;
}
