//! Caches successfully authenticated tokens, as kube-apiserver does for ten seconds.
//!
//! The server has no such cache by default: a token is refused at once when its ServiceAccount is deleted. With
//! the cache, tests see how programs behave on a cluster that notices the deletion later.
//!
//! *Guaranteed*: a token is accepted for at most the TTL after it was authenticated; refusals are not cached;
//! the number of entries is bounded.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use kubewake_runtime::lock::Mutex;

use super::authenticate::{TokenAuthenticator, TokenIdentity};

/// The limit of cached tokens; further ones are authenticated each time.
const MAX_CACHED_TOKENS: usize = 4096;

/// Caches the results of another authenticator.
pub struct TokenCache {
    inner: Arc<dyn TokenAuthenticator>,
    ttl: Duration,
    good: Mutex<HashMap<String, (Instant, TokenIdentity)>>,
}

impl TokenCache {
    /// Caches the tokens that `inner` authenticates for the duration `ttl`.
    pub fn new(inner: Arc<dyn TokenAuthenticator>, ttl: Duration) -> Self {
        Self { inner, ttl, good: Mutex::default() }
    }

    fn cached_identity(&self, token: &str) -> Option<TokenIdentity> {
        let good = self.good.lock();
        good.get(token).filter(|(since, _)| since.elapsed() < self.ttl).map(|(_, identity)| identity.clone())
    }

    fn store_identity(&self, token: &str, identity: &TokenIdentity) {
        let mut good = self.good.lock();
        if good.len() >= MAX_CACHED_TOKENS {
            good.retain(|_, (since, _)| since.elapsed() < self.ttl);
        }
        if good.len() < MAX_CACHED_TOKENS {
            good.insert(token.to_owned(), (Instant::now(), identity.clone()));
        }
    }
}

impl TokenAuthenticator for TokenCache {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<TokenIdentity>, String>> {
        Box::pin(async move {
            // A TokenReview may ask for other audiences than the cached request.
            if audiences.is_some() {
                return self.inner.authenticate(token, audiences).await;
            }
            if let Some(identity) = self.cached_identity(token) {
                return Ok(Some(identity));
            }
            let answer = self.inner.authenticate(token, None).await;
            if let Ok(Some(identity)) = &answer {
                self.store_identity(token, identity);
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::auth::user::UserInfo;

    /// Accepts every token until it is revoked.
    #[derive(Default)]
    struct Revocable(AtomicBool);

    impl TokenAuthenticator for Revocable {
        fn authenticate<'a>(
            &'a self,
            token: &'a str,
            _: Option<&'a [String]>,
        ) -> BoxFuture<'a, Result<Option<TokenIdentity>, String>> {
            let is_revoked = self.0.load(Ordering::Relaxed);
            let identity = TokenIdentity { user: UserInfo::new(token, []), audiences: Arc::default() };
            Box::pin(std::future::ready(if is_revoked { Err("revoked".to_owned()) } else { Ok(Some(identity)) }))
        }
    }

    async fn asked(cache: &TokenCache, token: &str, audiences: Option<&[String]>) -> bool {
        cache.authenticate(token, audiences).await.is_ok_and(|found| found.is_some())
    }

    #[tokio::test]
    async fn revoked_token_is_taken_until_its_time_is_over() {
        let inner = Arc::new(Revocable::default());
        let long = Duration::from_secs(3600);
        let none = Duration::ZERO;
        let [kept, forgotten] = [long, none].map(|ttl| TokenCache::new(Arc::clone(&inner) as _, ttl));
        assert!(asked(&kept, "a", None).await && asked(&forgotten, "a", None).await);
        inner.0.store(true, Ordering::Relaxed);
        assert!(asked(&kept, "a", None).await);
        assert!(!asked(&forgotten, "a", None).await, "its time is over");
        assert!(!asked(&kept, "b", None).await, "it was not known before");
        assert!(!asked(&kept, "a", Some(&["other".to_owned()])).await, "a review looks at it each time");
    }

    #[tokio::test]
    async fn cache_holds_a_bounded_number_of_tokens() {
        let cache = TokenCache::new(Arc::new(Revocable::default()), Duration::from_secs(3600));
        for token in 0..MAX_CACHED_TOKENS + 10 {
            assert!(asked(&cache, &token.to_string(), None).await);
        }
        assert_eq!(cache.good.lock().len(), MAX_CACHED_TOKENS);
    }
}
