//! Events, as `kubectl describe` and `kubectl get events` show them.
//!
//! They follow client-go's recorder: a repeated Event increases a count instead of being written again, and
//! Events about one object are rate-limited. *Guaranteed*: Events of one component are written in the order in
//! which they occurred. Nothing waits for an Event or depends on one: if the API server is slow, some are
//! dropped.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::error::ClusterError;

/// The most Events that wait to be written.
const MAX_QUEUED_EVENTS: usize = 1024;
/// The API server's limit for a note.
const MAX_NOTE_BYTES: usize = 1024;
/// client-go's ten minutes, in which similar Events are counted as one.
const SIMILARITY_WINDOW: Duration = Duration::from_secs(600);
/// The burst of Events about one object and the rate after it: client-go's values.
const MAX_EVENT_BURST: f64 = 25.0;
const TOKEN_REFILL_INTERVAL: Duration = Duration::from_secs(300);

/// Records the Events of one component. Clones share their state.
#[derive(Clone, Debug)]
pub struct EventRecorder(mpsc::Sender<RecordedEvent>);

/// An Event with its time.
#[derive(Debug)]
struct RecordedEvent {
    at: Timestamp,
    what: EventContent,
}

/// Events with the same key are counted as one.
#[derive(Clone, Debug, PartialEq)]
struct EventContent {
    about: ObjectReference,
    kind: &'static str,
    reason: String,
    note: String,
}

impl EventRecorder {
    /// Creates a recorder for this component (`deployment-controller`, `kubelet`), with the node of a node
    /// component. Must be called within a runtime.
    pub fn new(client: Client, component: &str, node: Option<&str>) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_EVENTS);
        let writer = EventWriter {
            client,
            component: component.to_owned(),
            host: node.map(str::to_owned),
            written: HashMap::new(),
            budgets: HashMap::new(),
            swept: Instant::now(),
        };
        tokio::spawn(writer.write_all(receiver));
        Self(sender)
    }

    /// Records an Event of type Normal.
    pub fn record_normal(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.record(about, "Normal", reason, note.into());
    }

    pub fn record_warning(&self, about: ObjectReference, reason: &str, note: impl Into<String>) {
        self.record(about, "Warning", reason, note.into());
    }

    fn record(&self, mut about: ObjectReference, kind: &'static str, reason: &str, mut note: String) {
        note.truncate(note.floor_char_boundary(MAX_NOTE_BYTES));
        // Without the version, later Events about the same object are still similar.
        about.resource_version = None;
        let what = EventContent { about, kind, reason: reason.to_owned(), note };
        if self.0.try_send(RecordedEvent { at: Timestamp::now(), what }).is_err() {
            tracing::debug!(reason, "event dropped: the queue of events is full");
        }
    }
}

struct WrittenEvent {
    what: EventContent,
    name: String,
    count: i32,
    at: Instant,
}

struct EventWriter {
    client: Client,
    component: String,
    host: Option<String>,
    /// By the uid of the object.
    written: HashMap<String, Vec<WrittenEvent>>,
    budgets: HashMap<String, EventTokenBucket>,
    /// The time of the last removal of old entries.
    swept: Instant,
}

impl EventWriter {
    /// Writes Events until all recorders are dropped.
    async fn write_all(mut self, mut said: mpsc::Receiver<RecordedEvent>) {
        while let Some(RecordedEvent { at, what }) = said.recv().await {
            self.forget_old();
            let uid = what.about.uid.clone().unwrap_or_default();
            if !self.budgets.entry(uid).or_insert_with(EventTokenBucket::new).take(Instant::now()) {
                tracing::debug!(reason = what.reason, "event dropped: too many events about the object");
                continue;
            }
            let reason = what.reason.clone();
            if let Err(error) = self.write_or_count(at, what).await {
                tracing::debug!(reason, %error, "failed to write an event");
            }
        }
    }

    async fn write_or_count(&mut self, at: Timestamp, what: EventContent) -> Result<(), ClusterError> {
        let namespace = what.about.namespace.clone().filter(|namespace| !namespace.is_empty());
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let api = Api::<Event>::namespaced(self.client.clone(), &namespace);
        let uid = what.about.uid.clone().unwrap_or_default();
        let written = self.written.entry(uid).or_default();
        if let Some(before) = written.iter_mut().find(|before| before.what == what) {
            before.count += 1;
            before.at = Instant::now();
            let patch = Patch::Merge(json!({ "count": before.count, "lastTimestamp": Time(at) }));
            match api.patch(&before.name, &PatchParams::default(), &patch).await.map_err(ClusterError::from) {
                Err(error) if error.is_not_found() => {}
                other => return other.map(drop),
            }
            written.retain(|before| before.what != what);
        }
        let event = new_event(&self.component, self.host.as_deref(), &namespace, at, &what);
        let name = event.name_any();
        api.create(&PostParams::default(), &event).await?;
        written.push(WrittenEvent { what, name, count: 1, at: Instant::now() });
        Ok(())
    }

    fn forget_old(&mut self) {
        if self.swept.elapsed() < SIMILARITY_WINDOW / 10 {
            return;
        }
        self.swept = Instant::now();
        self.written.retain(|_, written| {
            written.retain(|written| written.at.elapsed() < SIMILARITY_WINDOW);
            !written.is_empty()
        });
        self.budgets.retain(|_, budget| !budget.is_full(Instant::now()));
    }
}

fn new_event(component: &str, host: Option<&str>, namespace: &str, at: Timestamp, what: &EventContent) -> Event {
    let name = what.about.name.as_deref().unwrap_or(component);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{:x}", at.as_nanosecond())),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: what.about.clone(),
        type_: Some(what.kind.to_owned()),
        reason: Some(what.reason.clone()),
        message: Some(what.note.clone()),
        source: Some(EventSource { component: Some(component.to_owned()), host: host.map(str::to_owned) }),
        reporting_component: Some(component.to_owned()),
        reporting_instance: Some(host.unwrap_or_default().to_owned()),
        first_timestamp: Some(Time(at)),
        last_timestamp: Some(Time(at)),
        count: Some(1),
        ..Event::default()
    }
}

/// The remaining rate budget of an object.
#[derive(Debug)]
struct EventTokenBucket {
    left: f64,
    at: Instant,
}

impl EventTokenBucket {
    fn new() -> Self {
        Self { left: MAX_EVENT_BURST, at: Instant::now() }
    }

    fn take(&mut self, now: Instant) -> bool {
        (self.left, self.at) = (self.now(now), now);
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }

    fn is_full(&self, now: Instant) -> bool {
        self.now(now) >= MAX_EVENT_BURST
    }

    fn now(&self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.at);
        (self.left + passed.as_secs_f64() / TOKEN_REFILL_INTERVAL.as_secs_f64()).min(MAX_EVENT_BURST)
    }
}

#[cfg(test)]
mod tests;
