//! All objects of one kind, kept up to date by one watch that everybody shares.
//!
//! *Guarantees.* Who writes an object and then [notes](View::note) the answer sees its own write: a controller never creates
//! a second replica because the watch has not told it of the first. What the watch has told to be gone does not come back by a late
//! note. Listeners hear of every change in the order of the
//! object's versions, though not of every version. *Assumes* that resource versions are numbers that grow, as Kubernetes says
//! since 1.35.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Debug},
    pin::pin,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
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

/// The objects of one kind.
pub struct View<K> {
    objects: RwLock<BTreeMap<Key, Arc<K>>>,
    /// Everything up to this version has been told by the watch.
    told: AtomicU64,
    listeners: RwLock<Vec<Listener<K>>>,
    synced: watch::Sender<bool>,
}

impl<K> Default for View<K> {
    fn default() -> Self {
        Self {
            objects: RwLock::default(),
            told: AtomicU64::new(0),
            listeners: RwLock::default(),
            synced: watch::Sender::new(false),
        }
    }
}

impl<K> Debug for View<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View<{}>", std::any::type_name::<K>())
    }
}

impl<K> View<K> {
    /// The object, if it is there.
    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// All there are, by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Those of one namespace, by name.
    pub fn within(&self, namespace: &str) -> Vec<Arc<K>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let from = objects.range(Key::new(namespace, "")..);
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
    /// What the API server answered to a write. Older versions than the one that is there change nothing, nor does one that
    /// the watch has told of already: if the object is not there, it is gone.
    pub fn note(&self, object: K) -> Arc<K> {
        self.put(object, false)
    }

    fn put(&self, object: K, watched: bool) -> Arc<K> {
        let (key, object) = (Key::of(&object), Arc::new(object));
        let old = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            let late = !watched && version(&*object) <= self.told.load(Relaxed);
            if late || objects.get(&key).is_some_and(|held| version(&**held) >= version(&*object)) {
                return object;
            }
            objects.insert(key, Arc::clone(&object))
        };
        self.tell(&Change { old, new: Some(Arc::clone(&object)) });
        object
    }

    /// The object was removed at this version of itself. One that was made since stays.
    pub fn forget(&self, object: &K) {
        let key = Key::of(object);
        let old = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            match objects.get(&key) {
                Some(held) if version(&**held) <= version(object) || held.uid() == object.uid() => objects.remove(&key),
                _ => None,
            }
        };
        if let Some(old) = old {
            self.tell(&Change { old: Some(old), new: None });
        }
    }

    /// The watch came to this object, and has told of all that happened before. The lock of the objects orders it with notes.
    fn tell_of(&self, object: &K) {
        let _objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        self.told.fetch_max(version(object), Relaxed);
    }

    /// Forgets what a new list did not name.
    fn keep(&self, named: &BTreeSet<Key>) {
        let gone: Vec<_> = {
            let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
            objects.extract_if(.., |key, _| !named.contains(key)).collect()
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
                    self.put(object, true);
                }
                Ok(Event::InitDone) => {
                    self.keep(&std::mem::take(&mut named));
                    self.synced.send_replace(true);
                }
                Ok(Event::Apply(object)) => {
                    self.tell_of(&object);
                    self.put(object, true);
                }
                Ok(Event::Delete(object)) => {
                    self.tell_of(&object);
                    self.forget(&object);
                }
                Err(error) => tracing::warn!(view = ?self, %error, "a watch broke; it is begun again"),
            }
        }
    }
}

/// 0 for what was never written.
fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
