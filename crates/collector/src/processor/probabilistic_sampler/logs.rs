//! Sampling of log records.

use kubewake_config::model::{AttributeSource, ProbabilisticSampler as Settings};
use kubewake_otlp::{
    EditList, MessageEdit,
    probability::{Randomness, Threshold},
    view::{AnyValue, LogRecord, LogToSample},
};

use super::{
    decision_counts::SamplerPolicy,
    hash,
    sampler::{DecisionMode, ItemDecision, PriorSampling, ProbabilitySampler, SamplingInput, SamplingProblem},
};

const THRESHOLD_ATTRIBUTE: &str = "sampling.threshold";
const RANDOMNESS_ATTRIBUTE: &str = "sampling.randomness";

/// The attribute keys from the settings.
pub(super) struct LogAttributeKeys {
    by_trace_id: bool,
    source: Vec<u8>,
    priority: Vec<u8>,
}

impl LogAttributeKeys {
    pub(super) fn new(settings: &Settings) -> Self {
        let key = |key: &Option<String>| key.as_deref().unwrap_or_default().as_bytes().to_vec();
        Self {
            by_trace_id: settings.attribute_source == AttributeSource::TraceId,
            source: key(&settings.from_attribute),
            priority: key(&settings.sampling_priority),
        }
    }
}

/// Decides a log record, and annotates it if it is kept.
pub(super) fn decide(
    sampler: &ProbabilitySampler,
    keys: &LogAttributeKeys,
    log: LogRecord<'_>,
    edits: &mut EditList,
) -> ItemDecision {
    let found =
        log.to_sample([THRESHOLD_ATTRIBUTE.as_bytes(), RANDOMNESS_ATTRIBUTE.as_bytes(), &keys.source, &keys.priority]);
    let LogToSample { trace_id, attributes: [threshold, randomness, source, priority] } = found;
    let carried = prior_sampling(threshold, randomness);
    let item = sampling_input(sampler.mode(), keys, trace_id, source, carried);
    let verdict = sampler.decide(item, priority.and_then(|value| self::requested_threshold(value, sampler.precision)));
    if let Some(mark) = verdict.annotation {
        edits.extend(mark.new_randomness.map(|new| MessageEdit::set(RANDOMNESS_ATTRIBUTE, new.hex().as_str())));
        edits.push(MessageEdit::set(THRESHOLD_ATTRIBUTE, mark.threshold.hex().as_str()));
    }
    verdict
}

/// A log record's record of earlier sampling; `None` if it cannot be read. Values that are not text are
/// ignored.
fn prior_sampling(
    threshold: Option<AnyValue<'_>>,
    randomness: Option<AnyValue<'_>>,
) -> Option<(PriorSampling, Option<Randomness>)> {
    let threshold = text(threshold).map(|text| Threshold::parse(text).ok_or(())).transpose().ok()?;
    let randomness = text(randomness).map(|text| Randomness::parse(text).ok_or(())).transpose().ok()?;
    Some((PriorSampling { threshold, new_randomness: None }, randomness))
}

fn text(value: Option<AnyValue<'_>>) -> Option<&[u8]> {
    value.and_then(|value| value.as_text()).filter(|text| !text.is_empty())
}

fn sampling_input(
    mode: DecisionMode,
    keys: &LogAttributeKeys,
    trace_id: &[u8],
    source: Option<AnyValue<'_>>,
    carried: Option<(PriorSampling, Option<Randomness>)>,
) -> SamplingInput {
    let trouble = carried.is_none().then_some(SamplingProblem::Unreadable);
    match mode {
        DecisionMode::Never => {
            // Only a priority can keep the record, and that is a probability like any other.
            let explicit = carried.and_then(|(_, explicit)| explicit);
            let randomness = explicit.or_else(|| Randomness::from_trace_id(trace_id)).or(Some(Randomness::MAX));
            SamplingInput {
                randomness,
                policy: SamplerPolicy::Priority,
                problem: trouble,
                prior: carried.map(|(carried, _)| carried),
            }
        }
        DecisionMode::Hash { seed, .. } => {
            let (randomness, policy) = hashed_randomness(seed, keys, trace_id, source);
            let trouble = match carried {
                None => Some(SamplingProblem::Unreadable),
                Some((_, Some(_))) => Some(SamplingProblem::RandomnessInUse),
                Some((PriorSampling { threshold: Some(_), .. }, _)) => Some(SamplingProblem::ThresholdInUse),
                Some(_) => None,
            };
            let carried = PriorSampling { threshold: None, new_randomness: randomness };
            SamplingInput { randomness, policy, problem: trouble, prior: trouble.is_none().then_some(carried) }
        }
        DecisionMode::Equalizing { .. } | DecisionMode::Proportional { .. } => {
            let (randomness, policy) = match (&carried, Randomness::from_trace_id(trace_id)) {
                (Some((_, Some(explicit))), _) => (Some(*explicit), SamplerPolicy::Randomness),
                (Some(_), Some(id)) => (Some(id), SamplerPolicy::TraceIdW3c),
                _ => (None, SamplerPolicy::Missing),
            };
            SamplingInput { randomness, policy, problem: trouble, prior: carried.map(|(carried, _)| carried) }
        }
    }
}

/// Randomness from the trace id, or else from the attribute.
fn hashed_randomness(
    seed: u32,
    keys: &LogAttributeKeys,
    trace_id: &[u8],
    source: Option<AnyValue<'_>>,
) -> (Option<Randomness>, SamplerPolicy) {
    if keys.by_trace_id && Randomness::from_trace_id(trace_id).is_some() {
        return (Some(hash::randomness(seed, trace_id)), SamplerPolicy::TraceIdHash);
    }
    let of = |bytes: &[u8]| (!bytes.is_empty()).then(|| hash::randomness(seed, bytes));
    let randomness = source.and_then(|value| match value {
        AnyValue::Bytes(bytes) | AnyValue::String(bytes) => of(bytes),
        other => of(&other.to_text()),
    });
    let policy = if randomness.is_some() { SamplerPolicy::Attribute } else { SamplerPolicy::Missing };
    (randomness, policy)
}

/// The threshold that a log record's priority asks for, as a percentage.
fn requested_threshold(value: AnyValue<'_>, precision: u8) -> Option<Threshold> {
    let percentage = match value {
        AnyValue::Int(value) => value as f64,
        AnyValue::Double(value) => value,
        _ => return None,
    };
    match percentage {
        0.0 => Some(Threshold::NEVER),
        percentage if percentage >= 100.0 => Some(Threshold::ALWAYS),
        percentage => Threshold::from_probability(percentage / 100.0, precision),
    }
}
