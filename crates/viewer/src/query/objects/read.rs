//! From spans to objects.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use kubewake_otlp::view::{AnyValue, lossy};

use super::{Key, Known};
use crate::store::{Object, SpanRef, Trace, TraceId, cut};

/// How far up the run that a write belongs to is looked for.
const STEPS: usize = 32;
/// Words that are shown of a failure.
const MESSAGE: usize = 1 << 10;

/// What a span says of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Converge,
    Reconcile,
    Write,
    Other,
}

impl Verb {
    fn of(span: &SpanRef<'_>) -> Self {
        match span.name().split(' ').next() {
            Some("converge") => Self::Converge,
            Some("reconcile" | "Reconcile") => Self::Reconcile,
            Some("apply" | "create") => Self::Write,
            _ => Self::Other,
        }
    }
}

/// Objects while traces are read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    found: Vec<(Key, Known)>,
    by_key: HashMap<Key, usize>,
    /// By where an object is in memory: the store keeps each once, and this takes no look at its name.
    by_place: HashMap<usize, usize>,
}

impl Reading {
    pub(super) fn finish(self) -> BTreeMap<Key, Known> {
        self.found.into_iter().collect()
    }

    pub(super) fn read(&mut self, trace: &Trace) {
        if !trace.chunks.iter().any(|chunk| !chunk.objects().is_empty()) {
            return;
        }
        let mut by_id: Option<HashMap<u64, SpanRef<'_>>> = None;
        for span in trace.spans() {
            let Some(object) = span.object() else { continue };
            let verb = Verb::of(&span);
            self.note(trace.id, span, object, verb);
            if verb == Verb::Write {
                let by_id = by_id.get_or_insert_with(|| trace.spans().map(|span| (span.entry.id, span)).collect());
                if let Some(owner) = run_above(span, by_id) {
                    self.relate(owner, object);
                }
            }
        }
    }

    /// Where an object is noted.
    fn place(&mut self, object: &Arc<Object>) -> usize {
        let Self { found, by_key, by_place } = self;
        *by_place.entry(Arc::as_ptr(object).addr()).or_insert_with(|| {
            let key = Key::from(&**object);
            *by_key.entry(key).or_insert_with_key(|key| {
                found.push((key.clone(), Known::default()));
                found.len() - 1
            })
        })
    }

    fn relate(&mut self, owner: &Arc<Object>, child: &Arc<Object>) {
        let (owner, child) = (self.place(owner), self.place(child));
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

    fn note(&mut self, trace: TraceId, span: SpanRef<'_>, object: &Arc<Object>, verb: Verb) {
        let place = self.place(object);
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
            Verb::Write if is_last => known.write_failed = entry.is_error(),
            Verb::Converge | Verb::Reconcile => known.note_generation(trace, span, object, verb),
            Verb::Write | Verb::Other => {}
        }
    }
}

impl Known {
    fn note_generation(&mut self, trace: TraceId, span: SpanRef<'_>, object: &Object, verb: Verb) {
        let (view, entry) = (span.view(), span.entry);
        let number = match view.attributes().get("k8s.object.generation") {
            Some(AnyValue::Int(number)) => number,
            // Kinds without a spec have none.
            _ => 0,
        };
        let generation = self.generations.entry((object.uid.clone(), number)).or_default();
        let is_first = generation.trace.is_none() || entry.start < generation.start;
        if is_first {
            generation.start = entry.start;
        }
        if verb == Verb::Converge {
            // Written twice it is the same; of two that differ the first to become ready counts.
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
            let failure = entry.is_error().then(|| cut(&message, MESSAGE).to_owned());
            generation.last_run = Some((entry.start, failure));
        }
    }
}

/// The object of the run that a span is part of.
fn run_above<'a>(span: SpanRef<'a>, by_id: &HashMap<u64, SpanRef<'a>>) -> Option<&'a Arc<Object>> {
    let mut above = by_id.get(&span.entry.parent);
    for _ in 0..STEPS {
        let span = above?;
        if Verb::of(span) == Verb::Reconcile
            && let Some(object) = span.object()
        {
            return Some(object);
        }
        above = by_id.get(&span.entry.parent);
    }
    None
}
