//! ServiceAccount tokens: JWTs that the server signs and that are good while their ServiceAccount, and the object that they are bound
//! to, live.
//!
//! Guaranteed: a token is refused from the moment on that its ServiceAccount or bound object is gone or is another one of the same name,
//! or its time has passed: only its signature is remembered. Only ES256 and RS256 are taken, and each key only with its own algorithm.
//! Not done: the older tokens that live in Secrets, which have other claims.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use super::{Authenticator, Objects, authenticate::Identity};

mod cache;
mod claims;
pub mod keys;
mod request;
pub(crate) mod verify;

pub(super) use self::request::shown;
pub use self::{
    keys::{SigningKey, VerifyingKey},
    request::Issued,
};

/// What the server is called in its tokens if nobody says otherwise; also its only audience.
pub const ISSUER: &str = "https://kubernetes.default.svc";
/// Clocks may differ by this, as for kube-apiserver.
const LEEWAY: SignedDuration = SignedDuration::from_mins(1);
/// Longer ones are none of ours: a token has some 1 200 bytes.
const LONGEST: usize = 16 << 10;

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How tokens are made and checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The first one is written into new tokens; all are taken.
    pub issuers: Vec<String>,
    /// What a token must be for to be taken by the server itself.
    pub audiences: Vec<String>,
    /// Nobody gets a token that is good for longer, in seconds.
    pub longest: Option<i64>,
    /// Whether the tokens that pods ask for (3607 s) are good for a year, for clients that never read them again.
    pub extend: bool,
}

/// Makes and knows the tokens of ServiceAccounts.
pub struct ServiceAccountTokens {
    settings: Settings,
    audiences: Arc<[String]>,
    signing: SigningKey,
    verifying: Vec<VerifyingKey>,
    objects: Arc<dyn Objects>,
    clock: Clock,
    verified: cache::Cache,
}

impl Default for Settings {
    fn default() -> Self {
        Self { issuers: vec![ISSUER.to_owned()], audiences: vec![ISSUER.to_owned()], longest: None, extend: true }
    }
}

impl ServiceAccountTokens {
    /// Signs with a key and takes what it has signed.
    pub fn new(settings: Settings, signing: SigningKey, objects: Arc<dyn Objects>, clock: Clock) -> Self {
        let audiences = settings.audiences.iter().cloned().collect();
        let verifying = vec![signing.verifying().clone()];
        Self { settings, audiences, signing, verifying, objects, clock, verified: cache::Cache::default() }
    }

    /// Takes what another key has signed, too.
    #[must_use]
    pub fn trusting(mut self, keys: impl IntoIterator<Item = VerifyingKey>) -> Self {
        self.verifying.extend(keys);
        self
    }

    /// The server's own audiences.
    pub fn audiences(&self) -> &Arc<[String]> {
        &self.audiences
    }

    /// `/openid/v1/jwks`: the keys, for others who check tokens.
    pub fn jwks(&self) -> serde_json::Value {
        let keys: Vec<_> = self.verifying.iter().filter_map(VerifyingKey::to_jwk).collect();
        serde_json::json!({ "keys": keys })
    }

    /// `/.well-known/openid-configuration`
    pub fn openid_configuration(&self) -> serde_json::Value {
        let issuer = self.settings.issuers.first().map_or("", String::as_str);
        let mut algorithms: Vec<_> = self.verifying.iter().map(|key| key.algorithm().name()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        serde_json::json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/openid/v1/jwks"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": algorithms,
        })
    }
}

impl Authenticator for ServiceAccountTokens {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Identity>, String>> {
        Box::pin(std::future::ready(self.identity(token, audiences)))
    }
}

impl fmt::Debug for ServiceAccountTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccountTokens").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
