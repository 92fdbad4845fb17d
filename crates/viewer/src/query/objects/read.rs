//! From spans to objects.

use std::collections::HashMap;

use kubewake_otlp::view::{AnyValue, lossy};

use super::{Key, Objects};
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

impl Objects {
    pub(super) fn read(&mut self, trace: &Trace) {
        let about = |span: &SpanRef<'_>| span.object().is_some();
        if !trace.chunks.iter().any(|chunk| !chunk.objects().is_empty()) {
            return;
        }
        let mut by_id: Option<HashMap<u64, SpanRef<'_>>> = None;
        for span in trace.spans().filter(about) {
            let Some(object) = span.object() else { continue };
            let verb = Verb::of(&span);
            self.note(trace.id, span, object, verb);
            if verb == Verb::Write {
                let by_id = by_id.get_or_insert_with(|| trace.spans().map(|span| (span.entry.id, span)).collect());
                if let Some(owner) = run_above(span, by_id) {
                    self.relate(&owner, &Key::from(&**object));
                }
            }
        }
    }

    fn note(&mut self, trace: TraceId, span: SpanRef<'_>, object: &Object, verb: Verb) {
        let (entry, known) = (span.entry, self.entry(object.into()));
        let is_last = known.last.is_none_or(|(last, _)| last <= entry.start);
        if is_last {
            known.last = Some((entry.start, trace));
        }
        for (field, said) in [(&mut known.api_version, &object.api_version), (&mut known.uid, &object.uid)] {
            if !said.is_empty() && (is_last || field.is_empty()) {
                field.clone_from(said);
            }
        }
        match verb {
            Verb::Write => known.write_failed = if is_last { entry.is_error() } else { known.write_failed },
            Verb::Converge | Verb::Reconcile => self.generation(trace, span, object, verb),
            Verb::Other => {}
        }
    }

    fn generation(&mut self, trace: TraceId, span: SpanRef<'_>, object: &Object, verb: Verb) {
        let (view, entry) = (span.view(), span.entry);
        let number = match view.attributes().get("k8s.object.generation") {
            Some(AnyValue::Int(number)) => number,
            // Kinds without a spec have none.
            _ => 0,
        };
        let known = self.entry(object.into());
        let generation = known.generations.entry((object.uid.clone(), number)).or_default();
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
fn run_above(span: SpanRef<'_>, by_id: &HashMap<u64, SpanRef<'_>>) -> Option<Key> {
    let mut above = by_id.get(&span.entry.parent);
    for _ in 0..STEPS {
        let span = above?;
        if Verb::of(span) == Verb::Reconcile
            && let Some(object) = span.object()
        {
            return Some(Key::from(&**object));
        }
        above = by_id.get(&span.entry.parent);
    }
    None
}
