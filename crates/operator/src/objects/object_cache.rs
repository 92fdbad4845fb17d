//! Cache of the objects that the operator created.
//!
//! The cache is fed by watches of all objects with the operator's label and by responses to the operator's own
//! writes, whichever is newer: a run sees what the run before it wrote. A change notifies the
//! [`ResyncTrigger`]. Kinds that a cluster may lack come and go, and nothing waits for them. Everybody reads
//! [`ObjectCache`]; only the watches and the steps that write objects have an [`ObjectCacheWriter`].
//!
//! *Guaranteed*: only labelled objects of the closed set of [`ObjectKind`]s are kept, without fields that are
//! not read. *Assumed*: revisions of one kind are numbers that grow, as those of every API server are.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Deref,
    sync::{Arc, MutexGuard},
};

use futures_util::{StreamExt as _, stream::SelectAll};
use kube::{
    Client,
    api::DynamicObject,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use kubewake_runtime::lock::Mutex;
use kubewake_trail::error_chain;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    model::{
        names::{self, ManagedPart},
        object_kind::ObjectKind,
    },
    runtime::{
        failure_cause::FailureCause,
        metrics::{OperatorMetrics, ReconcileStep},
        resync_trigger::ResyncTrigger,
    },
};

#[cfg(test)]
mod tests;

/// The key of an object.
pub type KindAndName = (ObjectKind, String);

/// The objects that the operator created, for readers.
#[derive(Debug)]
pub struct ObjectCache {
    objects: Mutex<BTreeMap<KindAndName, Arc<Value>>>,
    /// Kinds without which the cache is not synced.
    awaited: BTreeSet<ObjectKind>,
    listed: watch::Sender<BTreeSet<ObjectKind>>,
    resync_trigger: ResyncTrigger,
    /// Changes by watches and by own writes.
    changes: watch::Sender<()>,
}

/// The right to change an [`ObjectCache`]: for watches, and for steps that record responses to their writes.
#[derive(Clone, Debug)]
pub struct ObjectCacheWriter(Arc<ObjectCache>);

impl Deref for ObjectCacheWriter {
    type Target = ObjectCache;

    fn deref(&self) -> &ObjectCache {
        &self.0
    }
}

impl ObjectCache {
    /// Waits until all awaited kinds have been listed.
    pub async fn wait_synced(&self) {
        // The sender is a field of this value, so the wait cannot fail.
        let _ = self.listed.subscribe().wait_for(|listed| listed.is_superset(&self.awaited)).await;
    }

    /// Whether all awaited kinds have been listed.
    pub fn is_synced(&self) -> bool {
        self.listed.borrow().is_superset(&self.awaited)
    }

    /// Whether objects of this kind have been listed.
    pub fn has_listed(&self, kind: ObjectKind) -> bool {
        self.listed.borrow().contains(&kind)
    }

    pub fn get(&self, kind: ObjectKind, name: &str) -> Option<Arc<Value>> {
        self.objects().get(&(kind, name.to_owned())).cloned()
    }

    /// Changes of the content from now on. Unlike a [`ResyncTrigger`] it also reports the operator's own writes.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// The keys of all objects with this purpose.
    pub fn keys(&self, part: ManagedPart) -> Vec<KindAndName> {
        let is_of = |object: &Value| {
            object.pointer("/metadata/labels").and_then(|all| all.get(names::PART_LABEL)?.as_str())
                == Some(part.as_str())
        };
        self.objects().iter().filter(|(_, object)| is_of(object)).map(|(key, _)| key.clone()).collect()
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<KindAndName, Arc<Value>>> {
        self.objects.lock()
    }
}

impl ObjectCacheWriter {
    /// An empty cache, which is synced when these kinds have been listed.
    pub fn new(awaited: impl IntoIterator<Item = ObjectKind>, resync_trigger: ResyncTrigger) -> Self {
        let awaited = awaited.into_iter().collect();
        let listed = watch::Sender::default();
        let changes = watch::Sender::default();
        Self(Arc::new(ObjectCache { objects: Mutex::default(), awaited, listed, resync_trigger, changes }))
    }

    pub fn reader(&self) -> Arc<ObjectCache> {
        Arc::clone(&self.0)
    }

    /// Watches all objects of these kinds. Runs for ever.
    pub async fn watch_kinds(
        &self,
        kinds: impl IntoIterator<Item = ObjectKind>,
        client: &Client,
        namespace: &str,
        metrics: &OperatorMetrics,
    ) {
        let mut events = SelectAll::new();
        for kind in kinds {
            let all = watcher::Config::default().labels(&names::managed_selector());
            let stream = watcher(kind.api(client, namespace), all).default_backoff();
            events.push(stream.map(move |event| (kind, event)).boxed());
        }
        let mut listed = BTreeMap::<ObjectKind, BTreeSet<String>>::new();
        while let Some((kind, event)) = events.next().await {
            match event {
                Ok(event) => self.observe(kind, event, &mut listed),
                Err(error) => {
                    metrics.count_failure(ReconcileStep::Watch, FailureCause::from(&error));
                    tracing::warn!(?kind, error = error_chain(&error), "failed to watch objects");
                }
            }
        }
    }

    /// Drops a kind that the cluster no longer has, and its objects.
    pub fn drop_kind(&self, kind: ObjectKind) {
        self.listed.send_modify(|listed| _ = listed.remove(&kind));
        self.retain_listed(kind, &BTreeSet::new());
    }

    /// Adds the response to a write.
    pub fn record_response(&self, kind: ObjectKind, answer: &impl Serialize) {
        if serde_json::to_value(answer).is_ok_and(|answer| self.insert_if_newer(kind, answer)) {
            self.changes.send_replace(());
        }
    }

    /// Removes an object that the API server does not have.
    pub fn remove_absent(&self, kind: ObjectKind, name: &str) {
        if self.objects().remove(&(kind, name.to_owned())).is_some() {
            self.changes.send_replace(());
        }
    }

    fn observe(
        &self,
        kind: ObjectKind,
        event: Event<DynamicObject>,
        listed: &mut BTreeMap<ObjectKind, BTreeSet<String>>,
    ) {
        let changed = match event {
            Event::Init => {
                listed.insert(kind, BTreeSet::new());
                false
            }
            Event::InitApply(object) => {
                listed.entry(kind).or_default().extend(object.metadata.name.clone());
                self.apply_event(kind, object)
            }
            Event::InitDone => {
                let names = listed.remove(&kind).unwrap_or_default();
                let is_first = self.listed.send_if_modified(|listed| listed.insert(kind));
                self.retain_listed(kind, &names) || is_first
            }
            Event::Apply(object) => self.apply_event(kind, object),
            Event::Delete(object) => self.remove(kind, &object),
        };
        if changed {
            self.changes.send_replace(());
            self.resync_trigger.notify();
        }
    }

    fn apply_event(&self, kind: ObjectKind, object: DynamicObject) -> bool {
        serde_json::to_value(object).is_ok_and(|object| self.insert_if_newer(kind, object))
    }

    fn insert_if_newer(&self, kind: ObjectKind, mut new: Value) -> bool {
        let Some(name) = text(&new, "/metadata/name").map(str::to_owned) else { return false };
        strip_unused_fields(kind, &mut new);
        let mut objects = self.objects();
        let old = objects.get(&(kind, name.clone()));
        if old.is_some_and(|old| revision_number(old) > revision_number(&new)) {
            return false;
        }
        let changed = old.is_none_or(|old| without_revision(old) != without_revision(&new));
        objects.insert((kind, name), Arc::new(new));
        changed
    }

    fn remove(&self, kind: ObjectKind, object: &DynamicObject) -> bool {
        let key = (kind, object.metadata.name.clone().unwrap_or_default());
        let mut objects = self.objects();
        // A new object of the same name may have been created since.
        let is_it = objects.get(&key).is_some_and(|old| text(old, "/metadata/uid") == object.metadata.uid.as_deref());
        is_it && objects.remove(&key).is_some()
    }

    /// Removes the objects of a kind that were not listed.
    fn retain_listed(&self, kind: ObjectKind, names: &BTreeSet<String>) -> bool {
        let mut objects = self.objects();
        let before = objects.len();
        objects.retain(|(of, name), _| *of != kind || names.contains(name));
        objects.len() != before
    }
}

pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn revision_number(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Removes fields that are not read, and adds the kind, which lists omit.
fn strip_unused_fields(kind: ObjectKind, object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        let resource = kind.api_resource();
        object.insert("apiVersion".to_owned(), resource.api_version.into());
        object.insert("kind".to_owned(), resource.kind.into());
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if !kind.has_status()
        && let Some(object) = object.as_object_mut()
    {
        object.remove("status");
    }
}

fn without_revision(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    object
}
