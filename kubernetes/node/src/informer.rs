//! An informer: the objects of one kind, kept up to date by one watch that all components share.
//!
//! *Guaranteed*: a component that [records](SharedInformer::record_write) the response to its write sees that
//! write at once: a controller never creates a second replica because the watch has not shown the first.
//! Listeners are called for every change in the order of the object's versions, but not for every version. A
//! response that arrives after the watch does not bring back a deleted object. *Assumed*: resource versions are
//! increasing integers, as Kubernetes documents since 1.35. *Not done*: `managedFields` are dropped: they are
//! not used here, and are larger than the rest of an object.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Debug},
    pin::pin,
    sync::{Arc, RwLockReadGuard, RwLockWriteGuard},
};

use futures_util::StreamExt;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use kubewake_runtime::lock::RwLock;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::key::NamespacedKey;

/// The old and the new state of an object; at least one of them exists.
#[derive(Debug)]
pub struct InformerChange<K> {
    /// None if the object is new.
    pub old: Option<Arc<K>>,
    /// None if the object was deleted.
    pub new: Option<Arc<K>>,
}

impl<K> InformerChange<K> {
    /// The new state, or the last one of a deleted object.
    pub fn latest(&self) -> Option<&Arc<K>> {
        self.new.as_ref().or(self.old.as_ref())
    }
}

type ChangeListener<K> = Box<dyn Fn(&InformerChange<K>) + Send + Sync>;

struct CachedObjects<K> {
    objects: BTreeMap<NamespacedKey, Arc<K>>,
    /// The watch is complete up to this version.
    synced_version: u64,
}

/// The cached objects of one kind.
pub struct SharedInformer<K> {
    cached: RwLock<CachedObjects<K>>,
    listeners: RwLock<Vec<ChangeListener<K>>>,
    synced: watch::Sender<bool>,
}

impl<K> Default for SharedInformer<K> {
    fn default() -> Self {
        let held = RwLock::new(CachedObjects { objects: BTreeMap::new(), synced_version: 0 });
        Self { cached: held, listeners: RwLock::default(), synced: watch::Sender::new(false) }
    }
}

impl<K> Debug for SharedInformer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View<{}>", std::any::type_name::<K>())
    }
}

impl<K> SharedInformer<K> {
    fn read(&self) -> RwLockReadGuard<'_, CachedObjects<K>> {
        self.cached.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, CachedObjects<K>> {
        self.cached.write()
    }

    /// The object, if it exists.
    pub fn get(&self, key: &NamespacedKey) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    /// All objects, by namespace and name.
    pub fn all(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    /// The objects of one namespace, by name.
    pub fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let held = self.read();
        let from = held.objects.range(NamespacedKey::new(namespace, "")..);
        from.take_while(|(key, _)| key.namespace == namespace).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Calls the listener for every existing object and for every change from now on. It must not block.
    pub fn on_change(&self, listener: impl Fn(&InformerChange<K>) + Send + Sync + 'static) {
        let mut listeners = self.listeners.write();
        self.all().into_iter().for_each(|object| listener(&InformerChange { old: None, new: Some(object) }));
        listeners.push(Box::new(listener));
    }

    /// Waits for the initial list.
    pub async fn wait_until_synced(&self) {
        // `self` holds the sender, so the channel stays open.
        let _ = self.synced.subscribe().wait_for(|synced| *synced).await;
    }

    fn notify_listeners(&self, change: &InformerChange<K>) {
        self.listeners.read().iter().for_each(|listener| listener(change));
    }
}

impl<K: Resource> SharedInformer<K> {
    /// Records the response to a write. Ignored if the watch has shown this version or a newer one.
    pub fn record_write(&self, object: K) -> Arc<K> {
        let object = without_managed_fields(object);
        self.store_newer(&object, |seen| version(&*object) > seen);
        object
    }

    /// Records a deletion. The response says whether the object is gone or terminating, if it contains the
    /// object.
    pub fn record_deletion(&self, object: &K, answer: Option<K>) {
        match answer.filter(has_finalizers_or_grace) {
            Some(marked) => drop(self.record_write(marked)),
            None => self.remove(object),
        }
    }

    /// Removes the object at this version. An object that was created since then stays.
    pub fn remove(&self, object: &K) {
        let key = NamespacedKey::from_object(object);
        let old = {
            let mut held = self.write();
            match held.objects.get(&key) {
                Some(held) if version(&**held) > version(object) && held.uid() != object.uid() => None,
                _ => held.objects.remove(&key),
            }
        };
        if let Some(old) = old {
            self.notify_listeners(&InformerChange { old: Some(old), new: None });
        }
    }

    /// Stores the object unless the cached version is newer.
    fn store_newer(&self, object: &Arc<K>, is_news: impl FnOnce(u64) -> bool) {
        let key = NamespacedKey::from_object(&**object);
        let old = {
            let mut held = self.write();
            let known = held.objects.get(&key).is_some_and(|held| version(&**held) >= version(&**object));
            if known || !is_news(held.synced_version) {
                return;
            }
            held.objects.insert(key, Arc::clone(object))
        };
        self.notify_listeners(&InformerChange { old, new: Some(Arc::clone(object)) });
    }

    /// Records the version that the watch has reached.
    fn advance_version(&self, version: u64) {
        let mut held = self.write();
        held.synced_version = held.synced_version.max(version);
    }

    /// Removes the objects that a new list did not contain.
    fn retain_listed(&self, named: &BTreeSet<NamespacedKey>) {
        let gone: Vec<_> = {
            let mut held = self.write();
            held.objects.extract_if(.., |key, _| !named.contains(key)).collect()
        };
        gone.into_iter().for_each(|(_, old)| self.notify_listeners(&InformerChange { old: Some(old), new: None }));
    }
}

impl<K> SharedInformer<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    /// Lists and watches for ever.
    pub async fn list_and_watch(self: Arc<Self>, api: Api<K>) {
        let config = watcher::Config::default().streaming_lists();
        let mut events = pin!(watcher(api, config).default_backoff());
        let mut named = BTreeSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => named.clear(),
                Ok(Event::InitApply(object)) => {
                    named.insert(NamespacedKey::from_object(&object));
                    self.store_newer(&without_managed_fields(object), |_| true);
                }
                Ok(Event::InitDone) => {
                    self.retain_listed(&std::mem::take(&mut named));
                    self.synced.send_replace(true);
                }
                Ok(Event::Apply(object)) => {
                    self.advance_version(version(&object));
                    self.store_newer(&without_managed_fields(object), |_| true);
                }
                Ok(Event::Delete(object)) => {
                    self.advance_version(version(&object));
                    self.remove(&object);
                }
                Err(error) => tracing::warn!(view = ?self, %error, "watch failed, restarting it"),
            }
        }
    }
}

/// The object as it is cached. A write without `managedFields` leaves the stored ones unchanged.
fn without_managed_fields<K: Resource>(mut object: K) -> Arc<K> {
    object.meta_mut().managed_fields = None;
    Arc::new(object)
}

/// Whether a deleted object continues to exist for a while.
fn has_finalizers_or_grace(object: &impl ResourceExt) -> bool {
    let meta = object.meta();
    meta.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0) || !object.finalizers().is_empty()
}

/// The resource version; 0 for an object that was never written.
fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
