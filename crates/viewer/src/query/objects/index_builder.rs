//! Builds the index of objects from spans.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use kubewake_otlp::view::{AnyValue, lossy};

use super::{ObjectHistory, ObjectId};
use crate::store::{SpanRef, SpanSubject, StoredTrace, TraceId, truncate};

/// How many ancestors are searched for the run that a write belongs to.
const MAX_ANCESTORS: usize = 32;
/// Size of an error message that is kept.
const MAX_MESSAGE_BYTES: usize = 1 << 10;

/// What a span means for its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpanRole {
    Converge,
    Reconcile,
    Write,
    Other,
}

impl SpanRole {
    fn from_span(span: &SpanRef<'_>) -> Self {
        match span.name().split(' ').next() {
            Some("converge") => Self::Converge,
            Some("reconcile" | "Reconcile") => Self::Reconcile,
            Some("apply" | "create") => Self::Write,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ObjectIndexBuilder {
    found: Vec<(ObjectId, ObjectHistory)>,
    by_key: HashMap<ObjectId, usize>,
    /// By address: the store keeps each object once, and comparing addresses avoids hashing names.
    by_place: HashMap<usize, usize>,
}

impl ObjectIndexBuilder {
    pub(super) fn finish(self) -> BTreeMap<ObjectId, ObjectHistory> {
        self.found.into_iter().collect()
    }

    pub(super) fn add_trace(&mut self, trace: &StoredTrace) {
        if !trace.chunks.iter().any(|chunk| !chunk.objects().is_empty()) {
            return;
        }
        let mut by_id: Option<HashMap<u64, SpanRef<'_>>> = None;
        for span in trace.spans() {
            let Some(object) = span.object() else { continue };
            let verb = SpanRole::from_span(&span);
            self.record_span(trace.id, span, object, verb);
            if verb == SpanRole::Write {
                let by_id = by_id.get_or_insert_with(|| trace.spans().map(|span| (span.entry.id, span)).collect());
                if let Some(owner) = enclosing_run(span, by_id) {
                    self.record_owner(owner, object);
                }
            }
        }
    }

    /// Index of an object, which is added if it is new.
    fn object_slot(&mut self, object: &Arc<SpanSubject>) -> usize {
        let Self { found, by_key, by_place } = self;
        *by_place.entry(Arc::as_ptr(object).addr()).or_insert_with(|| {
            let key = ObjectId::from(&**object);
            *by_key.entry(key).or_insert_with_key(|key| {
                found.push((key.clone(), ObjectHistory::default()));
                found.len() - 1
            })
        })
    }

    fn record_owner(&mut self, owner: &Arc<SpanSubject>, child: &Arc<SpanSubject>) {
        let owner = self.object_slot(owner);
        let child = self.object_slot(child);
        if owner == child {
            return;
        }
        let key = |at: usize| self.found.get(at).map(|(key, _)| key.clone());
        let (Some(above), Some(below)) = (key(owner), key(child)) else { return };
        if let Some((_, known)) = self.found.get_mut(owner) {
            known.children.insert(below);
        }
        if let Some((_, known)) = self.found.get_mut(child) {
            known.parents.insert(above);
        }
    }

    fn record_span(&mut self, trace: TraceId, span: SpanRef<'_>, object: &Arc<SpanSubject>, verb: SpanRole) {
        let place = self.object_slot(object);
        let Some((_, known)) = self.found.get_mut(place) else { return };
        let entry = span.entry;
        let is_last = known.last.is_none_or(|(last, _)| last <= entry.start);
        if is_last {
            known.last = Some((entry.start, trace));
        }
        for (field, said) in [(&mut known.api_version, &object.api_version), (&mut known.uid, &object.uid)] {
            if !said.is_empty() && *field != *said && (is_last || field.is_empty()) {
                field.clone_from(said);
            }
        }
        match verb {
            SpanRole::Write if is_last => known.write_failed = entry.is_error(),
            SpanRole::Converge | SpanRole::Reconcile => known.record_generation(trace, span, object, verb),
            SpanRole::Write | SpanRole::Other => {}
        }
    }
}

impl ObjectHistory {
    fn record_generation(&mut self, trace: TraceId, span: SpanRef<'_>, object: &SpanSubject, verb: SpanRole) {
        let view = span.view();
        let entry = span.entry;
        let number = match view.attributes().get("k8s.object.generation") {
            Some(AnyValue::Int(number)) => number,
            // Kinds without a spec have no generation.
            _ => 0,
        };
        let generation = self.generations.entry((object.uid.clone(), number)).or_default();
        let is_first = generation.trace.is_none() || entry.start < generation.start;
        if is_first {
            generation.start = entry.start;
        }
        if verb == SpanRole::Converge {
            // The same span may be stored twice; of two different ones the first to converge counts.
            let sooner = generation.duration.is_none_or(|before| entry.duration() < before);
            if sooner {
                (generation.duration, generation.span) = (Some(entry.duration()), Some(entry.id));
                (generation.trace, generation.start) = (Some(trace), entry.start);
            }
            return;
        }
        if generation.duration.is_none() && is_first {
            generation.trace = Some(trace);
        }
        generation.reconciles += 1;
        generation.errors += usize::from(entry.is_error());
        if generation.last_run.as_ref().is_none_or(|(last, _)| *last <= entry.start) {
            let message = lossy(view.status().message());
            let failure = entry.is_error().then(|| truncate(&message, MAX_MESSAGE_BYTES).to_owned());
            generation.last_run = Some((entry.start, failure));
        }
    }
}

/// The object of the run that contains a span.
fn enclosing_run<'a>(span: SpanRef<'a>, by_id: &HashMap<u64, SpanRef<'a>>) -> Option<&'a Arc<SpanSubject>> {
    let mut above = by_id.get(&span.entry.parent);
    for _ in 0..MAX_ANCESTORS {
        let span = above?;
        if SpanRole::from_span(span) == SpanRole::Reconcile
            && let Some(object) = span.object()
        {
            return Some(object);
        }
        above = by_id.get(&span.entry.parent);
    }
    None
}
