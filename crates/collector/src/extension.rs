//! Extensions: client and server authentication, directories for state, and health endpoints.
//!
//! To add one, add its folder, its `mod` line and its row here; docs/adding-a-component.md is the recipe.

#[cfg(feature = "extension-auth")]
pub(crate) mod basic;
#[cfg(feature = "extension-auth")]
pub(crate) mod bearer;
#[cfg(feature = "extension-file-storage")]
mod file_storage;
#[cfg(feature = "extension-health-check")]
pub(crate) mod health;
#[cfg(feature = "extension-auth")]
pub(crate) mod oauth2;

use std::{future::Future, net::IpAddr, path::PathBuf, pin::Pin, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use kubewake_config::model::{ExtensionConfig, ServerTls};

use crate::{
    components::{AuthProviders, BuildError, ExtensionContext, component_table},
    telemetry::{RouteHandler, TelemetryState},
};

component_table! {
    fn prepare(ExtensionConfig, ExtensionContext<'_>) -> PreparedExtension;
    "extension-health-check", HealthCheck => health;
    "extension-auth", BasicAuth => basic;
    "extension-auth", BearerTokenAuth => bearer;
    "extension-auth", OAuth2Client => oauth2;
    "extension-file-storage", FileStorage => file_storage;
}

/// A checked extension of any type.
pub type PreparedExtension = Box<dyn Extension>;

/// What an extension offers to other components and to the process.
pub trait Extension {
    /// Builds its authenticators.
    ///
    /// # Errors
    ///
    /// If they cannot be built from the settings and files.
    fn build_auth(&self) -> Result<AuthProviders, BuildError> {
        Ok(AuthProviders::default())
    }

    /// The directory below which components that name it keep their state. It exists.
    fn state_directory(&self) -> Option<PathBuf> {
        None
    }

    /// The endpoint that the process serves for it.
    fn endpoint(&self) -> Option<ExtensionEndpoint> {
        None
    }
}

/// An endpoint that shows the state of the process.
pub struct ExtensionEndpoint {
    pub endpoint: String,
    pub tls: Option<ServerTls>,
    pub routes: Box<dyn FnOnce(Arc<TelemetryState>) -> Arc<dyn RouteHandler>>,
}

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
