//! The one way into the store: memory first, and the disk if there is one.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Added, Arrival, Disk, DiskError, Store};

/// Takes requests for the store.
#[derive(Clone, Debug)]
pub struct Keeper {
    store: Arc<Store>,
    disk: Option<Arc<Mutex<Disk>>>,
    now: fn() -> u64,
}

impl Keeper {
    /// For this store, by this clock. Nothing is left after the end.
    pub fn in_memory(store: Arc<Store>, now: fn() -> u64) -> Self {
        Self { store, disk: None, now }
    }

    /// The same with a folder, of at most so many bytes, in which things are kept. What is there is read into the store.
    ///
    /// # Errors
    ///
    /// If the folder cannot be used.
    pub fn on_disk(store: Arc<Store>, now: fn() -> u64, folder: &Path, limit: u64) -> Result<Self, DiskError> {
        let disk = Disk::open(folder, limit, |request, received| drop(store.add(Arrival::read(request), received)))?;
        Ok(Self { store, disk: Some(Arc::new(Mutex::new(disk))), now })
    }

    /// Takes a request that was scanned.
    pub fn keep(&self, request: &[u8]) -> Added {
        let received = (self.now)();
        let added = self.store.add(Arrival::read(request), received);
        // What is here already is there, too.
        if let Some(disk) = self.disk.as_ref().filter(|_| added.spans > 0) {
            disk.lock().unwrap_or_else(PoisonError::into_inner).append(request, received);
        }
        added
    }

    /// Makes sure that all of it is on disk.
    pub fn sync(&self) {
        if let Some(disk) = &self.disk {
            disk.lock().unwrap_or_else(PoisonError::into_inner).sync();
        }
    }
}
