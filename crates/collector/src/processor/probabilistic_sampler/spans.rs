//! Sampling of spans.

use kubewake_otlp::{
    Allowance, EditList, MessageEdit, NoMemory, RetainedRecords, Signal, SpanDisposition, TraceId, TraceState,
    probability::{Randomness, Threshold},
    select_traces_within, select_within,
    view::{AnyValue, RecordRef, Span},
};
use memchr::memmem;

use super::{
    decision_counts::{DecisionTally, SamplerPolicy},
    hash,
    sampler::{DecisionMode, ItemDecision, PriorSampling, ProbabilitySampler, SamplingInput, SamplingProblem},
};
use crate::core::Part;

/// The attribute by which a sender asks for a span to be kept, or dropped.
const PRIORITY_ATTRIBUTE: &str = "sampling.priority";

/// Limit of the annotation's length: `ot=rv:…;th:…,`.
const MAX_ANNOTATION_BYTES: usize = 48;

/// Drops spans of a request, and annotates those that it keeps.
pub(super) fn sample(
    sampler: &ProbabilitySampler,
    part: &Part,
    memory: &mut dyn Allowance,
) -> Result<(RetainedRecords, DecisionTally), NoMemory> {
    // One search through all bytes costs less than reading the attributes of each span.
    let priorities =
        part.traits.may_have(PRIORITY_ATTRIBUTE) && memmem::find(&part.bytes, PRIORITY_ATTRIBUTE.as_bytes()).is_some();
    let mut tally = DecisionTally::default();
    let retained = if part.traits.has_plain_ids() && !priorities {
        let decide = |id: &TraceId, spans| {
            let plain = sampler
                .decide_plain(id)
                .map(|verdict| SpanDecision::from_item_decision(verdict, Some(TraceState::default())));
            let decision = plain.unwrap_or_else(|| SpanDecision::new(sampler, id, &[], None));
            tally.note(decision.verdict, spans as u64);
            decision.fate()
        };
        select_traces_within(&part.bytes, decide, memory)?
    } else {
        let keep = |record: &RecordRef<'_>, edits: &mut EditList| {
            let Some(span) = record.span() else { return true };
            let found = span.to_sample();
            let priority = priorities.then(|| requested_threshold(span)).flatten();
            let decision = SpanDecision::new(sampler, found.trace_id, found.trace_state, priority);
            tally.note(decision.verdict, 1);
            decision.annotate(edits)
        };
        select_within(Signal::Traces, &part.bytes, keep, memory)?
    };
    Ok((retained, tally))
}

/// The decision on spans, and the trace state that they get.
struct SpanDecision {
    verdict: ItemDecision,
    trace_state: Option<Vec<u8>>,
}

impl SpanDecision {
    fn new(sampler: &ProbabilitySampler, trace_id: &[u8], trace_state: &[u8], priority: Option<Threshold>) -> Self {
        let state = TraceState::parse(trace_state);
        let item = sampling_input(sampler.mode(), trace_id, state.as_ref().ok());
        Self::from_item_decision(sampler.decide(item, priority), state.ok())
    }

    /// The decision for spans with this trace state, if that can be read.
    fn from_item_decision(verdict: ItemDecision, state: Option<TraceState<'_>>) -> Self {
        let written = verdict.annotation.zip(state).map(|(mark, state)| {
            let mut text = Vec::with_capacity(state.text().len() + MAX_ANNOTATION_BYTES);
            state.write(Some(mark.threshold), mark.new_randomness, &mut text);
            text
        });
        Self { verdict, trace_state: written }
    }

    /// The same decision for all spans of a trace.
    fn fate(self) -> SpanDisposition {
        match (self.verdict.kept, self.trace_state) {
            (false, _) => SpanDisposition::Drop,
            (true, None) => SpanDisposition::Keep,
            (true, Some(state)) => SpanDisposition::Mark(state),
        }
    }

    /// Annotates one span; returns whether it is kept.
    fn annotate(self, edits: &mut EditList) -> bool {
        edits.extend(self.trace_state.map(MessageEdit::trace_state));
        self.verdict.kept
    }
}

fn sampling_input(mode: DecisionMode, trace_id: &[u8], state: Option<&TraceState<'_>>) -> SamplingInput {
    let explicit = state.and_then(TraceState::randomness);
    let threshold = state.and_then(TraceState::threshold);
    let carried = state.map(|_| PriorSampling { threshold, new_randomness: None });
    let trouble = state.is_none().then_some(SamplingProblem::Unreadable);
    match mode {
        DecisionMode::Never => SamplingInput {
            randomness: Some(Randomness::MAX),
            policy: SamplerPolicy::Priority,
            problem: trouble,
            prior: carried,
        },
        DecisionMode::Hash { seed, .. } => {
            let known = Randomness::from_trace_id(trace_id).is_some();
            let randomness = known.then(|| hash::randomness(seed, trace_id));
            let policy = if known { SamplerPolicy::TraceIdHash } else { SamplerPolicy::Missing };
            let in_use = explicit
                .map(|_| SamplingProblem::RandomnessInUse)
                .or(threshold.map(|_| SamplingProblem::ThresholdInUse));
            match trouble.or(in_use) {
                Some(trouble) => SamplingInput { randomness, policy, problem: Some(trouble), prior: None },
                None => {
                    let carried = PriorSampling { threshold: None, new_randomness: randomness };
                    SamplingInput { randomness, policy, problem: None, prior: Some(carried) }
                }
            }
        }
        DecisionMode::Equalizing { .. } | DecisionMode::Proportional { .. } => {
            let (randomness, policy) = match (explicit, Randomness::from_trace_id(trace_id)) {
                (Some(explicit), _) => (Some(explicit), SamplerPolicy::Randomness),
                (None, Some(id)) if state.is_some() => (Some(id), SamplerPolicy::TraceIdW3c),
                (None, _) => (None, SamplerPolicy::Missing),
            };
            SamplingInput { randomness, policy, problem: trouble, prior: carried }
        }
    }
}

/// The threshold that a span's priority asks for. Libraries send numbers and texts.
fn requested_threshold(span: Span<'_>) -> Option<Threshold> {
    let value = match span.attributes().get(PRIORITY_ATTRIBUTE.as_bytes())? {
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
