//! What a span says.

use bytes::Bytes;
use kubewake_otlp::{
    Edit, Edits, TraceState,
    probability::{Randomness, Threshold},
    view::{AnyValue, Span},
};
use memchr::memmem;

use super::{
    count::Policy,
    decide::{Carried, Item, Mode, Sampler, Trouble, Verdict},
    hash,
};

/// The attribute by which a sender asks to be kept, or dropped.
const PRIORITY: &[u8] = b"sampling.priority";

/// Whether any span of a request can have a priority. One search through all bytes costs less than to look at the
/// attributes of each span.
pub(super) fn may_have_priority(request: &[u8]) -> bool {
    memmem::find(request, PRIORITY).is_some()
}

/// Decides on a span, and marks it if it is kept.
pub(super) fn decide(sampler: &Sampler, span: Span<'_>, priorities: bool, edits: &mut Edits) -> Verdict {
    let found = span.to_sample();
    let state = TraceState::parse(found.trace_state);
    let item = item(sampler.mode(), found.trace_id, state.as_ref().ok());
    let verdict = sampler.decide(item, priorities.then(|| priority(span)).flatten());
    if let (Some(mark), Ok(state)) = (verdict.mark, state) {
        let mut text = Vec::with_capacity(found.trace_state.len() + 48);
        state.write(Some(mark.threshold), mark.new_randomness, &mut text);
        edits.push(Edit::trace_state(Bytes::from(text)));
    }
    verdict
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
    let value = match span.attributes().get(PRIORITY)? {
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
