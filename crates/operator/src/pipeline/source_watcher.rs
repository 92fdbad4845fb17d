//! Watches the Secrets and ConfigMaps that pipelines reference.
//!
//! Each referenced object has a watch of its own, by its name; nothing else of a namespace is ever read. The
//! [`ResyncTrigger`] is notified when one is changed, created or deleted.
//!
//! *Guaranteed*: values are in memory only while a pipeline references their object, and in no message. Values
//! that were read stay while the API server cannot be reached. The number of watches is bounded. *Not done*:
//! whether a user may reference an object is checked at admission.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, MutexGuard},
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
use kubewake_api::{ReferenceKind, ReferencedValue, ResolvedReferences, ValueReference};
use kubewake_runtime::lock::Mutex;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::runtime::{
    failure_cause::FailureCause,
    metrics::{OperatorMetrics, ReconcileStep},
    resync_trigger::ResyncTrigger,
};

#[cfg(test)]
mod tests;

/// A watch is a connection, as the client speaks HTTP/1.1, and takes some 60 KiB. This many fit into half of
/// the operator's memory limit, and no cluster has so many backends.
const MAX_WATCHED_OBJECTS: usize = 2048;
/// An API server that takes longer for one object is unwell. Its response will notify the trigger.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(5);

/// An object that pipelines reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReferencedSource {
    kind: ReferenceKind,
    namespace: String,
    name: String,
}

impl From<&ValueReference> for ReferencedSource {
    fn from(reference: &ValueReference) -> Self {
        Self { kind: reference.kind, namespace: reference.namespace.clone(), name: reference.name.clone() }
    }
}

/// The observed content of an object.
#[derive(Clone, PartialEq)]
enum SourceContent {
    /// The API server has not answered yet.
    Unknown,
    Missing,
    /// The operator may not read it, or a request failed.
    Unreadable(String),
    Present(Arc<SourceValues>),
}

#[derive(PartialEq)]
struct SourceValues {
    revision: String,
    values: BTreeMap<String, Vec<u8>>,
}

pub struct SourceWatcher {
    client: Client,
    resync_trigger: ResyncTrigger,
    metrics: Arc<OperatorMetrics>,
    watched: Mutex<BTreeMap<ReferencedSource, SourceWatch>>,
}

struct SourceWatch {
    content: watch::Receiver<SourceContent>,
    task: JoinHandle<()>,
}

impl Drop for SourceWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl SourceWatcher {
    pub fn new(client: Client, resync_trigger: ResyncTrigger, metrics: Arc<OperatorMetrics>) -> Self {
        Self { client, resync_trigger, metrics, watched: Mutex::default() }
    }

    /// Resolves references to their current values. From now on changes of these notify the trigger.
    pub async fn resolve(&self, references: &BTreeSet<ValueReference>) -> ResolvedReferences {
        let sources: BTreeSet<ReferencedSource> = references.iter().map(ReferencedSource::from).collect();
        let mut contents = BTreeMap::new();
        for source in sources {
            let content = self.wait_content(&source).await;
            contents.insert(source, content);
        }
        let found = |reference: &ValueReference| {
            let content = contents.get(&ReferencedSource::from(reference)).unwrap_or(&SourceContent::Unknown);
            (reference.clone(), find_value(content, &reference.key))
        };
        references.iter().map(found).collect()
    }

    /// Ends the watches of objects that are no longer referenced.
    pub fn retain_named(&self, named: impl FnOnce() -> BTreeSet<ReferencedSource>) {
        let mut watched = self.watched();
        // Called under the lock, when no watch can start: a pipeline is in its store before its references are
        // watched.
        let named = named();
        watched.retain(|source, _| named.contains(source));
    }

    async fn wait_content(&self, source: &ReferencedSource) -> SourceContent {
        let Some(mut content) = self.ensure_watch(source) else {
            return SourceContent::Unreadable(format!("pipelines reference more than {MAX_WATCHED_OBJECTS} objects"));
        };
        let answered =
            timeout(FIRST_READ_TIMEOUT, content.wait_for(|content| *content != SourceContent::Unknown)).await;
        match answered {
            Ok(Ok(content)) => content.clone(),
            _ => SourceContent::Unknown,
        }
    }

    fn ensure_watch(&self, source: &ReferencedSource) -> Option<watch::Receiver<SourceContent>> {
        let mut watched = self.watched();
        if let Some(known) = watched.get(source) {
            return Some(known.content.clone());
        }
        if watched.len() >= MAX_WATCHED_OBJECTS {
            return None;
        }
        let (sender, content) = watch::channel(SourceContent::Unknown);
        let hears = SourceWatchOutput {
            content: sender,
            resync_trigger: self.resync_trigger.clone(),
            metrics: Arc::clone(&self.metrics),
        };
        let task = tokio::spawn(run_watch(self.client.clone(), source.clone(), hears));
        watched.insert(source.clone(), SourceWatch { content: content.clone(), task });
        Some(content)
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<ReferencedSource, SourceWatch>> {
        self.watched.lock()
    }
}

fn find_value(content: &SourceContent, key: &str) -> ReferencedValue {
    match content {
        SourceContent::Unknown => ReferencedValue::Unreadable("the API server has not answered yet".to_owned()),
        SourceContent::Missing => ReferencedValue::NoObject,
        SourceContent::Unreadable(why) => ReferencedValue::Unreadable(why.clone()),
        SourceContent::Present(there) => match there.values.get(key) {
            Some(bytes) => ReferencedValue::bytes(bytes, there.revision.clone()),
            None => ReferencedValue::NoKey,
        },
    }
}

/// Where a watch puts its results.
struct SourceWatchOutput {
    content: watch::Sender<SourceContent>,
    resync_trigger: ResyncTrigger,
    metrics: Arc<OperatorMetrics>,
}

async fn run_watch(client: Client, source: ReferencedSource, hears: SourceWatchOutput) {
    let by_name = watcher::Config::default().fields(&format!("metadata.name={}", source.name));
    match source.kind {
        ReferenceKind::Secret => {
            let api = Api::<Secret>::namespaced(client, &source.namespace);
            process_events(watcher(api, by_name).default_backoff(), secret_values, &hears).await;
        }
        ReferenceKind::ConfigMap => {
            let api = Api::<ConfigMap>::namespaced(client, &source.namespace);
            process_events(watcher(api, by_name).default_backoff(), config_map_values, &hears).await;
        }
    }
}

fn secret_values(secret: Secret) -> SourceValues {
    let revision = secret.resource_version().unwrap_or_default();
    let values = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
    SourceValues { revision, values }
}

fn config_map_values(map: ConfigMap) -> SourceValues {
    let revision = map.resource_version().unwrap_or_default();
    let text = map.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes()));
    let binary = map.binary_data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
    SourceValues { revision, values: text.chain(binary).collect() }
}

async fn process_events<K>(
    events: impl Stream<Item = watcher::Result<Event<K>>>,
    read: impl Fn(K) -> SourceValues,
    SourceWatchOutput { content, resync_trigger, metrics }: &SourceWatchOutput,
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
                SourceContent::Present(Arc::new(read(object)))
            }
            Ok(Event::InitDone) if listed => continue,
            Ok(Event::InitDone | Event::Delete(_)) => SourceContent::Missing,
            Ok(Event::Apply(object)) => SourceContent::Present(Arc::new(read(object))),
            Err(error) => {
                metrics.count_failure(ReconcileStep::Watch, FailureCause::from(&error));
                // Values that were read stay while the API server is away.
                if matches!(*content.borrow(), SourceContent::Present(_) | SourceContent::Missing) {
                    continue;
                }
                SourceContent::Unreadable(unreadable_reason(&error))
            }
        };
        if content.send_if_modified(|old| update_content(old, new)) {
            resync_trigger.notify();
        }
    }
}

/// Stores changed content. If the values are the same, the old revision stays: a new label must change nothing.
fn update_content(old: &mut SourceContent, new: SourceContent) -> bool {
    let same = match (&*old, &new) {
        (SourceContent::Present(old), SourceContent::Present(new)) => old.values == new.values,
        (old, new) => old == new,
    };
    if !same {
        *old = new;
    }
    !same
}

/// Why an object cannot be read, without any of its content.
fn unreadable_reason(error: &watcher::Error) -> String {
    let source = match error {
        watcher::Error::InitialListFailed(source) | watcher::Error::WatchStartFailed(source) => Some(source),
        watcher::Error::WatchFailed(source) => Some(source),
        _ => None,
    };
    match source {
        Some(kube::Error::Api(status)) if status.code == 403 => "the operator is not allowed to read it".to_owned(),
        Some(kube::Error::Api(status)) => format!("the API server returned {} {}", status.code, status.reason),
        _ => "the API server cannot be reached".to_owned(),
    }
}
