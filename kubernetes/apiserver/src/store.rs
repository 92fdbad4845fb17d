//! The object store: encoded objects by collection, namespace and name, with one revision for all, a bounded
//! history, lists at older revisions, watches, and a log on disk.
//!
//! Guaranteed:
//! - Revisions only grow, one for each write; the first write of an empty store has 2. A write that fails may
//!   leave a gap.
//! - A write is checked against the newest version of its object, and happens as a whole or not at all. Two
//!   writes that expect the same revision never both succeed.
//! - Readers, lists and watchers see writes in the order of their revisions and, with a directory, only when
//!   they are durable: a write that was visible to anyone survives a kill at any moment. With `sync` it
//!   survives a power cut, too.
//! - A list, and the state that a watch starts from, are of one revision. A watcher gets every event of its
//!   collection after its start once and in order, or [`Lagged`].
//! - The history holds no more than its limit (and one event). Only memory that nothing else holds is counted:
//!   replaced versions and last states of deleted objects with their metadata, and the events themselves.
//!   Objects that a reader still holds, or that a watch from [`WatchFrom::Start`] has yet to deliver, are not
//!   counted.
//! - A failing disk fails writes, not the process. When it works again, so do writes.
//!
//! Assumed: keys are names from paths (a namespace has no slash). Not done: no two processes share a directory,
//! no history outlives the process, and no write spans two objects.

mod disk;
mod error;
mod event;
mod flusher;
mod list;
mod shared;
mod state;
mod stored;
mod tree;
mod watch;

use std::{path::PathBuf, sync::Arc, thread::JoinHandle};

use kubewake_runtime::lock::Mutex;
use serde_json::Value;

use self::{
    disk::WriteAheadLog,
    list::CollectionView,
    shared::{SharedStore, WriteIntent},
    state::StoreState,
};
pub use self::{
    disk::is_in_use,
    error::{OpenError, WriteError},
    event::{EventKind, StoreEvent},
    list::{ListError, ListQuery, ListResult, ListRevision, NextPage},
    stored::{EncodedObject, MAX_NESTING_DEPTH, MAX_OBJECT_BYTES, Stored},
    watch::{Lagged, StoreWatch, WatchError, WatchFrom},
};
use crate::api::{GroupResource, ObjectKey};

/// The configuration of a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The directory of the log; without it everything is in memory only.
    pub data_dir: Option<PathBuf>,
    /// The limit of the history. Writes of one flush, up to some 4 MiB of them, become visible together: with a
    /// smaller history a watcher may lag although it keeps up.
    pub history_bytes: usize,
    /// Whether a write is synced to disk before it is answered. Without it a write survives a kill, but not a
    /// power cut.
    pub sync: bool,
    /// The log is compacted when it exceeds twice the size of the live objects plus this.
    pub log_slack: u64,
}

/// The store. Clones share it. Dropping the last one closes it and releases its directory.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    handle: Arc<StoreHandle>,
}

/// Figures about the current content of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    pub objects: usize,
    /// The memory of the live objects.
    pub bytes: usize,
    /// The memory that only the history holds.
    pub history_bytes: usize,
    pub revision: u64,
    pub watchers: usize,
}

#[derive(Debug)]
struct StoreHandle {
    shared: Arc<SharedStore>,
    flusher: Mutex<Option<JoinHandle<()>>>,
}

impl Default for Options {
    fn default() -> Self {
        // 16 MiB are some ten thousand versions of a usual object: minutes of a busy cluster. 4 MiB of log are
        // read in some ten milliseconds.
        Self { data_dir: None, history_bytes: 16 << 20, sync: true, log_slack: 4 << 20 }
    }
}

impl ObjectStore {
    /// Opens a store: empty, or with the content of its directory. It reads the whole log, and blocks while it
    /// does.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let Some(dir) = &options.data_dir else {
            return Ok(Self::from_shared(SharedStore::new(StoreState::new(1, options.history_bytes), false)));
        };
        let (log, recovered) = WriteAheadLog::open(dir, options.sync)?;
        let mut state = StoreState::new(recovered.revision, options.history_bytes);
        for object in recovered.objects {
            state.restore(object);
        }
        Self::from_shared(SharedStore::new(state, true)).with_flusher(log, options.log_slack)
    }

    fn from_shared(shared: SharedStore) -> Self {
        Self { handle: Arc::new(StoreHandle { shared: Arc::new(shared), flusher: Mutex::new(None) }) }
    }

    fn with_flusher(self, log: WriteAheadLog, slack: u64) -> Result<Self, OpenError> {
        let flusher = flusher::start(Arc::clone(self.shared()), log, slack).map_err(OpenError::Thread)?;
        *self.handle.flusher.lock() = Some(flusher);
        Ok(self)
    }

    fn shared(&self) -> &Arc<SharedStore> {
        &self.handle.shared
    }

    /// The newest visible revision.
    pub fn revision(&self) -> u64 {
        self.shared().state().revision
    }

    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.shared().state().get(key).cloned()
    }

    /// Stores a new object. Its `apiVersion`, `kind` and `metadata.resourceVersion` are ignored.
    pub async fn create(&self, key: ObjectKey, object: Value) -> Result<Arc<Stored>, WriteError> {
        self.insert(&key, EncodedObject::from_value(&object)?).await
    }

    /// Stores a new object that is encoded already.
    pub async fn insert(&self, key: &ObjectKey, object: EncodedObject) -> Result<Arc<Stored>, WriteError> {
        self.shared().write(key, WriteIntent::Create(object)).await
    }

    /// Replaces an object that is at the expected revision. If nothing but the revision differs, nothing is
    /// written and the stored object is returned.
    pub async fn update(&self, key: &ObjectKey, expected: u64, object: Value) -> Result<Arc<Stored>, WriteError> {
        self.shared().write(key, WriteIntent::Update(expected, EncodedObject::from_value(&object)?)).await
    }

    /// Removes an object that is at the expected revision. Returns, and shows to watchers, `last` or else the
    /// stored object, at the revision of the deletion.
    pub async fn delete(&self, key: &ObjectKey, expected: u64, last: Option<Value>) -> Result<Arc<Stored>, WriteError> {
        let last = last.map(|last| EncodedObject::from_value(&last)).transpose()?;
        self.shared().write(key, WriteIntent::Delete(expected, last)).await
    }

    pub fn list(&self, resource: &GroupResource, query: &ListQuery) -> Result<ListResult, ListError> {
        self.list_filtered(resource, query, &|_| true)
    }

    /// Lists the objects of a collection that `keep` accepts: a page is full unless the list ends before. No
    /// lock is held while `keep` runs.
    pub fn list_filtered(
        &self,
        resource: &GroupResource,
        query: &ListQuery,
        keep: &dyn Fn(&Stored) -> bool,
    ) -> Result<ListResult, ListError> {
        let view = CollectionView::capture(&self.shared().state(), resource, query)?;
        Ok(view.sort_undone().page(query, keep))
    }

    /// Watches a collection, which may be empty.
    pub fn watch(&self, resource: &GroupResource, from: WatchFrom) -> Result<StoreWatch, WatchError> {
        StoreWatch::start(self.shared(), resource, from)
    }

    /// The collections that hold objects.
    pub fn collections(&self) -> Vec<GroupResource> {
        let state = self.shared().state();
        let used = state.collections().iter().filter(|collection| collection.objects.len() > 0);
        used.map(|collection| collection.resource.clone()).collect()
    }

    /// Clears the history: older revisions are too old from now on. A watcher that has not seen all events has
    /// lagged.
    pub fn clear_history(&self) {
        self.shared().state_mut().clear_history();
    }

    pub fn stats(&self) -> StoreStats {
        let state = self.shared().state();
        StoreStats {
            objects: state.objects,
            bytes: state.bytes,
            history_bytes: state.history_bytes,
            revision: state.revision,
            watchers: state.collections().iter().map(|collection| collection.event_signal.receiver_count()).sum(),
        }
    }

    /// Refuses further writes, blocks until every accepted write is durable, and releases the directory. Stored
    /// objects can still be read.
    pub fn close(&self) {
        self.handle.close();
    }
}

impl StoreHandle {
    fn close(&self) {
        self.shared.lock_write_queue().closed = true;
        self.shared.work.notify_one();
        let flusher = self.flusher.lock().take();
        if let Some(flusher) = flusher {
            // The thread does not panic; if it did, its writers got an error.
            let _ = flusher.join();
        }
    }
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
