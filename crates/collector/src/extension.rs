//! Extensions: credentials and health.

use std::{future::Future, pin::Pin};

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

/// Checks who comes.
pub trait ServerAuth: Send + Sync {
    /// Who it is, if the authenticator can tell; an error if it may not come in.
    fn authenticate(&self, headers: &HeaderMap) -> Result<Option<String>, AuthError>;
}
