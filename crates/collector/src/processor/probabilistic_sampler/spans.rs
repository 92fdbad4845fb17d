//! What a span says.

use bytes::Bytes;
use kubewake_otlp::{
    Edit, Edits, TraceState,
    probability::{Randomness, Threshold},
    view::{AnyValue, Span},
};
use memchr::memmem;

use super::{
    count::{Policy, Tally},
    decide::{Carried, Item, Mode, Sampler, Trouble, Verdict},
    hash,
};
use crate::core::Part;

/// The attribute by which a sender asks to be kept, or dropped.
const PRIORITY: &str = "sampling.priority";

/// Decides on the spans of a request, one after the other.
pub(super) struct Spans<'a> {
    sampler: &'a Sampler,
    /// Whether any span can have a priority.
    priorities: bool,
    /// Whether each begins with its trace id and has no trace state, so that its trace id is all that counts.
    plain: bool,
    /// Those that came last, if that was so for them: neighbours are often of the same trace.
    run: Option<Run>,
    tally: Tally,
}

type TraceId = [u8; 16];

/// Spans of one trace, side by side.
struct Run {
    id: TraceId,
    decision: Decision,
    spans: u64,
}

/// What became of a span, and the trace state that it gets.
struct Decision {
    verdict: Verdict,
    trace_state: Option<Bytes>,
}

impl<'a> Spans<'a> {
    pub(super) fn new(sampler: &'a Sampler, part: &Part) -> Self {
        // One search through all bytes costs less than to look at the attributes of each span.
        let priorities = part.traits.may_have(PRIORITY) && memmem::find(&part.bytes, PRIORITY.as_bytes()).is_some();
        let plain = part.traits.has_plain_ids() && !priorities;
        Self { sampler, priorities, plain, run: None, tally: Tally::default() }
    }

    /// Whether to keep a span, which is marked then.
    #[inline]
    pub(super) fn keep(&mut self, span: Span<'_>, edits: &mut Edits) -> bool {
        let Some(id) = span.leading_trace_id().filter(|_| self.plain) else {
            return self.keep_by_its_fields(span, edits);
        };
        if let Some(run) = &mut self.run
            && run.id == *id
        {
            run.spans += 1;
            return run.decision.mark(edits, Edit::first_trace_state);
        }
        self.begin_run(id).mark(edits, Edit::first_trace_state)
    }

    #[inline(never)]
    fn begin_run(&mut self, id: &TraceId) -> &Decision {
        self.end_run();
        let decision = Decision::new(self.sampler, id, &[], None);
        &self.run.insert(Run { id: *id, decision, spans: 1 }).decision
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.tally.note(run.decision.verdict, run.spans);
        }
    }

    #[inline(never)]
    fn keep_by_its_fields(&mut self, span: Span<'_>, edits: &mut Edits) -> bool {
        let found = span.to_sample();
        let priority = self.priorities.then(|| priority(span)).flatten();
        let decision = Decision::new(self.sampler, found.trace_id, found.trace_state, priority);
        self.tally.note(decision.verdict, 1);
        decision.mark(edits, Edit::trace_state)
    }

    /// What was decided on all of them.
    pub(super) fn finish(mut self) -> Tally {
        self.end_run();
        self.tally
    }
}

impl Decision {
    fn new(sampler: &Sampler, trace_id: &[u8], trace_state: &[u8], priority: Option<Threshold>) -> Self {
        let state = TraceState::parse(trace_state);
        let item = item(sampler.mode(), trace_id, state.as_ref().ok());
        let verdict = sampler.decide(item, priority);
        let written = verdict.mark.zip(state.ok()).map(|(mark, state)| {
            let mut text = Vec::with_capacity(trace_state.len() + 48);
            state.write(Some(mark.threshold), mark.new_randomness, &mut text);
            Bytes::from(text)
        });
        Self { verdict, trace_state: written }
    }

    #[inline]
    fn mark(&self, edits: &mut Edits, edit: impl Fn(Bytes) -> Edit) -> bool {
        if let Some(state) = &self.trace_state {
            edits.push(edit(state.clone()));
        }
        self.verdict.kept
    }
}

fn item(mode: Mode, trace_id: &[u8], state: Option<&TraceState<'_>>) -> Item {
    let explicit = state.and_then(TraceState::randomness);
    let threshold = state.and_then(TraceState::threshold);
    let carried = state.map(|_| Carried { threshold, new_randomness: None });
    let trouble = state.is_none().then_some(Trouble::Unreadable);
    match mode {
        Mode::Never => Item { randomness: Some(Randomness::MAX), policy: Policy::Priority, trouble, carried },
        Mode::Hash { seed, .. } => {
            let known = Randomness::of_trace_id(trace_id).is_some();
            let randomness = known.then(|| hash::randomness(seed, trace_id));
            let policy = if known { Policy::TraceIdHash } else { Policy::Missing };
            let in_use = explicit.map(|_| Trouble::RandomnessInUse).or(threshold.map(|_| Trouble::ThresholdInUse));
            match trouble.or(in_use) {
                Some(trouble) => Item { randomness, policy, trouble: Some(trouble), carried: None },
                None => {
                    let carried = Carried { threshold: None, new_randomness: randomness };
                    Item { randomness, policy, trouble: None, carried: Some(carried) }
                }
            }
        }
        Mode::Equalizing { .. } | Mode::Proportional { .. } => {
            let (randomness, policy) = match (explicit, Randomness::of_trace_id(trace_id)) {
                (Some(explicit), _) => (Some(explicit), Policy::Randomness),
                (None, Some(id)) if state.is_some() => (Some(id), Policy::TraceIdW3c),
                (None, _) => (None, Policy::Missing),
            };
            Item { randomness, policy, trouble, carried }
        }
    }
}

/// The threshold that a span asks for. Libraries send numbers and texts.
fn priority(span: Span<'_>) -> Option<Threshold> {
    let value = match span.attributes().get(PRIORITY.as_bytes())? {
        AnyValue::Int(value) => value as f64,
        AnyValue::Double(value) => value,
        text @ AnyValue::String(_) => text.as_str()?.parse().ok()?,
        _ => return None,
    };
    match value {
        0.0 => Some(Threshold::NEVER),
        value if value > 0.0 => Some(Threshold::ALWAYS),
        _ => None,
    }
}
