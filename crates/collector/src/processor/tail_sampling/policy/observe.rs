//! Evaluates the conditions of policies on a span, once, when it arrives.
//!
//! Each condition on single spans or resources has a bit: it is set for a trace when any of its spans or
//! resources meets the condition, and never cleared. A decision then needs the bits and a few numbers, and no
//! span.

use kubewake_config::model::{SamplingRule, TextValues};
use kubewake_otlp::{
    TraceState,
    probability::Randomness,
    view::{AnyValue, KeyValue, MessageView},
    wire::WireFields,
};

use super::{super::wire, trace_state};

/// A condition on a single span or resource.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SpanCondition {
    Status(Vec<i32>),
    Text {
        key: Vec<u8>,
        values: TextValues,
    },
    Numeric {
        key: Vec<u8>,
        min: i64,
        max: i64,
    },
    Boolean {
        key: Vec<u8>,
        value: bool,
    },
    TraceState {
        key: Vec<u8>,
        values: Vec<String>,
    },
    Sampled,
    /// A condition on the duration of the trace so far.
    Latency {
        threshold: i64,
        upper: i64,
    },
}

impl SpanCondition {
    /// The condition of a rule, if it applies to single spans, and whether it is inverted.
    pub(super) fn from_rule(rule: &SamplingRule) -> Option<(Self, bool)> {
        let key = |key: &String| key.clone().into_bytes();
        Some(match rule {
            SamplingRule::Status { codes } => (Self::Status(codes.clone()), false),
            SamplingRule::Text { key: k, values, invert } => {
                (Self::Text { key: key(k), values: values.clone() }, *invert)
            }
            SamplingRule::Numeric { key: k, min, max, invert } => {
                (Self::Numeric { key: key(k), min: *min, max: *max }, *invert)
            }
            SamplingRule::Boolean { key: k, value, invert } => (Self::Boolean { key: key(k), value: *value }, *invert),
            SamplingRule::TraceState { key: k, values } => {
                (Self::TraceState { key: key(k), values: values.clone() }, false)
            }
            SamplingRule::TraceFlags => (Self::Sampled, false),
            SamplingRule::Latency { threshold, upper } => {
                (Self::Latency { threshold: *threshold, upper: *upper }, false)
            }
            _ => return None,
        })
    }

    fn key(&self) -> Option<&[u8]> {
        match self {
            Self::Text { key, .. } | Self::Numeric { key, .. } | Self::Boolean { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Whether the value of the condition's attribute meets it. A value of another type counts as the empty
    /// value of the right type, as in the Collector.
    fn meets(&self, value: AnyValue<'_>, on_resource: bool) -> bool {
        match self {
            Self::Text { values, .. } => {
                let text = value.as_text().unwrap_or_default();
                (on_resource || !text.is_empty()) && matches_text(values, text)
            }
            Self::Numeric { min, max, .. } => {
                let number = if let AnyValue::Int(number) = value { number } else { 0 };
                (*min..=*max).contains(&number)
            }
            Self::Boolean { value: wanted, .. } => matches!(value, AnyValue::Bool(true)) == *wanted,
            _ => false,
        }
    }
}

fn matches_text(values: &TextValues, text: &[u8]) -> bool {
    match values {
        TextValues::Exact(values) => !text.is_empty() && values.iter().any(|value| value.as_bytes() == text),
        TextValues::Patterns(patterns) => patterns.iter().any(|pattern| pattern.is_match(text)),
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct SpanFacts {
    pub(in super::super) id: u128,
    pub(in super::super) start: u64,
    pub(in super::super) end: u64,
    /// `rv`, or the id's randomness if there is a `th`; `None` if the span has neither.
    pub(in super::super) randomness: Option<Randomness>,
    pub(in super::super) is_root: bool,
    pub(in super::super) is_error: bool,
}

/// The duration of a trace so far, which determines the bits of latency conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct TraceDuration {
    start: u64,
    end: u64,
}

/// All conditions of a set of policies, each with its bit.
#[derive(Debug, Default)]
pub(in super::super) struct SpanObserver {
    conditions: Vec<SpanCondition>,
    /// Attribute keys, with the conditions on each.
    keys: Vec<(Vec<u8>, Vec<usize>)>,
    latencies: Vec<usize>,
    others: Vec<usize>,
}

impl SpanObserver {
    /// The bit of a condition; equal conditions share one.
    pub(super) fn bit_for(&mut self, condition: SpanCondition) -> usize {
        if let Some(known) = self.conditions.iter().position(|known| *known == condition) {
            return known;
        }
        let bit = self.conditions.len();
        match (&condition, condition.key()) {
            (_, Some(key)) => match self.keys.iter_mut().find(|(known, _)| known == key) {
                Some((_, bits)) => bits.push(bit),
                None => self.keys.push((key.to_vec(), vec![bit])),
            },
            (SpanCondition::Latency { .. }, _) => self.latencies.push(bit),
            _ => self.others.push(bit),
        }
        self.conditions.push(condition);
        bit
    }

    /// Number of words that the bits take.
    pub(in super::super) fn word_count(&self) -> usize {
        self.conditions.len().div_ceil(64)
    }

    /// Sets the bits of conditions that a resource meets. `fields` are those of its entry.
    pub(in super::super) fn observe_resource(&self, fields: &[u8], bits: &mut [u64]) {
        if self.keys.is_empty() {
            return;
        }
        let mut first = SeenKeys::default();
        for resource in WireFields::new(fields).filter(|field| field.is_len(wire::RESOURCE)) {
            for attribute in WireFields::new(resource.value).filter(|field| field.is_len(wire::RESOURCE_ATTRIBUTE)) {
                self.observe_attribute(attribute.value, true, &mut first, bits);
            }
        }
    }

    /// Reads a span, and sets the bits of conditions that it meets by itself.
    pub(in super::super) fn observe_span(&self, span: &[u8], bits: &mut [u64]) -> SpanFacts {
        let mut seen = SpanFacts { is_root: true, ..SpanFacts::default() };
        let (mut status, mut state, mut flags): (&[u8], &[u8], u32) = (&[], &[], 0);
        let mut first = SeenKeys::default();
        for field in WireFields::new(span) {
            match field.number {
                wire::span::TRACE_ID => seen.id = field.value.try_into().map_or(0, u128::from_be_bytes),
                wire::span::PARENT => seen.is_root = field.value.iter().all(|byte| *byte == 0),
                wire::span::START => seen.start = field.as_fixed64().unwrap_or(0),
                wire::span::END => seen.end = field.as_fixed64().unwrap_or(0),
                wire::span::STATUS => status = field.value,
                wire::span::TRACE_STATE => state = field.value,
                wire::span::FLAGS => flags = field.as_fixed32().unwrap_or(0),
                wire::span::ATTRIBUTE if !self.keys.is_empty() => {
                    self.observe_attribute(field.value, false, &mut first, bits);
                }
                _ => {}
            }
        }
        let code = status_code(status);
        seen.is_error = code == wire::ERROR;
        seen.randomness = randomness(state, seen.id);
        for bit in &self.others {
            let meets = match self.conditions.get(*bit) {
                Some(SpanCondition::Status(codes)) => codes.contains(&code),
                Some(SpanCondition::Sampled) => flags & 1 == 1,
                Some(SpanCondition::TraceState { key, values }) => trace_state_matches(state, key, values),
                _ => false,
            };
            set_bit(bits, *bit, meets);
        }
        seen
    }

    fn observe_attribute(&self, content: &[u8], on_resource: bool, first: &mut SeenKeys, bits: &mut [u64]) {
        let attribute = KeyValue::new(content);
        let key = attribute.key();
        let Some(place) = self.keys.iter().position(|(known, _)| known == key) else { return };
        let Some((_, of_key)) = self.keys.get(place).filter(|_| first.is_first(place)) else { return };
        let value = attribute.value();
        for bit in of_key {
            let meets = self.conditions.get(*bit).is_some_and(|condition| condition.meets(value, on_resource));
            set_bit(bits, *bit, meets);
        }
    }

    /// Adds a span to the duration of its trace, and sets the bits of latency conditions that are met now.
    pub(in super::super) fn extend_duration(&self, times: &mut TraceDuration, seen: &SpanFacts, bits: &mut [u64]) {
        // Zero means "not known yet", as in the Collector, even where a span's time is zero.
        if times.start == 0 || seen.start < times.start {
            times.start = seen.start;
        }
        if times.end == 0 || seen.end > times.end {
            times.end = seen.end;
        }
        let milliseconds = times.end.cast_signed().saturating_sub(times.start.cast_signed()) / 1_000_000;
        for bit in &self.latencies {
            if let Some(SpanCondition::Latency { threshold, upper }) = self.conditions.get(*bit) {
                let meets = match *upper {
                    0 => milliseconds >= *threshold,
                    upper => *threshold < milliseconds && milliseconds <= upper,
                };
                set_bit(bits, *bit, meets);
            }
        }
    }
}

/// Finds the first of several attributes with one key; only that one counts.
#[derive(Default)]
struct SeenKeys(u128);

impl SeenKeys {
    /// Keys beyond the bits count as first: no span has so many.
    fn is_first(&mut self, key: usize) -> bool {
        let bit = 1_u128.checked_shl(key as u32).unwrap_or(0);
        let first = self.0 & bit == 0;
        self.0 |= bit;
        first
    }
}

#[inline]
fn set_bit(bits: &mut [u64], bit: usize, meets: bool) {
    if let Some(word) = bits.get_mut(bit / 64) {
        *word |= u64::from(meets) << (bit % 64);
    }
}

fn status_code(status: &[u8]) -> i32 {
    let code = WireFields::new(status).last_of(wire::STATUS_CODE).and_then(|field| field.as_varint());
    code.unwrap_or(0) as i32
}

/// The randomness that a trace state carries.
fn randomness(state: &[u8], id: u128) -> Option<Randomness> {
    if state.is_empty() {
        return None;
    }
    let state = TraceState::parse(state).ok()?;
    state.randomness().or_else(|| state.threshold().map(|_| Randomness::from_bits(id as u64)))
}

/// Whether a member has one of the values. A key and a value together have at most 256 bytes.
fn trace_state_matches(state: &[u8], key: &[u8], values: &[String]) -> bool {
    !state.is_empty()
        && trace_state::member_value(state, key).is_some_and(|found| {
            key.len() + found.len() < 256 && values.iter().any(|value| !value.is_empty() && value.as_bytes() == found)
        })
}
