//! The converge span: one span per object and generation, from the change until the object is ready.
//!
//! It is written once the object is ready, from the object alone: its trace and its parent are those of the
//! stamped context, it begins at the time of the stamp, and its id is derived from uid and generation. So no
//! process has to stay alive meanwhile: after a restart or a change of leader the span is the same, and a span
//! that is written twice has the same ids. The runs are not its children, so that a convergence that never ends
//! leaves no orphans.

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
    carrier::{ObjectContext, counts_annotations},
    lineage::is_only_annotated,
    run::Run,
    trail::{Trail, TrailState},
};

impl Trail {
    /// Records that an object is ready now. [`Trail::patch_status`] does this by itself; call it where the
    /// status is written in another way. Only the first call for a generation counts.
    pub fn mark_converged<K>(&self, object: &K)
    where
        K: Resource,
        K::DynamicType: Default,
    {
        self.mark_converged_with(object, &K::DynamicType::default());
    }

    /// [`Self::mark_converged`] for a kind that is only known at run time.
    pub fn mark_converged_with<K: Resource>(&self, object: &K, kind: &K::DynamicType) {
        let Some(shared) = self.shared() else { return };
        let Some(uid) = object.meta().uid.as_deref() else { return };
        let generation = object.meta().generation.unwrap_or(1);
        let current = Context::current();
        let is_old = |found: &ObjectContext| {
            let is_deployment = counts_annotations(&K::group(kind), &K::kind(kind));
            found.is_outdated(object.meta().generation) && !(is_deployment && is_only_annotated(object.meta(), found))
        };
        let found = self.object_context(object).filter(|found| !is_old(found));
        let sampled = match &found {
            Some(found) => found.context.is_sampled(),
            None => current.span().is_recording(),
        };
        if !sampled || !shared.tracked_objects.mark_converged(uid, generation) {
            return;
        }
        let span = converge_span(shared, object, kind, uid, generation, found.as_ref(), current.span().span_context());
        // The converge span is kept even if the run that saw it is dropped.
        shared.processor.record(span, None);
        if let Some(run) = current.get::<Run>() {
            run.note_change();
        }
    }
}

fn converge_span<K: Resource>(
    shared: &TrailState,
    object: &K,
    kind: &K::DynamicType,
    uid: &str,
    generation: i64,
    found: Option<&ObjectContext>,
    current: &SpanContext,
) -> SpanData {
    let end = shared.options.clock.now();
    let start =
        convergence_start(shared, object, uid, generation, found).map_or(end, |start| SystemTime::from(start).min(end));
    let mut links = SpanLinks::default();
    let previous = found.and_then(|found| found.previous.clone());
    // Without a context the span is in a trace of its own, linked to the run.
    let link = if found.is_some() { previous } else { Some(current.clone()).filter(SpanContext::is_valid) };
    links.links.extend(link.map(Link::with_context));
    SpanData {
        span_context: converge_span_context(uid, generation, found),
        parent_span_id: found.map_or(SpanId::INVALID, |found| found.context.span_id()),
        parent_span_is_remote: found.is_some(),
        span_kind: SpanKind::Internal,
        name: format!("converge {}", K::kind(kind)).into(),
        start_time: start,
        end_time: end,
        attributes: attributes::object_attributes(object, kind),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links,
        status: Status::Unset,
        instrumentation_scope: shared.scope.clone(),
    }
}

/// The ids of the span, derived so that every process computes the same ones.
fn converge_span_context(uid: &str, generation: i64, found: Option<&ObjectContext>) -> SpanContext {
    let seed = format!("{uid}/{generation}");
    // Zero is the invalid id.
    let span = SpanId::from(xxh3_64(seed.as_bytes()).max(1));
    let (trace, state) = match found {
        Some(found) => (found.context.trace_id(), found.context.trace_state().clone()),
        None => (TraceId::from(xxh3_128(seed.as_bytes()).max(1)), TraceState::default()),
    };
    SpanContext::new(trace, span, TraceFlags::SAMPLED, false, state)
}

/// The time of the change: the time of the stamp, else the creation of the object, else the time when this
/// process first saw the generation. `creationTimestamp` has whole seconds; if this process saw the object
/// within that second, its own time is more precise.
fn convergence_start<K: Resource>(
    shared: &TrailState,
    object: &K,
    uid: &str,
    generation: i64,
    found: Option<&ObjectContext>,
) -> Option<Timestamp> {
    let stamped = found.and_then(|found| found.stamped_at);
    let seen = || shared.tracked_objects.first_seen(uid, generation);
    let in_that_second = |created: Timestamp, seen: Timestamp| created.as_second() == seen.as_second();
    let created = || {
        let created = object.meta().creation_timestamp.as_ref().filter(|_| generation == 1)?.0;
        Some(seen().filter(|seen| in_that_second(created, *seen)).unwrap_or(created))
    };
    stamped.or_else(created).or_else(seen)
}
