//! A cache of webhook responses with a TTL.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use aws_lc_rs::digest;
use kubewake_runtime::lock::Mutex;

/// The limit of cached responses; a client with more different requests in a few minutes causes further calls.
const MAX_CACHED_RESPONSES: usize = 4096;

/// Responses by the SHA-256 of the request, which may contain a secret.
#[derive(Debug)]
pub(super) struct ResponseCache<T>(Mutex<HashMap<[u8; 32], (Instant, T)>>);

pub(super) type CacheKey = [u8; 32];

pub(super) fn cache_key(question: &[u8]) -> CacheKey {
    let mut key = [0; 32];
    key.copy_from_slice(digest::digest(&digest::SHA256, question).as_ref());
    key
}

impl<T> Default for ResponseCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> ResponseCache<T> {
    pub(super) fn get(&self, key: &CacheKey) -> Option<T> {
        let answers = self.0.lock();
        answers.get(key).filter(|(until, _)| Instant::now() < *until).map(|(_, answer)| answer.clone())
    }

    pub(super) fn put(&self, key: CacheKey, answer: T, time: Duration) {
        let now = Instant::now();
        let mut answers = self.0.lock();
        if answers.len() >= MAX_CACHED_RESPONSES {
            answers.retain(|_, (until, _)| now < *until);
        }
        if answers.len() >= MAX_CACHED_RESPONSES {
            answers.clear();
        }
        answers.insert(key, (now + time, answer));
    }
}
