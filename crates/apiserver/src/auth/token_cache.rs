//! Tokens that were good a moment ago, taken without another look, as kube-apiserver takes them for ten seconds.
//!
//! The server has none unless it is asked for: a token is refused at once when its ServiceAccount is deleted. With it, tests see what
//! their programs do on a cluster that learns of it later.
//!
//! *Guaranteed*: a token is taken for at most the given time after it was found to be good; what was refused is looked at each time; a
//! bounded number is held.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;

use super::authenticate::{Authenticator, Identity};

/// More tokens than this at once are looked at each time.
const MAX_TOKENS: usize = 4096;

/// Remembers what another authenticator said.
pub struct TokenCache {
    inner: Arc<dyn Authenticator>,
    ttl: Duration,
    good: Mutex<HashMap<String, (Instant, Identity)>>,
}

impl TokenCache {
    /// Takes tokens that `inner` has found to be good for so long without asking it.
    pub fn new(inner: Arc<dyn Authenticator>, ttl: Duration) -> Self {
        Self { inner, ttl, good: Mutex::default() }
    }

    fn recall(&self, token: &str) -> Option<Identity> {
        let good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        good.get(token).filter(|(since, _)| since.elapsed() < self.ttl).map(|(_, identity)| identity.clone())
    }

    fn remember(&self, token: &str, identity: &Identity) {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        if good.len() >= MAX_TOKENS {
            good.retain(|_, (since, _)| since.elapsed() < self.ttl);
        }
        if good.len() < MAX_TOKENS {
            good.insert(token.to_owned(), (Instant::now(), identity.clone()));
        }
    }
}

impl Authenticator for TokenCache {
    fn authenticate<'a>(
        &'a self,
        token: &'a str,
        audiences: Option<&'a [String]>,
    ) -> BoxFuture<'a, Result<Option<Identity>, String>> {
        Box::pin(async move {
            // A TokenReview may ask for other audiences than the request before.
            if audiences.is_some() {
                return self.inner.authenticate(token, audiences).await;
            }
            if let Some(identity) = self.recall(token) {
                return Ok(Some(identity));
            }
            let answer = self.inner.authenticate(token, None).await;
            if let Ok(Some(identity)) = &answer {
                self.remember(token, identity);
            }
            answer
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::auth::user::User;

    /// Knows every token, until it is told to know none.
    #[derive(Default)]
    struct Revocable(AtomicBool);

    impl Authenticator for Revocable {
        fn authenticate<'a>(
            &'a self,
            token: &'a str,
            _: Option<&'a [String]>,
        ) -> BoxFuture<'a, Result<Option<Identity>, String>> {
            let is_revoked = self.0.load(Ordering::Relaxed);
            let identity = Identity { user: User::new(token, []), audiences: Arc::default() };
            Box::pin(std::future::ready(if is_revoked { Err("revoked".to_owned()) } else { Ok(Some(identity)) }))
        }
    }

    async fn asked(cache: &TokenCache, token: &str, audiences: Option<&[String]>) -> bool {
        cache.authenticate(token, audiences).await.is_ok_and(|found| found.is_some())
    }

    #[tokio::test]
    async fn revoked_token_is_taken_until_its_time_is_over() {
        let inner = Arc::new(Revocable::default());
        let (long, none) = (Duration::from_secs(3600), Duration::ZERO);
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
        for token in 0..MAX_TOKENS + 10 {
            assert!(asked(&cache, &token.to_string(), None).await);
        }
        assert_eq!(cache.good.lock().unwrap().len(), MAX_TOKENS);
    }
}
