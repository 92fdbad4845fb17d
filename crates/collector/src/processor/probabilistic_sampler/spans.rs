//! What a span says.

use kubewake_otlp::{
    Allowance, Edit, Edits, Fate, NoMemory, Retained, Signal, TraceId, TraceState,
    probability::{Randomness, Threshold},
    select_traces_within, select_within,
    view::{AnyValue, RecordRef, Span},
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

/// What is written takes so many bytes at most: `ot=rv:…;th:…,`.
const MARK: usize = 48;

/// Drops spans of a request, and marks those that it keeps.
pub(super) fn sample(
    sampler: &Sampler,
    part: &Part,
    memory: &mut dyn Allowance,
) -> Result<(Retained, Tally), NoMemory> {
    // One search through all bytes costs less than to look at the attributes of each span.
    let priorities = part.traits.may_have(PRIORITY) && memmem::find(&part.bytes, PRIORITY.as_bytes()).is_some();
    let mut tally = Tally::default();
    let retained = if part.traits.has_plain_ids() && !priorities {
        let decide = |id: &TraceId, spans| {
            let plain = sampler.decide_plain(id).map(|verdict| Decision::of(verdict, Some(TraceState::default())));
            let decision = plain.unwrap_or_else(|| Decision::new(sampler, id, &[], None));
            tally.note(decision.verdict, spans as u64);
            decision.fate()
        };
        select_traces_within(&part.bytes, decide, memory)?
    } else {
        let keep = |record: &RecordRef<'_>, edits: &mut Edits| {
            let Some(span) = record.span() else { return true };
            let found = span.to_sample();
            let priority = priorities.then(|| priority(span)).flatten();
            let decision = Decision::new(sampler, found.trace_id, found.trace_state, priority);
            tally.note(decision.verdict, 1);
            decision.mark(edits)
        };
        select_within(Signal::Traces, &part.bytes, keep, memory)?
    };
    Ok((retained, tally))
}

/// What becomes of spans, and the trace state that they get.
struct Decision {
    verdict: Verdict,
    trace_state: Option<Vec<u8>>,
}

impl Decision {
    fn new(sampler: &Sampler, trace_id: &[u8], trace_state: &[u8], priority: Option<Threshold>) -> Self {
        let state = TraceState::parse(trace_state);
        let item = item(sampler.mode(), trace_id, state.as_ref().ok());
        Self::of(sampler.decide(item, priority), state.ok())
    }

    /// A verdict on spans with this trace state, if that can be read.
    fn of(verdict: Verdict, state: Option<TraceState<'_>>) -> Self {
        let written = verdict.mark.zip(state).map(|(mark, state)| {
            let mut text = Vec::with_capacity(state.text().len() + MARK);
            state.write(Some(mark.threshold), mark.new_randomness, &mut text);
            text
        });
        Self { verdict, trace_state: written }
    }

    /// Of all spans of a trace.
    fn fate(self) -> Fate {
        match (self.verdict.kept, self.trace_state) {
            (false, _) => Fate::Drop,
            (true, None) => Fate::Keep,
            (true, Some(state)) => Fate::Mark(state),
        }
    }

    /// Marks one span, and says whether to keep it.
    fn mark(self, edits: &mut Edits) -> bool {
        edits.extend(self.trace_state.map(Edit::trace_state));
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
