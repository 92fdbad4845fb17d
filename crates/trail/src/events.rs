//! Kubernetes Events that carry the context of the span in which they are published, so that an event leads to its trace.
//!
//! Like kube's `Recorder`: an event that is published again within some minutes counts up the first one, which then carries the newest context, also where its note is
//! another: an API server lets nobody change that. Whose notes tell something new publishes [by note](Events::by_note).
//! Publishing an event is no change: a run that does nothing else is dropped.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::{core::v1::ObjectReference, events::v1::Event as Published},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    runtime::events::{Event, EventType, Reporter},
};
use opentelemetry::{
    Context,
    trace::{SpanContext, TraceContextExt as _},
};
use serde_json::json;
use xxhash_rust::xxh3::xxh3_64;

use crate::{carrier::Annotations, context, trail::Trail};

/// The annotation with the id of the trace, to be read by people.
pub const TRACE_ID: &str = "trail.kubewake.io/trace-id";
/// As long as kube's and client-go's recorders join events.
const JOINED: Duration = Duration::from_secs(360);
/// As many events that differ in their notes alone as client-go's recorder publishes.
const MAX_NOTES: usize = 10;
/// Different events in that time; the oldest are not joined any more.
const MAX_KNOWN: usize = 4096;
/// The API server takes no more.
const MAX_NOTE: usize = 1024;

/// Publishes events. A clone is the same one.
#[derive(Clone)]
pub struct Events {
    trail: Trail,
    client: Client,
    reporter: Reporter,
    by_note: bool,
    known: Arc<Mutex<HashMap<u64, Known>>>,
}

#[derive(Clone, Debug)]
struct Known {
    name: String,
    /// Those that it differs from by its note have the same.
    kind: u64,
    count: i32,
    last: Timestamp,
}

impl Trail {
    /// Publishes events in the name of a controller.
    pub fn events(&self, client: Client, reporter: impl Into<Reporter>) -> Events {
        Events { trail: self.clone(), client, reporter: reporter.into(), by_note: false, known: Arc::default() }
    }
}

impl Events {
    /// The same, but events that differ in their notes alone are events of their own, up to ten in the time in which they are joined; more of them count up the last one.
    #[must_use]
    pub fn by_note(self) -> Self {
        Self { by_note: true, ..self }
    }

    /// Publishes an event about an object.
    ///
    /// # Errors
    /// What the API server answers.
    pub async fn publish(&self, event: &Event, about: &ObjectReference) -> kube::Result<()> {
        let now = self.now();
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let events = Api::<Published>::namespaced(self.client.clone(), namespace);
        let kind = self.kind(event, about);
        let key = self.key(kind, event.note.as_deref(), now);
        let annotations = self.annotations();
        let known = match self.again(key, now) {
            Some(known) => {
                let series = json!({"count": known.count, "lastObservedTime": MicroTime(now)});
                let patch = json!({"metadata": {"annotations": annotations}, "series": series});
                match events.patch(&known.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                    Err(kube::Error::Api(status)) if status.code == 404 => None,
                    other => other.map(|_| Some(known))?,
                }
            }
            None => None,
        };
        let known = match known {
            Some(known) => known,
            None => {
                let new = self.new_event(event, about, namespace, annotations, now);
                let name = new.metadata.name.clone().unwrap_or_default();
                events.create(&PostParams::default(), &new).await?;
                Known { name, kind, count: 1, last: now }
            }
        };
        self.remember(key, known);
        Ok(())
    }

    fn new_event(
        &self,
        event: &Event,
        about: &ObjectReference,
        namespace: &str,
        annotations: Annotations,
        now: Timestamp,
    ) -> Published {
        let object = about.name.as_deref().unwrap_or(&self.reporter.controller);
        let instance = self.reporter.instance.as_ref().unwrap_or(&self.reporter.controller);
        Published {
            metadata: ObjectMeta {
                name: Some(format!("{object}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace.to_owned()),
                annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
                ..ObjectMeta::default()
            },
            action: Some(event.action.clone()),
            reason: Some(event.reason.clone()),
            note: event.note.as_ref().map(|note| note.chars().take(MAX_NOTE).collect()),
            type_: Some(type_of(event).to_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(about.clone()),
            related: event.secondary.clone(),
            reporting_controller: Some(self.reporter.controller.clone()),
            reporting_instance: Some(instance.clone()),
            ..Published::default()
        }
    }

    /// The context of the current span.
    fn annotations(&self) -> Annotations {
        let Some(shared) = self.trail.shared() else { return Annotations::new() };
        let span = Context::map_current(|current| current.span().span_context().clone());
        if !SpanContext::is_valid(&span) {
            return Annotations::new();
        }
        let parent = (shared.options.keys.traceparent.clone(), context::traceparent(&span));
        [parent, (TRACE_ID.to_owned(), span.trace_id().to_string())].into()
    }

    fn again(&self, key: u64, now: Timestamp) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&key).map(|known| Known { count: known.count.saturating_add(1), last: now, ..known.clone() })
    }

    fn remember(&self, key: u64, new: Known) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN
            && let Some(oldest) = known.iter().min_by_key(|(_, known)| known.last).map(|(key, _)| *key)
        {
            known.remove(&oldest);
        }
        known.insert(key, new);
    }

    /// What an event with this note counts up: those that are the same, or the last of its kind where there are too many of that.
    fn key(&self, kind: u64, note: Option<&str>, now: Timestamp) -> u64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| now.duration_since(known.last).unsigned_abs() < JOINED);
        let own = if self.by_note { xxh3_64(format!("{kind} {note:?}").as_bytes()) } else { kind };
        let alike = || known.iter().filter(|(_, known)| known.kind == kind);
        if known.contains_key(&own) || alike().count() < MAX_NOTES {
            return own;
        }
        alike().max_by_key(|(_, known)| known.last).map_or(own, |(key, _)| *key)
    }

    /// Events of one kind differ in their notes.
    fn kind(&self, event: &Event, about: &ObjectReference) -> u64 {
        let related = event.secondary.as_ref().and_then(|related| related.uid.as_deref());
        let parts =
            (about.uid.as_deref(), about.name.as_deref(), type_of(event), &event.reason, &event.action, related);
        xxh3_64(format!("{parts:?}").as_bytes())
    }

    fn now(&self) -> Timestamp {
        self.trail.shared().map_or_else(Timestamp::now, |shared| shared.options.clock.timestamp())
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Events").field("reporter", &self.reporter).finish_non_exhaustive()
    }
}

fn type_of(event: &Event) -> &'static str {
    match event.type_ {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    }
}
