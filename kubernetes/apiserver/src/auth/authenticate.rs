//! Authenticates requests: from credentials to a user.
//!
//! As in kube-apiserver, a verified client certificate is used first, then a bearer token. An unknown token is
//! refused, also where no credentials are needed. A request without credentials is that of the anonymous user,
//! where that is allowed.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::api::StatusError;

use super::{UserInfo, rbac_index::join_errors};

#[derive(Clone, Copy, Debug, Default)]
pub struct RequestCredentials<'a> {
    /// The user of the connection's verified client certificate, from
    /// [`x509::user_from_certificate`](super::x509::user_from_certificate), once per connection.
    pub certificate: Option<&'a UserInfo>,
    pub authorization: Option<RedactedText<'a>>,
    pub path: &'a str,
}

/// A text that `Debug` redacts.
#[derive(Clone, Copy)]
pub struct RedactedText<'a>(pub &'a str);

/// The user and the audiences of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenIdentity {
    pub user: UserInfo,
    /// The requested audiences that the token is valid for.
    pub audiences: Arc<[String]>,
}

/// Authenticates tokens: of a file, of ServiceAccounts, or by a webhook.
pub trait TokenAuthenticator: Send + Sync {
    /// The identity of a token. `None` if this authenticator does not know the token, an error if the token is
    /// known but not (or no longer) valid. Without `audiences` it must be valid for the server's own. The error
    /// must not contain the token.
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<TokenIdentity>, String>>;
}

/// Which requests without credentials are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnonymousAccess {
    Off,
    Paths(Vec<String>),
    /// All requests; authorizers decide what they may do.
    On,
}

#[derive(Clone, Default)]
pub struct UnionAuthenticator {
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
    /// Which requests without credentials are accepted.
    pub anonymous: AnonymousAccess,
}

impl Default for AnonymousAccess {
    /// Only probes, which have no credentials, and the version, which clients ask for first.
    fn default() -> Self {
        Self::Paths(["/healthz", "/livez", "/readyz", "/version"].map(str::to_owned).to_vec())
    }
}

impl AnonymousAccess {
    fn allows(&self, path: &str) -> bool {
        match self {
            Self::Off => false,
            Self::Paths(paths) => paths.iter().any(|one| one == path),
            Self::On => true,
        }
    }
}

impl UnionAuthenticator {
    /// The user of a request, or 401.
    pub async fn authenticate_request(&self, credentials: &RequestCredentials<'_>) -> Result<UserInfo, StatusError> {
        if let Some(user) = credentials.certificate {
            return Ok(user.clone().with_authenticated_group());
        }
        if let Some(token) = credentials.authorization.and_then(|header| bearer_token(header.0)) {
            return match self.authenticate_token(token, None).await {
                Ok(identity) => Ok(identity.user),
                Err(why) => {
                    tracing::debug!(%why, "unable to authenticate the request");
                    Err(StatusError::unauthorized())
                }
            };
        }
        if self.anonymous.allows(credentials.path) {
            Ok(UserInfo::anonymous())
        } else {
            Err(StatusError::unauthorized())
        }
    }

    /// The identity of a token, or kube-apiserver's reason for its refusal. Without `audiences` the token must
    /// be valid for the server's own.
    pub async fn authenticate_token(&self, token: &str, audiences: Option<&[String]>) -> Result<TokenIdentity, String> {
        let mut errors = vec!["invalid bearer token".to_owned()];
        for authenticator in &self.tokens {
            match authenticator.authenticate(token, audiences).await {
                Ok(Some(TokenIdentity { user, audiences })) => {
                    return Ok(TokenIdentity { user: user.with_authenticated_group(), audiences });
                }
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        Err(join_errors(errors))
    }
}

impl std::fmt::Debug for UnionAuthenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authentication({}, {:?})", self.tokens.len(), self.anonymous)
    }
}

impl std::fmt::Debug for RedactedText<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The wanted audiences that a token for `own` is valid for, if there are any. A token without audiences is
/// valid for all.
pub(super) fn intersect_audiences(own: &Arc<[String]>, wanted: Option<&[String]>) -> Option<Arc<[String]>> {
    let Some(wanted) = wanted.filter(|_| !own.is_empty()) else { return Some(Arc::clone(own)) };
    let both: Arc<[String]> = own.iter().filter(|one| wanted.contains(one)).cloned().collect();
    (!both.is_empty()).then_some(both)
}

/// The token of a header. Another scheme, or an empty token, counts as no credentials.
fn bearer_token(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
