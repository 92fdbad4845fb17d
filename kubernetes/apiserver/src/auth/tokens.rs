//! ServiceAccount tokens: JWTs that the server signs and that are valid as long as their ServiceAccount, and
//! the object that they are bound to, exist.
//!
//! Guaranteed: a token is refused from the moment on that it expires, or that its ServiceAccount or bound
//! object is deleted or replaced by another one of the same name: only its signature is cached. Only ES256 and
//! RS256 are accepted, and each key only with its own algorithm. Not done: legacy tokens in Secrets, which have
//! other claims.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

use super::{ObjectGetter, TokenAuthenticator, authenticate::TokenIdentity};

mod claims;
pub mod keys;
mod token_request;
mod verified_cache;
pub(crate) mod verify;

pub(super) use self::token_request::format_time;
pub use self::{
    keys::{SigningKey, VerifyingKey},
    token_request::IssuedToken,
};

/// The default issuer of tokens, which is also the default audience.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";
/// The tolerated difference between clocks, as in kube-apiserver.
const CLOCK_LEEWAY: SignedDuration = SignedDuration::from_mins(1);
/// Longer tokens are not issued by this server: a token has some 1 200 bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// A source of the current time.
pub type TokenClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The settings for issuing and verifying tokens.
#[derive(Clone, Debug)]
pub struct TokenSettings {
    /// The first issuer is used for new tokens; all are accepted.
    pub issuers: Vec<String>,
    /// The audiences for which the server itself accepts tokens.
    pub audiences: Vec<String>,
    /// The longest lifetime of a token, in seconds.
    pub longest: Option<i64>,
    /// Whether the tokens that pods request (3607 s) are valid for a year, for clients that never reload them.
    pub extend: bool,
}

/// Issues and authenticates the tokens of ServiceAccounts.
pub struct ServiceAccountTokens {
    settings: TokenSettings,
    audiences: Arc<[String]>,
    signing: SigningKey,
    verifying: Vec<VerifyingKey>,
    objects: Arc<dyn ObjectGetter>,
    clock: TokenClock,
    verified: verified_cache::VerifiedTokenCache,
}

impl Default for TokenSettings {
    fn default() -> Self {
        Self {
            issuers: vec![DEFAULT_ISSUER.to_owned()],
            audiences: vec![DEFAULT_ISSUER.to_owned()],
            longest: None,
            extend: true,
        }
    }
}

impl ServiceAccountTokens {
    /// Signs with a key and accepts its signatures.
    pub fn new(
        settings: TokenSettings,
        signing: SigningKey,
        objects: Arc<dyn ObjectGetter>,
        clock: TokenClock,
    ) -> Self {
        let audiences = settings.audiences.iter().cloned().collect();
        let verifying = vec![signing.verifying_key().clone()];
        Self {
            settings,
            audiences,
            signing,
            verifying,
            objects,
            clock,
            verified: verified_cache::VerifiedTokenCache::default(),
        }
    }

    /// Accepts the signatures of further keys, too.
    #[must_use]
    pub fn with_trusted_keys(mut self, keys: impl IntoIterator<Item = VerifyingKey>) -> Self {
        self.verifying.extend(keys);
        self
    }

    pub fn audiences(&self) -> &Arc<[String]> {
        &self.audiences
    }

    /// `/openid/v1/jwks`: the public keys, for other verifiers.
    pub fn jwks(&self) -> serde_json::Value {
        let keys: Vec<_> = self.verifying.iter().filter_map(VerifyingKey::to_jwk).collect();
        serde_json::json!({ "keys": keys })
    }

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

impl TokenAuthenticator for ServiceAccountTokens {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<TokenIdentity>, String>> {
        Box::pin(std::future::ready(self.authenticate_token(token, audiences)))
    }
}

impl fmt::Debug for ServiceAccountTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAccountTokens").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
