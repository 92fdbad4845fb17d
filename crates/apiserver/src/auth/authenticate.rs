//! From a request's credentials to a user.
//!
//! As kube-apiserver does it: a verified client certificate counts first, then a bearer token. Whoever brings a token that nobody knows is
//! refused, also where no credentials would have been needed. Whoever brings nothing is the anonymous user, where that is allowed.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::api::Status;

use super::{User, index::aggregate};

/// What a request brings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    /// The user of the connection's verified client certificate: [`x509::user`](super::x509::user), once per connection.
    pub certificate: Option<&'a User>,
    /// The header `Authorization`.
    pub authorization: Option<Secret<'a>>,
    /// The path that is asked for.
    pub path: &'a str,
}

/// A text that `Debug` does not show.
#[derive(Clone, Copy)]
pub struct Secret<'a>(pub &'a str);

/// Whose token it is, and what it is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who.
    pub user: User,
    /// Those of the wanted audiences that the token is for.
    pub audiences: Arc<[String]>,
}

/// Knows tokens: a file, ServiceAccounts, a webhook.
pub trait Authenticator: Send + Sync {
    /// Whose token it is. `None` if it is not one that this authenticator knows, an error if it is but is not (or no longer) good.
    /// Without `audiences` it must be for the server's own. The error's text must not hold the token.
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Identity>, String>>;
}

/// Who may come without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Anonymous {
    /// Nobody.
    Off,
    /// Those who ask for one of these paths.
    Paths(Vec<String>),
    /// Everybody; what they may do is for the authorizers to say.
    On,
}

/// All ways of authentication.
#[derive(Clone, Default)]
pub struct Authentication {
    /// Asked in this order.
    pub tokens: Vec<Arc<dyn Authenticator>>,
    /// Who may come without credentials.
    pub anonymous: Anonymous,
}

impl Default for Anonymous {
    /// Off but for probes, which have no credentials, and the version, which clients ask for first.
    fn default() -> Self {
        Self::Paths(["/healthz", "/livez", "/readyz", "/version"].map(str::to_owned).to_vec())
    }
}

impl Anonymous {
    fn allows(&self, path: &str) -> bool {
        match self {
            Self::Off => false,
            Self::Paths(paths) => paths.iter().any(|one| one == path),
            Self::On => true,
        }
    }
}

impl Authentication {
    /// The user of a request, or the refusal of somebody unknown.
    pub async fn user(&self, credentials: &Credentials<'_>) -> Result<User, Status> {
        if let Some(user) = credentials.certificate {
            return Ok(user.clone().authenticated());
        }
        if let Some(token) = credentials.authorization.and_then(|header| bearer(header.0)) {
            return match self.token(token, None).await {
                Ok(identity) => Ok(identity.user),
                Err(why) => {
                    tracing::debug!(%why, "unable to authenticate the request");
                    Err(Status::unauthorized())
                }
            };
        }
        if self.anonymous.allows(credentials.path) { Ok(User::anonymous()) } else { Err(Status::unauthorized()) }
    }

    /// Whose token it is, or why it is nobody's in kube-apiserver's words. Without `audiences` it must be for the server's own.
    pub async fn token(&self, token: &str, audiences: Option<&[String]>) -> Result<Identity, String> {
        let mut errors = vec!["invalid bearer token".to_owned()];
        for authenticator in &self.tokens {
            match authenticator.authenticate(token, audiences).await {
                Ok(Some(Identity { user, audiences })) => {
                    return Ok(Identity { user: user.authenticated(), audiences });
                }
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        Err(aggregate(errors))
    }
}

impl std::fmt::Debug for Authentication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Authentication({}, {:?})", self.tokens.len(), self.anonymous)
    }
}

impl std::fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Those of the wanted audiences that a token for `own` is good for, if there are any. A token without audiences is good for all.
pub(super) fn audiences_for(own: &Arc<[String]>, wanted: Option<&[String]>) -> Option<Arc<[String]>> {
    let Some(wanted) = wanted.filter(|_| !own.is_empty()) else { return Some(Arc::clone(own)) };
    let both: Arc<[String]> = own.iter().filter(|one| wanted.contains(one)).cloned().collect();
    (!both.is_empty()).then_some(both)
}

/// The token of a header. Another scheme, or nothing after it, counts as no credentials.
fn bearer(header: &str) -> Option<&str> {
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
