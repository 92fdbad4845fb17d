//! Writes requests to memory first, and to the disk if there is one.

use std::{path::Path, sync::Arc};

use kubewake_runtime::lock::Mutex;

use super::{AddedSpans, DiskError, GroupedSpans, SegmentStore, TraceStore};

/// Adds requests to the store.
#[derive(Clone, Debug)]
pub struct StoreWriter {
    store: Arc<TraceStore>,
    disk: Option<Arc<Mutex<SegmentStore>>>,
    now: fn() -> u64,
}

impl StoreWriter {
    /// A writer for this store and clock, without persistence.
    pub fn in_memory(store: Arc<TraceStore>, now: fn() -> u64) -> Self {
        Self { store, disk: None, now }
    }

    /// The same with a folder of at most `limit` bytes that persists requests. Its content is read into the
    /// store.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be used.
    pub fn on_disk(store: Arc<TraceStore>, now: fn() -> u64, folder: &Path, limit: u64) -> Result<Self, DiskError> {
        let disk = SegmentStore::open(folder, limit, |request, received| {
            drop(store.add(GroupedSpans::parse(request), received))
        })?;
        Ok(Self { store, disk: Some(Arc::new(Mutex::new(disk))), now })
    }

    /// Writes a request that was scanned.
    pub fn write_request(&self, request: &[u8]) -> AddedSpans {
        let received = (self.now)();
        let added = self.store.add(GroupedSpans::parse(request), received);
        // Requests without a new span are on disk already.
        if let Some(disk) = self.disk.as_ref().filter(|_| added.spans > 0) {
            disk.lock().append(request, received);
        }
        added
    }

    /// Syncs the requests that were persisted so far.
    pub fn sync(&self) {
        if let Some(disk) = &self.disk {
            disk.lock().sync();
        }
    }
}
