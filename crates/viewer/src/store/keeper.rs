//! The one way into the store.

use std::sync::Arc;

use bytes::Bytes;

use super::{Added, Arrival, Store};

/// Takes requests for the store.
#[derive(Clone, Debug)]
pub struct Keeper {
    store: Arc<Store>,
    now: fn() -> u64,
}

impl Keeper {
    /// For this store, by this clock.
    pub fn new(store: Arc<Store>, now: fn() -> u64) -> Self {
        Self { store, now }
    }

    /// Takes a request that was scanned.
    pub fn keep(&self, request: Bytes) -> Added {
        self.store.add(Arrival::read(&request), (self.now)())
    }
}
