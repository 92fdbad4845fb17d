//! Tokens whose signature has been verified, so that it is not verified for every request.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use super::verify::Verified;

/// Some 1 KiB each, so a few megabytes at most; a cluster has fewer clients.
const PLACES: usize = 4096;

/// By the token's SHA-256: the token itself is not kept.
#[derive(Default)]
pub(super) struct Cache {
    verified: RwLock<HashMap<[u8; 32], Arc<Verified>>>,
}

impl Cache {
    pub fn get(&self, digest: &[u8; 32]) -> Option<Arc<Verified>> {
        self.verified.read().unwrap_or_else(PoisonError::into_inner).get(digest).cloned()
    }

    /// Remembers a token. If there is no place left, all are forgotten: verifying them once more is cheap, finding the oldest is not.
    pub fn put(&self, digest: [u8; 32], verified: Arc<Verified>) {
        let mut all = self.verified.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= PLACES {
            all.clear();
        }
        all.insert(digest, verified);
    }
}
