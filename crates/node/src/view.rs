//! All objects of one kind, kept up to date by one watch that everybody shares.
//!
//! *Guarantees.* Who writes an object and then [notes](View::note) the answer sees its own write: a controller never creates
//! a second replica because the watch has not told it of the first. Listeners hear of every change in the order of the
//! object's versions, though not of every version. An answer that comes later than the watch brings nothing back that is gone.
//! *Assumes* that resource versions are numbers that grow, as Kubernetes says since 1.35.
//! *Leaves out* `managedFields`: nobody here reads them, and as trees of values they are larger than all else of an object.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Debug},
    pin::pin,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use futures_util::StreamExt;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::key::Key;

/// An object as it was and as it is; one of the two is there.
#[derive(Debug)]
pub struct Change<K> {
    /// Not there if the object is new.
    pub old: Option<Arc<K>>,
    /// Not there if the object is gone.
    pub new: Option<Arc<K>>,
}

impl<K> Change<K> {
    /// The object, as it is or as it was last.
    pub fn latest(&self) -> Option<&Arc<K>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

type Listener<K> = Box<dyn Fn(&Change<K>) + Send + Sync>;

struct Held<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// The watch has told everything up to this version.
    seen: u64,
}

/// The objects of one kind.
pub struct View<K> {
    held: RwLock<Held<K>>,
    listeners: RwLock<Vec<Listener<K>>>,
    synced: watch::Sender<bool>,
}

impl<K> Default for View<K> {
    fn default() -> Self {
        let held = RwLock::new(Held { objects: BTreeMap::new(), seen: 0 });
        Self { held, listeners: RwLock::default(), synced: watch::Sender::new(false) }
    }
}

impl<K> Debug for View<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View<{}>", std::any::type_name::<K>())
    }
}

impl<K> View<K> {
    fn read(&self) -> RwLockReadGuard<'_, Held<K>> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held<K>> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object, if it is there.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    /// All there are, by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    /// Those of one namespace, by name.
    pub fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        let held = self.read();
        let from = held.objects.range(Key::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Calls this for every change from now on, and for every object that is there now. It must not block.
    pub fn on_change(&self, listener: impl Fn(&Change<K>) + Send + Sync + 'static) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        self.all().into_iter().for_each(|object| listener(&Change { old: None, new: Some(object) }));
        listeners.push(Box::new(listener));
    }

    /// Waits until all objects that were there at the start are.
    pub async fn synced(&self) {
        // The sender is ours: it cannot go before us.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    fn tell(&self, change: &Change<K>) {
        self.listeners.read().unwrap_or_else(PoisonError::into_inner).iter().for_each(|listener| listener(change));
    }
}

impl<K: Resource> View<K> {
    /// What the API server answered to a write. Nothing changes if the watch has told as much or more.
    pub fn note(&self, object: K) -> Arc<K> {
        let object = slim(object);
        self.put(&object, |seen| version(&*object) > seen);
        object
    }

    /// The API server has deleted `object`. If it answered with the object, that says whether it is gone or on its way.
    pub fn deleted(&self, object: &K, answer: Option<K>) {
        match answer.filter(is_kept) {
            Some(marked) => drop(self.note(marked)),
            None => self.forget(object),
        }
    }

    /// The object was removed at this version of itself. One that was made since stays.
    pub fn forget(&self, object: &K) {
        let key = Key::of(object);
        let old = {
            let mut held = self.write();
            match held.objects.get(&key) {
                Some(held) if version(&**held) > version(object) && held.uid() != object.uid() => None,
                _ => held.objects.remove(&key),
            }
        };
        if let Some(old) = old {
            self.tell(&Change { old: Some(old), new: None });
        }
    }

    /// Older versions than the one that is there change nothing.
    fn put(&self, object: &Arc<K>, is_news: impl FnOnce(u64) -> bool) {
        let key = Key::of(&**object);
        let old = {
            let mut held = self.write();
            let known = held.objects.get(&key).is_some_and(|held| version(&**held) >= version(&**object));
            if known || !is_news(held.seen) {
                return;
            }
            held.objects.insert(key, Arc::clone(object))
        };
        self.tell(&Change { old, new: Some(Arc::clone(object)) });
    }

    /// The watch has come so far.
    fn saw(&self, version: u64) {
        let mut held = self.write();
        held.seen = held.seen.max(version);
    }

    /// Forgets what a new list did not name.
    fn keep(&self, named: &BTreeSet<Key>) {
        let gone: Vec<_> = {
            let mut held = self.write();
            held.objects.extract_if(.., |key, _| !named.contains(key)).collect()
        };
        gone.into_iter().for_each(|(_, old)| self.tell(&Change { old: Some(old), new: None }));
    }
}

impl<K> View<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Follows the API server for ever.
    pub async fn follow(self: Arc<Self>, api: Api<K>) {
        let config = watcher::Config::default().streaming_lists();
        let mut events = pin!(watcher(api, config).default_backoff());
        let mut named = BTreeSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => named.clear(),
                Ok(Event::InitApply(object)) => {
                    named.insert(Key::of(&object));
                    self.put(&slim(object), |_| true);
                }
                Ok(Event::InitDone) => {
                    self.keep(&std::mem::take(&mut named));
                    self.synced.send_replace(true);
                }
                Ok(Event::Apply(object)) => {
                    self.saw(version(&object));
                    self.put(&slim(object), |_| true);
                }
                Ok(Event::Delete(object)) => {
                    self.saw(version(&object));
                    self.forget(&object);
                }
                Err(error) => tracing::warn!(view = ?self, %error, "a watch broke; it is begun again"),
            }
        }
    }
}

/// The object as it is kept. Without `managedFields` a write of it leaves those that are stored alone.
fn slim<K: Resource>(mut object: K) -> Arc<K> {
    object.meta_mut().managed_fields = None;
    Arc::new(object)
}

/// Whether something that was deleted is there for a while yet.
fn is_kept(object: &impl ResourceExt) -> bool {
    let meta = object.meta();
    meta.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0) || !object.finalizers().is_empty()
}

/// 0 for what was never written.
fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
