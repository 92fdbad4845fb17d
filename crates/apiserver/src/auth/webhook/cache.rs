//! Answers that are remembered for a while.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use aws_lc_rs::digest;

/// More than these are not remembered: whoever asks for so many different things in a few minutes can ask again.
const MOST: usize = 4096;

/// Answers by the SHA-256 of what was asked, which may be a secret.
#[derive(Debug)]
pub(super) struct Cache<T>(Mutex<HashMap<[u8; 32], (Instant, T)>>);

pub(super) type Key = [u8; 32];

pub(super) fn key(question: &[u8]) -> Key {
    let mut key = [0; 32];
    key.copy_from_slice(digest::digest(&digest::SHA256, question).as_ref());
    key
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Cache<T> {
    pub(super) fn get(&self, key: &Key) -> Option<T> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(key).filter(|(until, _)| Instant::now() < *until).map(|(_, answer)| answer.clone())
    }

    pub(super) fn put(&self, key: Key, answer: T, time: Duration) {
        let now = Instant::now();
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST {
            answers.retain(|_, (until, _)| now < *until);
        }
        if answers.len() >= MOST {
            answers.clear();
        }
        answers.insert(key, (now + time, answer));
    }
}
