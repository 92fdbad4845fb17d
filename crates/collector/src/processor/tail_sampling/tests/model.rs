//! A model of the policies, written for clarity, on decoded spans.

use std::collections::BTreeMap;

use kubewake_config::model::{CompositePart, PolicyRateLimit, SamplingPolicy, SamplingRule, TextValues};
use kubewake_otlp::probability::{Randomness, Threshold};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    trace::v1::Span,
};

/// A trace: spans with the attributes of their resources, in the order of arrival.
pub(super) type Trace = Vec<(Vec<KeyValue>, Span)>;

pub(super) fn traces(requests: &[ExportTraceServiceRequest]) -> BTreeMap<u128, Trace> {
    let mut traces: BTreeMap<u128, Trace> = BTreeMap::new();
    for resource in requests.iter().flat_map(|request| &request.resource_spans) {
        let attributes = resource.resource.as_ref().map(|resource| resource.attributes.clone()).unwrap_or_default();
        for span in resource.scope_spans.iter().flat_map(|scope| &scope.spans) {
            let id = span.trace_id.clone().try_into().map_or(0, u128::from_be_bytes);
            traces.entry(id).or_default().push((attributes.clone(), span.clone()));
        }
    }
    traces
}

/// The state of limits, and the tick of the current decision.
#[derive(Default)]
pub(super) struct RateLimitModel {
    pub(super) tick: i64,
    /// By index of the rule: tenths of the tokens in the bucket, and the time of the last update.
    buckets: BTreeMap<usize, (i64, i64)>,
    /// By index of the policy: the second, and the spans that were kept in it.
    shares: BTreeMap<usize, (i64, i64)>,
}

impl RateLimitModel {
    fn take(&mut self, rule: &SamplingRule, allowed: PolicyRateLimit, tokens: usize) -> bool {
        let tokens = tokens as i64 * 10;
        let most = allowed.burst * 10;
        let (level, since) = self.buckets.entry(std::ptr::from_ref(rule).addr()).or_insert((most, self.tick));
        *level = most.min(*level + (self.tick - *since) * allowed.per_second);
        *since = self.tick;
        let enough = tokens <= *level;
        *level -= if enough { tokens } else { 0 };
        enough
    }

    fn share(&mut self, part: &SamplingPolicy, spans: usize, most: i64) -> bool {
        let used = self.shares.entry(std::ptr::from_ref(part).addr()).or_default();
        if used.0 != self.tick / 10 {
            *used = (self.tick / 10, 0);
        }
        let fits = used.1 + spans as i64 <= most;
        used.1 += if fits { spans as i64 } else { 0 };
        fits
    }
}

/// Whether the trace is kept.
pub(super) fn keeps(policies: &[SamplingPolicy], id: u128, trace: &Trace, world: &mut RateLimitModel) -> bool {
    let (drops, others): (Vec<_>, Vec<_>) =
        policies.iter().partition(|policy| matches!(policy.rule, SamplingRule::Drop(_)));
    if drops.iter().any(|policy| says_yes(&policy.rule, id, trace, world)) {
        return false;
    }
    // All are evaluated, as each one that keeps the trace may use up its limit.
    others.iter().filter(|policy| says_yes(&policy.rule, id, trace, world)).count() > 0
}

fn says_yes(rule: &SamplingRule, id: u128, trace: &Trace, world: &mut RateLimitModel) -> bool {
    let any_value = |key: &str, is: &dyn Fn(Option<&Value>, bool) -> bool| {
        let find = |attributes: &[KeyValue], on_resource: bool| {
            let found = attributes.iter().find(|attribute| attribute.key == key);
            found.is_some_and(|found| is(found.value.as_ref().and_then(|value| value.value.as_ref()), on_resource))
        };
        trace.iter().any(|(resource, span)| find(resource, true) || find(&span.attributes, false))
    };
    match rule {
        SamplingRule::Always => true,
        SamplingRule::Latency { threshold, upper } => latency(trace, *threshold, *upper),
        SamplingRule::Numeric { key, min, max, invert } => {
            let is = |value: Option<&Value>, _| {
                let number = if let Some(Value::IntValue(number)) = value { *number } else { 0 };
                number >= *min && number <= *max
            };
            any_value(key, &is) != *invert
        }
        SamplingRule::Boolean { key, value: wanted, invert } => {
            let is = |value: Option<&Value>, _| matches!(value, Some(Value::BoolValue(true))) == *wanted;
            any_value(key, &is) != *invert
        }
        SamplingRule::Text { key, values, invert } => {
            let is = |value: Option<&Value>, on_resource| {
                let text = if let Some(Value::StringValue(text)) = value { text.as_str() } else { "" };
                match values {
                    TextValues::Exact(values) => !text.is_empty() && values.iter().any(|value| value == text),
                    TextValues::Patterns(patterns) => {
                        (on_resource || !text.is_empty()) && patterns.iter().any(|p| p.is_match(text.as_bytes()))
                    }
                }
            };
            any_value(key, &is) != *invert
        }
        SamplingRule::Probabilistic { percentage, salt } => chance(*percentage, salt, id, trace),
        SamplingRule::Status { codes } => {
            trace.iter().any(|(_, span)| codes.contains(&span.status.as_ref().map_or(0, |status| status.code)))
        }
        SamplingRule::SpanCount { min, max } => {
            let count = trace.len() as i64;
            count >= *min && (*max == 0 || count <= *max)
        }
        SamplingRule::TraceState { key, values } => trace.iter().any(|(_, span)| {
            let mut members = span.trace_state.split(',').filter_map(|member| member.split_once('='));
            members.any(|(name, value)| name == key && values.iter().any(|wanted| wanted == value))
        }),
        SamplingRule::TraceFlags => trace.iter().any(|(_, span)| span.flags % 2 == 1),
        SamplingRule::And(parts) | SamplingRule::Drop(parts) => {
            parts.iter().all(|part| says_yes(&part.rule, id, trace, world))
        }
        SamplingRule::Not(part) => !says_yes(&part.rule, id, trace, world),
        SamplingRule::Composite { parts, max_total } => {
            let first = parts.iter().find(|part| says_yes(&part.policy.rule, id, trace, world));
            let share = |part: &CompositePart| part.share(*max_total, parts.len()).min(*max_total);
            first.is_some_and(|part| world.share(&part.policy, trace.len(), share(part)))
        }
        SamplingRule::RateLimiting(allowed) => world.take(rule, *allowed, trace.len()),
        SamplingRule::BytesLimiting(allowed) => world.take(rule, *allowed, trace.iter().map(padding).sum()),
    }
}

/// The length of a span's padding; limits by bytes leave room for the rest of the span.
fn padding((_, span): &(Vec<KeyValue>, Span)) -> usize {
    let pads = span.attributes.iter().filter(|attribute| attribute.key == "pad");
    let value = |pad: &KeyValue| pad.value.clone().and_then(|value| value.value);
    pads.map(|pad| if let Some(Value::StringValue(text)) = value(pad) { text.len() } else { 0 }).sum()
}

/// From the first start to the last end of the spans so far: once within the bounds is enough.
fn latency(trace: &Trace, threshold: i64, upper: i64) -> bool {
    (1..=trace.len()).any(|count| {
        let spans = || trace[..count].iter().map(|(_, span)| span);
        let start = spans().map(|span| span.start_time_unix_nano).min().unwrap();
        let end = spans().map(|span| span.end_time_unix_nano).max().unwrap();
        let milliseconds = (i128::from(end) - i128::from(start)) / 1_000_000;
        match upper {
            0 => milliseconds >= i128::from(threshold),
            upper => i128::from(threshold) < milliseconds && milliseconds <= i128::from(upper),
        }
    })
}

fn chance(percentage: f64, salt: &str, id: u128, trace: &Trace) -> bool {
    let ot: Vec<&str> = trace.iter().filter_map(|(_, span)| span.trace_state.strip_prefix("ot=")).collect();
    if let Some(last) = ot.last() {
        let randomness = last.strip_prefix("rv:").map(|digits| Randomness::parse(digits.as_bytes()).unwrap());
        let randomness = randomness.unwrap_or_else(|| Randomness::from_bits(id as u64));
        return Threshold::from_probability(percentage / 100.0, 0).is_some_and(|threshold| threshold.keeps(randomness));
    }
    let salt = if salt.is_empty() { "default-hash-seed" } else { salt };
    let hash = salt
        .bytes()
        .chain(id.to_be_bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash as f64) < percentage / 100.0 * 2_f64.powi(64)
}
