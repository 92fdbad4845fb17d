//! The object store: encoded objects by collection, namespace and name, with one revision for all, a bounded history, lists at
//! older revisions, watches, and a log on disk.
//!
//! What is guaranteed:
//! - Revisions only grow, one for each write; the first write of an empty store has 2. A write that fails may leave a gap.
//! - A write is checked against the newest version of its object, and happens as a whole or not at all. Two writes that expect
//!   the same revision never both succeed.
//! - Readers, lists and watchers see writes in the order of their revisions and, with a directory, only when they are durable:
//!   what anyone has seen is there after a kill at any moment. With `sync` it is there after a power cut, too.
//! - A list and the state that a watch starts from are of one revision. A watcher gets every event of its collection after its
//!   start once and in order, or [`Lagged`].
//! - The history holds no more than its limit (and one event), counted as what nothing else holds: replaced versions and last
//!   states of deleted objects with their metadata, and the events themselves. What a reader still holds, and the objects that a
//!   watch from [`WatchFrom::Start`] has yet to show, is not counted.
//! - A failing disk fails writes, not the process. When it works again, so do writes.
//!
//! What is assumed: keys are names from paths (a namespace has no slash). What is not done: no two processes share a directory,
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

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use serde_json::Value;

use self::{
    disk::Log,
    list::View,
    shared::{Intent, Shared},
    state::State,
};
pub use self::{
    disk::is_in_use,
    error::{OpenError, WriteError},
    event::{Event, EventKind},
    list::{At, ListError, ListQuery, Listed, More},
    stored::{Encoded, MAX_BODY, MAX_DEPTH, Stored},
    watch::{Lagged, Watch, WatchError, WatchFrom},
};
use crate::api::{GroupResource, ObjectKey};

/// How to open a store.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the log is; without it everything is in memory only.
    pub data_dir: Option<PathBuf>,
    /// The limit of the history. Writes that became durable together, up to some 4 MiB of them, become visible together: with a
    /// smaller history a watcher may lag although it keeps up.
    pub history_bytes: usize,
    /// Whether a write is answered only when the disk says that it holds it. Without it a write survives a kill, but not a power cut.
    pub sync: bool,
    /// The log is compacted when it is longer than twice the live objects and this.
    pub log_slack: u64,
}

/// The store. A clone is the same store. With the last one it is closed, and its directory is free.
#[derive(Clone, Debug)]
pub struct Store {
    handle: Arc<Handle>,
}

/// What the store holds now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Objects in all collections.
    pub objects: usize,
    /// The memory that they take.
    pub bytes: usize,
    /// The memory that only the history takes.
    pub history_bytes: usize,
    /// The newest revision.
    pub revision: u64,
    /// Watches that are open.
    pub watchers: usize,
}

#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    flusher: Mutex<Option<JoinHandle<()>>>,
}

impl Default for Options {
    fn default() -> Self {
        // 16 MiB are some ten thousand versions of a usual object: minutes of a busy cluster. 4 MiB of log are read in some ten
        // milliseconds.
        Self { data_dir: None, history_bytes: 16 << 20, sync: true, log_slack: 4 << 20 }
    }
}

impl Store {
    /// Opens a store: empty, or with what its directory holds. It reads the whole log, and blocks while it does.
    pub fn open(options: Options) -> Result<Self, OpenError> {
        let Some(dir) = &options.data_dir else {
            return Ok(Self::with(Shared::new(State::new(1, options.history_bytes), false)));
        };
        let (log, recovered) = Log::open(dir, options.sync)?;
        let mut state = State::new(recovered.revision, options.history_bytes);
        for object in recovered.objects {
            state.restore(object);
        }
        Self::with(Shared::new(state, true)).flushed_to(log, options.log_slack)
    }

    fn with(shared: Shared) -> Self {
        Self { handle: Arc::new(Handle { shared: Arc::new(shared), flusher: Mutex::new(None) }) }
    }

    fn flushed_to(self, log: Log, slack: u64) -> Result<Self, OpenError> {
        let flusher = flusher::start(Arc::clone(self.shared()), log, slack).map_err(OpenError::Thread)?;
        *self.handle.flusher.lock().unwrap_or_else(PoisonError::into_inner) = Some(flusher);
        Ok(self)
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// The newest revision that is visible.
    pub fn revision(&self) -> u64 {
        self.shared().state().revision
    }

    /// The newest version of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stored>> {
        self.shared().state().get(key).cloned()
    }

    /// Stores a new object. `apiVersion`, `kind` and `metadata.resourceVersion` of it do not count.
    pub async fn create(&self, key: ObjectKey, object: Value) -> Result<Arc<Stored>, WriteError> {
        self.insert(&key, Encoded::of(&object)?).await
    }

    /// Stores a new object that is encoded already.
    pub async fn insert(&self, key: &ObjectKey, object: Encoded) -> Result<Arc<Stored>, WriteError> {
        self.shared().write(key, Intent::Create(object)).await
    }

    /// Replaces an object that is at the expected revision. If nothing but the revision differs, nothing is written and the stored
    /// object is given back.
    pub async fn update(&self, key: &ObjectKey, expected: u64, object: Value) -> Result<Arc<Stored>, WriteError> {
        self.shared().write(key, Intent::Update(expected, Encoded::of(&object)?)).await
    }

    /// Removes an object that is at the expected revision. What is given back, and shown to watchers, is `last` or else the
    /// stored object, at the revision of the deletion.
    pub async fn delete(&self, key: &ObjectKey, expected: u64, last: Option<Value>) -> Result<Arc<Stored>, WriteError> {
        let last = last.map(|last| Encoded::of(&last)).transpose()?;
        self.shared().write(key, Intent::Delete(expected, last)).await
    }

    /// Lists a collection.
    pub fn list(&self, resource: &GroupResource, query: &ListQuery) -> Result<Listed, ListError> {
        self.list_where(resource, query, &|_| true)
    }

    /// Lists what a selector wants of a collection: a page is filled unless the list ends before. No lock is held while `keep` looks.
    pub fn list_where(
        &self,
        resource: &GroupResource,
        query: &ListQuery,
        keep: &dyn Fn(&Stored) -> bool,
    ) -> Result<Listed, ListError> {
        let view = View::take(&self.shared().state(), resource, query)?;
        Ok(view.settle().page(query, keep))
    }

    /// Watches a collection, which need not hold anything yet.
    pub fn watch(&self, resource: &GroupResource, from: WatchFrom) -> Result<Watch, WatchError> {
        Watch::start(self.shared(), resource, from)
    }

    /// The collections that hold objects.
    pub fn collections(&self) -> Vec<GroupResource> {
        let state = self.shared().state();
        let used = state.all().iter().filter(|collection| collection.objects.len() > 0);
        used.map(|collection| collection.resource.clone()).collect()
    }

    /// Lets the history begin now: what is older is too old. A watcher that has not seen everything has lagged.
    pub fn forget_history(&self) {
        self.shared().state_mut().forget();
    }

    /// What the store holds now.
    pub fn stats(&self) -> Stats {
        let state = self.shared().state();
        Stats {
            objects: state.objects,
            bytes: state.bytes,
            history_bytes: state.history_bytes,
            revision: state.revision,
            watchers: state.all().iter().map(|collection| collection.news.receiver_count()).sum(),
        }
    }

    /// Refuses further writes, blocks until everything that was accepted is durable, and gives the directory back. What is stored can
    /// still be read.
    pub fn close(&self) {
        self.handle.close();
    }
}

impl Handle {
    fn close(&self) {
        self.shared.writer().closed = true;
        self.shared.work.notify_one();
        let flusher = self.flusher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(flusher) = flusher {
            // The thread does not panic; if it did, its writers know.
            let _ = flusher.join();
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
