//! Kubernetes Events that carry the context of the span in which they are published, so that an Event leads to
//! its trace.
//!
//! Like kube's `Recorder`, a repeated Event within some minutes increases the count of the first one, which
//! then carries the newest context. Its note stays the first one, because an API server lets nobody change it.
//! A controller whose notes differ in content uses [`EventPublisher::distinct_by_note`]. Publishing an Event
//! does not count as a change: a run that does nothing else is dropped.

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

/// The annotation with the trace id, for people to read.
pub const TRACE_ID_ANNOTATION: &str = "trail.kubewake.io/trace-id";
/// The same window as in kube's and client-go's recorders.
const AGGREGATION_WINDOW: Duration = Duration::from_secs(360);
/// Events that differ only in their notes, in one window; the same number as in client-go's recorder.
const MAX_NOTES_PER_EVENT: usize = 10;
/// Bound of the table of recent Events; the oldest are evicted.
const MAX_KNOWN_EVENTS: usize = 4096;
/// The limit of the API server.
const MAX_NOTE_CHARS: usize = 1024;

/// Publishes Events. Clones share their state.
#[derive(Clone)]
pub struct EventPublisher {
    trail: Trail,
    client: Client,
    reporter: Reporter,
    distinct_by_note: bool,
    known: Arc<Mutex<HashMap<u64, KnownEvent>>>,
}

#[derive(Clone, Debug)]
struct KnownEvent {
    name: String,
    /// A hash without the note: equal for Events that differ only in their notes.
    event_hash: u64,
    count: i32,
    last: Timestamp,
}

impl Trail {
    /// Creates a publisher of Events that are reported by a controller.
    pub fn events(&self, client: Client, reporter: impl Into<Reporter>) -> EventPublisher {
        EventPublisher {
            trail: self.clone(),
            client,
            reporter: reporter.into(),
            distinct_by_note: false,
            known: Arc::default(),
        }
    }
}

impl EventPublisher {
    /// Publishes Events that differ only in their notes as separate Events, up to ten per window; further ones
    /// increase the count of the last one.
    #[must_use]
    pub fn distinct_by_note(self) -> Self {
        Self { distinct_by_note: true, ..self }
    }

    /// Publishes an Event about an object.
    ///
    /// # Errors
    /// The error of the API server.
    pub async fn publish(&self, event: &Event, about: &ObjectReference) -> kube::Result<()> {
        let now = self.now();
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let events = Api::<Published>::namespaced(self.client.clone(), namespace);
        let kind = self.event_hash(event, about);
        let key = self.aggregation_key(kind, event.note.as_deref(), now);
        let annotations = self.context_annotations();
        let known = match self.recent_event(key, now) {
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
                KnownEvent { name, event_hash: kind, count: 1, last: now }
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
            note: event.note.as_ref().map(|note| note.chars().take(MAX_NOTE_CHARS).collect()),
            type_: Some(event_type(event).to_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(about.clone()),
            related: event.secondary.clone(),
            reporting_controller: Some(self.reporter.controller.clone()),
            reporting_instance: Some(instance.clone()),
            ..Published::default()
        }
    }

    /// Annotations with the context of the current span.
    fn context_annotations(&self) -> Annotations {
        let Some(shared) = self.trail.shared() else { return Annotations::new() };
        let span = Context::map_current(|current| current.span().span_context().clone());
        if !SpanContext::is_valid(&span) {
            return Annotations::new();
        }
        let parent = (shared.options.keys.traceparent.clone(), context::traceparent(&span));
        [parent, (TRACE_ID_ANNOTATION.to_owned(), span.trace_id().to_string())].into()
    }

    fn recent_event(&self, key: u64, now: Timestamp) -> Option<KnownEvent> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&key).map(|known| KnownEvent { count: known.count.saturating_add(1), last: now, ..known.clone() })
    }

    fn remember(&self, key: u64, new: KnownEvent) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_KNOWN_EVENTS
            && let Some(oldest) = known.iter().min_by_key(|(_, known)| known.last).map(|(key, _)| *key)
        {
            known.remove(&oldest);
        }
        known.insert(key, new);
    }

    /// The key of the Event whose count this one increases: the same Event, or the last one that differs only
    /// in its note where there are too many of these.
    fn aggregation_key(&self, kind: u64, note: Option<&str>, now: Timestamp) -> u64 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| now.duration_since(known.last).unsigned_abs() < AGGREGATION_WINDOW);
        let own = if self.distinct_by_note { xxh3_64(format!("{kind} {note:?}").as_bytes()) } else { kind };
        let alike = || known.iter().filter(|(_, known)| known.event_hash == kind);
        if known.contains_key(&own) || alike().count() < MAX_NOTES_PER_EVENT {
            return own;
        }
        alike().max_by_key(|(_, known)| known.last).map_or(own, |(key, _)| *key)
    }

    /// A hash of everything but the note.
    fn event_hash(&self, event: &Event, about: &ObjectReference) -> u64 {
        let related = event.secondary.as_ref().and_then(|related| related.uid.as_deref());
        let parts =
            (about.uid.as_deref(), about.name.as_deref(), event_type(event), &event.reason, &event.action, related);
        xxh3_64(format!("{parts:?}").as_bytes())
    }

    fn now(&self) -> Timestamp {
        self.trail.shared().map_or_else(Timestamp::now, |shared| shared.options.clock.timestamp())
    }
}

impl std::fmt::Debug for EventPublisher {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Events").field("reporter", &self.reporter).finish_non_exhaustive()
    }
}

fn event_type(event: &Event) -> &'static str {
    match event.type_ {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    }
}
