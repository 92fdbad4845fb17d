//! What the operator made, as it is now.
//!
//! Watches of all objects with the operator's label, and the answers to its own writes, whichever is newer: a run that follows another sees what that one wrote.
//! Rings the bell when something is not as it was. Kinds that a cluster may lack come and go; nobody waits for them.
//!
//! *Guaranteed*: nothing is kept but labelled objects of the closed set of [`Kind`]s, without what nobody here reads.
//! *Assumed*: revisions of one kind are numbers that grow, as those of every API server are.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
use kubewake_trail::in_words;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    bell::Bell,
    cause::Cause,
    kind::Kind,
    metrics::{Metrics, Step},
    names::{self, Part},
};

#[cfg(test)]
mod tests;

/// What one object is found by.
pub type Key = (Kind, String);

/// What was made, as it is now.
#[derive(Debug)]
pub struct Live {
    objects: Mutex<BTreeMap<Key, Arc<Value>>>,
    /// Kinds that everybody waits for.
    awaited: BTreeSet<Kind>,
    /// Kinds that have been listed.
    listed: watch::Sender<BTreeSet<Kind>>,
    bell: Bell,
}

impl Live {
    /// Nothing yet; everybody waits for these kinds.
    pub fn new(awaited: impl IntoIterator<Item = Kind>, bell: Bell) -> Self {
        let (awaited, listed) = (awaited.into_iter().collect(), watch::Sender::default());
        Self { objects: Mutex::default(), awaited, listed, bell }
    }

    /// Follows all objects of these kinds, for ever.
    pub async fn follow(
        &self,
        kinds: impl IntoIterator<Item = Kind>,
        client: &Client,
        namespace: &str,
        metrics: &Metrics,
    ) {
        let mut events = SelectAll::new();
        for kind in kinds {
            let all = watcher::Config::default().labels(&names::made());
            let stream = watcher(kind.api(client, namespace), all).default_backoff();
            events.push(stream.map(move |event| (kind, event)).boxed());
        }
        let mut listed = BTreeMap::<Kind, BTreeSet<String>>::new();
        while let Some((kind, event)) = events.next().await {
            match event {
                Ok(event) => self.observe(kind, event, &mut listed),
                Err(error) => {
                    metrics.failed(Step::Watch, Cause::from(&error));
                    tracing::warn!(?kind, error = in_words(&error), "objects cannot be watched");
                }
            }
        }
    }

    /// Waits until everything that is awaited was listed once.
    pub async fn synced(&self) {
        // It ends only with this value itself.
        let _ = self.listed.subscribe().wait_for(|listed| listed.is_superset(&self.awaited)).await;
    }

    /// Whether everything that is awaited was listed once.
    pub fn is_synced(&self) -> bool {
        self.listed.borrow().is_superset(&self.awaited)
    }

    /// Whether objects of this kind have been listed.
    pub fn shows(&self, kind: Kind) -> bool {
        self.listed.borrow().contains(&kind)
    }

    /// The cluster has no such kind any more, nor objects of it.
    pub fn close(&self, kind: Kind) {
        self.listed.send_modify(|listed| _ = listed.remove(&kind));
        self.keep(kind, &BTreeSet::new());
    }

    /// An object as it is.
    pub fn get(&self, kind: Kind, name: &str) -> Option<Arc<Value>> {
        self.objects().get(&(kind, name.to_owned())).cloned()
    }

    /// What there is of one part.
    pub fn keys(&self, part: Part) -> Vec<Key> {
        let is_of = |object: &Value| {
            object.pointer("/metadata/labels").and_then(|all| all.get(names::PART)?.as_str()) == Some(part.as_str())
        };
        self.objects().iter().filter(|(_, object)| is_of(object)).map(|(key, _)| key.clone()).collect()
    }

    /// The API server answered a write with this.
    pub fn note(&self, kind: Kind, answer: &impl Serialize) {
        if let Ok(answer) = serde_json::to_value(answer) {
            self.put(kind, answer);
        }
    }

    /// The API server says that there is no such object.
    pub fn forget(&self, kind: Kind, name: &str) {
        self.objects().remove(&(kind, name.to_owned()));
    }

    fn observe(&self, kind: Kind, event: Event<DynamicObject>, listed: &mut BTreeMap<Kind, BTreeSet<String>>) {
        let changed = match event {
            Event::Init => {
                listed.insert(kind, BTreeSet::new());
                false
            }
            Event::InitApply(object) => {
                listed.entry(kind).or_default().extend(object.metadata.name.clone());
                self.saw(kind, object)
            }
            Event::InitDone => {
                let names = listed.remove(&kind).unwrap_or_default();
                let is_first = self.listed.send_if_modified(|listed| listed.insert(kind));
                self.keep(kind, &names) || is_first
            }
            Event::Apply(object) => self.saw(kind, object),
            Event::Delete(object) => self.remove(kind, &object),
        };
        if changed {
            self.bell.ring();
        }
    }

    fn saw(&self, kind: Kind, object: DynamicObject) -> bool {
        serde_json::to_value(object).is_ok_and(|object| self.put(kind, object))
    }

    /// Whether it is news.
    fn put(&self, kind: Kind, mut new: Value) -> bool {
        let Some(name) = text(&new, "/metadata/name").map(str::to_owned) else { return false };
        reduce(kind, &mut new);
        let mut objects = self.objects();
        let old = objects.get(&(kind, name.clone()));
        if old.is_some_and(|old| revision(old) > revision(&new)) {
            return false;
        }
        let changed = old.is_none_or(|old| without_revision(old) != without_revision(&new));
        objects.insert((kind, name), Arc::new(new));
        changed
    }

    fn remove(&self, kind: Kind, object: &DynamicObject) -> bool {
        let key = (kind, object.metadata.name.clone().unwrap_or_default());
        let mut objects = self.objects();
        // Another of the same name may have been made since.
        let is_it = objects.get(&key).is_some_and(|old| text(old, "/metadata/uid") == object.metadata.uid.as_deref());
        is_it && objects.remove(&key).is_some()
    }

    /// What is not listed is gone.
    fn keep(&self, kind: Kind, names: &BTreeSet<String>) -> bool {
        let mut objects = self.objects();
        let before = objects.len();
        objects.retain(|(of, name), _| *of != kind || names.contains(name));
        objects.len() != before
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Value>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text in an object.
pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn revision(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Leaves out what nobody here reads, and says what kind it is of: a list does not.
fn reduce(kind: Kind, object: &mut Value) {
    if let Some(object) = object.as_object_mut() {
        let resource = kind.resource();
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
