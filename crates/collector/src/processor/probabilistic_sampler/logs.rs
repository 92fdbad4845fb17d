//! What a log record says.

use kubewake_config::model::{AttributeSource, ProbabilisticSampler as Settings};
use kubewake_otlp::{
    Edit, Edits,
    probability::{Randomness, Threshold},
    view::{AnyValue, LogRecord, LogToSample},
};

use super::{
    count::Policy,
    decide::{Carried, Item, Mode, Sampler, Trouble, Verdict},
    hash,
};

const THRESHOLD: &str = "sampling.threshold";
const RANDOMNESS: &str = "sampling.randomness";

/// Which attributes the settings name.
pub(super) struct LogKeys {
    by_trace_id: bool,
    source: Vec<u8>,
    priority: Vec<u8>,
}

impl LogKeys {
    pub(super) fn new(settings: &Settings) -> Self {
        let key = |key: &Option<String>| key.as_deref().unwrap_or_default().as_bytes().to_vec();
        Self {
            by_trace_id: settings.attribute_source == AttributeSource::TraceId,
            source: key(&settings.from_attribute),
            priority: key(&settings.sampling_priority),
        }
    }
}

/// Decides on a log record, and marks it if it is kept.
pub(super) fn decide(sampler: &Sampler, keys: &LogKeys, log: LogRecord<'_>, edits: &mut Edits) -> Verdict {
    let found = log.to_sample([THRESHOLD.as_bytes(), RANDOMNESS.as_bytes(), &keys.source, &keys.priority]);
    let LogToSample { trace_id, attributes: [threshold, randomness, source, priority] } = found;
    let carried = carried(threshold, randomness);
    let item = item(sampler.mode(), keys, trace_id, source, carried);
    let verdict = sampler.decide(item, priority.and_then(|value| self::priority(value, sampler.precision)));
    if let Some(mark) = verdict.mark {
        edits.extend(mark.new_randomness.map(|new| Edit::set(RANDOMNESS, new.hex().as_str())));
        edits.push(Edit::set(THRESHOLD, mark.threshold.hex().as_str()));
    }
    verdict
}

/// What the record says of earlier sampling; `None` if that cannot be read. What is no text says nothing.
fn carried(threshold: Option<AnyValue<'_>>, randomness: Option<AnyValue<'_>>) -> Option<(Carried, Option<Randomness>)> {
    let threshold = text(threshold).map(|text| Threshold::parse(text).ok_or(())).transpose().ok()?;
    let randomness = text(randomness).map(|text| Randomness::parse(text).ok_or(())).transpose().ok()?;
    Some((Carried { threshold, new_randomness: None }, randomness))
}

fn text(value: Option<AnyValue<'_>>) -> Option<&[u8]> {
    value.and_then(|value| value.as_text()).filter(|text| !text.is_empty())
}

fn item(
    mode: Mode,
    keys: &LogKeys,
    trace_id: &[u8],
    source: Option<AnyValue<'_>>,
    carried: Option<(Carried, Option<Randomness>)>,
) -> Item {
    let trouble = carried.is_none().then_some(Trouble::Unreadable);
    match mode {
        Mode::Never => {
            // Only a priority can keep it, and that is a probability like any other.
            let explicit = carried.and_then(|(_, explicit)| explicit);
            let randomness = explicit.or_else(|| Randomness::of_trace_id(trace_id)).or(Some(Randomness::MAX));
            Item { randomness, policy: Policy::Priority, trouble, carried: carried.map(|(carried, _)| carried) }
        }
        Mode::Hash { seed, .. } => {
            let (randomness, policy) = hashed(seed, keys, trace_id, source);
            let trouble = match carried {
                None => Some(Trouble::Unreadable),
                Some((_, Some(_))) => Some(Trouble::RandomnessInUse),
                Some((Carried { threshold: Some(_), .. }, _)) => Some(Trouble::ThresholdInUse),
                Some(_) => None,
            };
            let carried = Carried { threshold: None, new_randomness: randomness };
            Item { randomness, policy, trouble, carried: trouble.is_none().then_some(carried) }
        }
        Mode::Equalizing { .. } | Mode::Proportional { .. } => {
            let (randomness, policy) = match (&carried, Randomness::of_trace_id(trace_id)) {
                (Some((_, Some(explicit))), _) => (Some(*explicit), Policy::Randomness),
                (Some(_), Some(id)) => (Some(id), Policy::TraceIdW3c),
                _ => (None, Policy::Missing),
            };
            Item { randomness, policy, trouble, carried: carried.map(|(carried, _)| carried) }
        }
    }
}

/// Randomness of the trace id, or else of the attribute.
fn hashed(seed: u32, keys: &LogKeys, trace_id: &[u8], source: Option<AnyValue<'_>>) -> (Option<Randomness>, Policy) {
    if keys.by_trace_id && Randomness::of_trace_id(trace_id).is_some() {
        return (Some(hash::randomness(seed, trace_id)), Policy::TraceIdHash);
    }
    let of = |bytes: &[u8]| (!bytes.is_empty()).then(|| hash::randomness(seed, bytes));
    let randomness = source.and_then(|value| match value {
        AnyValue::Bytes(bytes) | AnyValue::String(bytes) => of(bytes),
        other => of(&other.to_text()),
    });
    let policy = if randomness.is_some() { Policy::Attribute } else { Policy::Missing };
    (randomness, policy)
}

/// The threshold that a record asks for, as a percentage.
fn priority(value: AnyValue<'_>, precision: u8) -> Option<Threshold> {
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
