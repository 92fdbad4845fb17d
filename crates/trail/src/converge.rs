//! One span per object and generation, from the change to being ready.
//!
//! It is written once the object is ready, from what stands on the object: its trace and its parent are those of the context, it begins when the context was stamped,
//! and its id is derived from uid and generation. So no process has to live through it: after a restart or a change of leader the span is the same, and one
//! that is written twice has the same ids.
//! The runs are not its children, so that a convergence that never ends leaves no orphans.

use std::time::SystemTime;

use jiff::Timestamp;
use kube::Resource;
use opentelemetry::{
    Context,
    trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::{
    attributes,
    carrier::Found,
    relate::{counts_annotations, is_annotated},
    run::Run,
    trail::{Shared, Trail},
};

impl Trail {
    /// Says that an object is ready now. [`Trail::patch_status`] says it by itself; this is for those who write the status in another way. Only the first time
    /// for a generation counts.
    pub fn converged<K>(&self, object: &K)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        self.converged_with(object, &K::DynamicType::default());
    }

    /// The same for a kind that is only known at run time.
    pub fn converged_with<K: Resource>(&self, object: &K, kind: &K::DynamicType) {
        let Some(shared) = self.shared() else { return };
        let Some(uid) = object.meta().uid.as_deref() else { return };
        let generation = object.meta().generation.unwrap_or(1);
        let current = Context::current();
        let is_old = |found: &Found| {
            let is_deployment = counts_annotations(&K::group(kind), &K::kind(kind));
            found.is_outdated(object.meta().generation) && !(is_deployment && is_annotated(object.meta(), found))
        };
        let found = self.context_of(object).filter(|found| !is_old(found));
        let sampled = match &found {
            Some(found) => found.context.is_sampled(),
            None => current.span().is_recording(),
        };
        if !sampled || !shared.objects.converges(uid, generation) {
            return;
        }
        let span = span(shared, object, kind, uid, generation, found.as_ref(), current.span().span_context());
        // What became ready is worth a record, whatever becomes of the run that saw it.
        shared.hold.record(span, None);
        if let Some(run) = current.get::<Run>() {
            run.note_change();
        }
    }
}

fn span<K: Resource>(
    shared: &Shared,
    object: &K,
    kind: &K::DynamicType,
    uid: &str,
    generation: i64,
    found: Option<&Found>,
    current: &SpanContext,
) -> SpanData {
    let end = shared.options.clock.now();
    let start = start(shared, object, uid, generation, found).map_or(end, |start| SystemTime::from(start).min(end));
    let mut links = SpanLinks::default();
    let previous = found.and_then(|found| found.previous.clone());
    // Without a context there is a trace of its own, which leads to the run.
    let link = if found.is_some() { previous } else { Some(current.clone()).filter(SpanContext::is_valid) };
    links.links.extend(link.map(Link::with_context));
    SpanData {
        span_context: identity(uid, generation, found),
        parent_span_id: found.map_or(SpanId::INVALID, |found| found.context.span_id()),
        parent_span_is_remote: found.is_some(),
        span_kind: SpanKind::Internal,
        name: format!("converge {}", K::kind(kind)).into(),
        start_time: start,
        end_time: end,
        attributes: attributes::object(object, kind),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status: Status::Unset,
        instrumentation_scope: shared.scope.clone(),
    }
}

/// The ids are the same whoever writes the span.
fn identity(uid: &str, generation: i64, found: Option<&Found>) -> SpanContext {
    let seed = format!("{uid}/{generation}");
    // Zero means that there is none.
    let span = SpanId::from(xxh3_64(seed.as_bytes()).max(1));
    let (trace, state) = match found {
        Some(found) => (found.context.trace_id(), found.context.trace_state().clone()),
        None => (TraceId::from(xxh3_128(seed.as_bytes()).max(1)), TraceState::default()),
    };
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, state)
}

/// When the change was made: as the stamp says, or when the object was created, or when this process saw the generation first. The API server tells the second of a creation only; who saw
/// the object within that second knows better.
fn start<K: Resource>(
    shared: &Shared,
    object: &K,
    uid: &str,
    generation: i64,
    found: Option<&Found>,
) -> Option<Timestamp> {
    let stamped = found.and_then(|found| found.changed);
    let seen = || shared.objects.seen_since(uid, generation);
    let in_that_second = |created: Timestamp, seen: Timestamp| created.as_second() == seen.as_second();
    let created = || {
        let created = object.meta().creation_timestamp.as_ref().filter(|_| generation == 1)?.0;
        Some(seen().filter(|seen| in_that_second(created, *seen)).unwrap_or(created))
    };
    stamped.or_else(created).or_else(seen)
}
