//! Caches tokens whose signature was verified, so that it is not verified for every request.

use std::{collections::HashMap, sync::Arc};

use kubewake_runtime::lock::RwLock;

use super::verify::VerifiedToken;

/// Entries of some 1 KiB each, so a few megabytes at most; a cluster has fewer clients.
const MAX_VERIFIED_TOKENS: usize = 4096;

/// The key is the token's SHA-256: the token itself is not kept.
#[derive(Default)]
pub(super) struct VerifiedTokenCache {
    verified: RwLock<HashMap<[u8; 32], Arc<VerifiedToken>>>,
}

impl VerifiedTokenCache {
    pub fn get(&self, digest: &[u8; 32]) -> Option<Arc<VerifiedToken>> {
        self.verified.read().get(digest).cloned()
    }

    /// Adds a token. A full cache is cleared: verifying tokens once more is cheap, finding the oldest is not.
    pub fn put(&self, digest: [u8; 32], verified: Arc<VerifiedToken>) {
        let mut all = self.verified.write();
        if all.len() >= MAX_VERIFIED_TOKENS {
            all.clear();
        }
        all.insert(digest, verified);
    }
}
