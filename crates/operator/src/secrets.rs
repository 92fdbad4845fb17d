//! Secrets and ConfigMaps that pipelines name, watched one by one.
//!
//! Each object that is named has a watch of its own, by its name; nothing else of a namespace is ever read. The bell rings when one changes, comes or goes.
//!
//! *Guaranteed*: values are in memory only while a pipeline names their object, and in no message. What was read once stays while the API server cannot be reached. The number of watches is
//! bounded. *Not done*: whether somebody may name an object is asked at admission.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::{Stream, StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        watcher::{self, Event, watcher},
    },
};
use kubewake_api::{Found, Reference, ReferenceKind, Resolved};
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::{
    bell::Bell,
    cause::Cause,
    metrics::{Metrics, Step},
};

#[cfg(test)]
mod tests;

/// A watch is a connection, as the client speaks HTTP/1.1, and takes some 60 KiB: these fit into half of what the operator may use, and no cluster has so many backends.
const MAX_OBJECTS: usize = 2048;
/// An API server that needs longer for one object is not well. The bell rings when it has answered.
const PATIENCE: Duration = Duration::from_secs(5);

/// An object that pipelines name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    kind: ReferenceKind,
    namespace: String,
    name: String,
}

impl From<&Reference> for Source {
    fn from(reference: &Reference) -> Self {
        Self { kind: reference.kind, namespace: reference.namespace.clone(), name: reference.name.clone() }
    }
}

/// What is known of an object.
#[derive(Clone, PartialEq)]
enum Content {
    /// The API server has not answered yet.
    Unknown,
    /// There is none.
    Missing,
    /// It may not be read, or cannot be.
    Unreadable(String),
    There(Arc<There>),
}

#[derive(PartialEq)]
struct There {
    revision: String,
    values: BTreeMap<String, Vec<u8>>,
}

/// Watches what pipelines name.
pub struct Sources {
    client: Client,
    bell: Bell,
    metrics: Arc<Metrics>,
    watched: Mutex<BTreeMap<Source, Watched>>,
}

struct Watched {
    content: watch::Receiver<Content>,
    task: JoinHandle<()>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sources {
    /// Watches nothing yet.
    pub fn new(client: Client, bell: Bell, metrics: Arc<Metrics>) -> Self {
        Self { client, bell, metrics, watched: Mutex::default() }
    }

    /// What stands at these references now. From now on the bell rings when that changes.
    pub async fn resolve(&self, references: &BTreeSet<Reference>) -> Resolved {
        let sources: BTreeSet<Source> = references.iter().map(Source::from).collect();
        let mut contents = BTreeMap::new();
        for source in sources {
            let content = self.content(&source).await;
            contents.insert(source, content);
        }
        let found = |reference: &Reference| {
            let content = contents.get(&Source::from(reference)).unwrap_or(&Content::Unknown);
            (reference.clone(), find(content, &reference.key))
        };
        references.iter().map(found).collect()
    }

    /// Forgets everything that is not named any more.
    pub fn retain(&self, named: impl FnOnce() -> BTreeSet<Source>) {
        let mut watched = self.watched();
        // Asked while no watch can begin: a pipeline is there before what it names is watched.
        let named = named();
        watched.retain(|source, _| named.contains(source));
    }

    async fn content(&self, source: &Source) -> Content {
        let Some(mut content) = self.watch(source) else {
            return Content::Unreadable(format!("pipelines name more than {MAX_OBJECTS} objects"));
        };
        let answered = timeout(PATIENCE, content.wait_for(|content| *content != Content::Unknown)).await;
        match answered {
            Ok(Ok(content)) => content.clone(),
            _ => Content::Unknown,
        }
    }

    fn watch(&self, source: &Source) -> Option<watch::Receiver<Content>> {
        let mut watched = self.watched();
        if let Some(known) = watched.get(source) {
            return Some(known.content.clone());
        }
        if watched.len() >= MAX_OBJECTS {
            return None;
        }
        let (sender, content) = watch::channel(Content::Unknown);
        let hears = Hears { content: sender, bell: self.bell.clone(), metrics: Arc::clone(&self.metrics) };
        let task = tokio::spawn(follow(self.client.clone(), source.clone(), hears));
        watched.insert(source.clone(), Watched { content: content.clone(), task });
        Some(content)
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<Source, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn find(content: &Content, key: &str) -> Found {
    match content {
        Content::Unknown => Found::Unreadable("the API server has not answered yet".to_owned()),
        Content::Missing => Found::NoObject,
        Content::Unreadable(why) => Found::Unreadable(why.clone()),
        Content::There(there) => match there.values.get(key) {
            Some(bytes) => Found::bytes(bytes, there.revision.clone()),
            None => Found::NoKey,
        },
    }
}

/// Who is told of what a watch shows.
struct Hears {
    content: watch::Sender<Content>,
    bell: Bell,
    metrics: Arc<Metrics>,
}

async fn follow(client: Client, source: Source, hears: Hears) {
    let by_name = watcher::Config::default().fields(&format!("metadata.name={}", source.name));
    match source.kind {
        ReferenceKind::Secret => {
            let api = Api::<Secret>::namespaced(client, &source.namespace);
            observe(watcher(api, by_name).default_backoff(), of_secret, &hears).await;
        }
        ReferenceKind::ConfigMap => {
            let api = Api::<ConfigMap>::namespaced(client, &source.namespace);
            observe(watcher(api, by_name).default_backoff(), of_config_map, &hears).await;
        }
    }
}

fn of_secret(secret: Secret) -> There {
    let revision = secret.resource_version().unwrap_or_default();
    let values = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
    There { revision, values }
}

fn of_config_map(map: ConfigMap) -> There {
    let revision = map.resource_version().unwrap_or_default();
    let text = map.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()));
    let binary = map.binary_data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
    There { revision, values: text.chain(binary).collect() }
}

async fn observe<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    read: impl Fn(K) -> There,
    Hears { content, bell, metrics }: &Hears,
) {
    pin_mut!(events);
    let mut listed = false;
    while let Some(event) = events.next().await {
        let new = match event {
            Ok(Event::Init) => {
                listed = false;
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listed = true;
                Content::There(Arc::new(read(object)))
            }
            Ok(Event::InitDone) if listed => continue,
            Ok(Event::InitDone | Event::Delete(_)) => Content::Missing,
            Ok(Event::Apply(object)) => Content::There(Arc::new(read(object))),
            Err(error) => {
                metrics.failed(Step::Watch, Cause::from(&error));
                // Who was read once is not forgotten because the API server is away.
                if matches!(*content.borrow(), Content::There(_) | Content::Missing) {
                    continue;
                }
                Content::Unreadable(reason(&error))
            }
        };
        if content.send_if_modified(|old| update(old, new)) {
            bell.ring();
        }
    }
}

/// An object whose values are the same keeps its revision: a label that somebody put on it changes nothing.
fn update(old: &mut Content, new: Content) -> bool {
    let same = match (&*old, &new) {
        (Content::There(old), Content::There(new)) => old.values == new.values,
        (old, new) => old == new,
    };
    if !same {
        *old = new;
    }
    !same
}

/// Why it cannot be read, without a word of what is in it.
fn reason(error: &watcher::Error) -> String {
    let source = match error {
        watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source) => Some(source),
        watcher::Error::WatchFailed(source) => Some(source),
        _ => None,
    };
    match source {
        Some(kube::Error::Api(status)) if status.code == 403 => "the operator may not read it".to_owned(),
        Some(kube::Error::Api(status)) => format!("the API server says {} {}", status.code, status.reason),
        _ => "the API server cannot be reached".to_owned(),
    }
}
