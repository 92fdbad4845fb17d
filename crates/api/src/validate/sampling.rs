//! `spec.sampling`: checked, and as the collector has it.

use kubewake_config::{
    Pattern,
    written::{Policy, Rule, TailSampling},
};

use super::{
    check::Check,
    sending::{duration, within},
};
use crate::{
    Pipeline, Reason, Signal,
    v1alpha1::{self, AndPart, CompositePart, CompositePolicy, NotPolicy, Plain, StatusCode, Tail},
    valid::Sampling,
};

/// The smallest share that consistent sampling can express.
const LEAST: f64 = 100.0 / (1_u64 << 56) as f64;

pub(super) fn sampling(check: &mut Check<'_>, pipeline: &Pipeline) -> Sampling {
    let Some(given) = &pipeline.sampling else { return Sampling::default() };
    if pipeline.signal != Signal::Traces {
        check.refuse("spec.sampling", Reason::SamplingInvalid, "is for traces");
    }
    if let Some(percentage) = given.percentage {
        percent(check, "spec.sampling.percentage", percentage);
    }
    Sampling { percentage: given.percentage, tail: given.tail.as_ref().map(|tail| self::tail(check, tail)) }
}

fn percent(check: &mut Check<'_>, path: &str, percentage: f64) {
    if !(0.0..=100.0).contains(&percentage) || percentage > 0.0 && percentage < LEAST {
        check.refuse(path, Reason::SamplingInvalid, "must be from 0 to 100");
    } else if percentage == 0.0 {
        check.warn(path, Reason::SamplingInvalid, "is 0: nothing is kept");
    }
}

const PATH: &str = "spec.sampling.tail";

fn tail(check: &mut Check<'_>, tail: &Tail) -> TailSampling {
    let mut time = |name: &str, text: &Option<String>| {
        text.as_deref().and_then(|text| duration(&format!("{PATH}.{name}"), text, &mut check.problems))
    };
    let decision_wait = time("decisionWait", &tail.decision_wait);
    let after_root = time("decisionWaitAfterRootReceived", &tail.decision_wait_after_root_received);
    let late_error_wait = time("lateErrorWait", &tail.late_error_wait);
    let cache = tail.decision_cache.clone().unwrap_or_default();
    let bounds = [
        ("numTraces", tail.num_traces, 1, 100_000_000),
        ("maximumTraceSizeBytes", tail.maximum_trace_size_bytes, 0, 1 << 40),
        ("decisionCache.sampledCacheSize", cache.sampled_cache_size, 0, 100_000_000),
        ("decisionCache.nonSampledCacheSize", cache.non_sampled_cache_size, 0, 100_000_000),
    ];
    for (name, value, least, most) in bounds {
        within(&format!("{PATH}.{name}"), value, least, most, &mut check.problems);
    }
    if tail.policies.is_empty() {
        check.refuse(format!("{PATH}.policies"), Reason::SamplingInvalid, "must hold at least one policy");
    }
    TailSampling {
        decision_wait,
        decision_wait_after_root_received: after_root,
        num_traces: tail.num_traces,
        sampled_cache_size: cache.sampled_cache_size,
        non_sampled_cache_size: cache.non_sampled_cache_size,
        sample_on_first_match: tail.sample_on_first_match,
        maximum_trace_size_bytes: tail.maximum_trace_size_bytes,
        late_error_wait,
        policies: policies(check, &tail.policies),
    }
}

fn policies(check: &mut Check<'_>, given: &[v1alpha1::Policy]) -> Vec<Policy> {
    let mut seen = std::collections::HashSet::new();
    let mut policies = Vec::new();
    for (index, policy) in given.iter().enumerate() {
        let path = format!("{PATH}.policies[{index}]");
        if !seen.insert(&policy.name) {
            check.refuse(format!("{path}.name"), Reason::SamplingInvalid, "is the name of another policy, too");
        }
        policies.extend(top(check, &path, policy));
    }
    policies
}

fn top(check: &mut Check<'_>, path: &str, policy: &v1alpha1::Policy) -> Option<Policy> {
    let mut rules = plain(check, path, &policy.plain);
    if let Some(and) = &policy.and {
        rules.push(Rule::And(parts(check, &format!("{path}.and.andSubPolicy"), &and.and_sub_policy)));
    }
    if let Some(drop) = &policy.drop {
        rules.push(Rule::Drop(parts(check, &format!("{path}.drop.dropSubPolicy"), &drop.drop_sub_policy)));
    }
    if let Some(not) = &policy.not {
        rules.extend(self::not(check, path, not));
    }
    if let Some(composite) = &policy.composite {
        rules.push(self::composite(check, &format!("{path}.composite"), composite));
    }
    only(check, path, &policy.name, rules)
}

/// The one rule of a policy.
fn only(check: &mut Check<'_>, path: &str, name: &str, mut rules: Vec<Rule>) -> Option<Policy> {
    if name.is_empty() {
        check.refuse(format!("{path}.name"), Reason::SamplingInvalid, "is empty");
    }
    match (rules.pop(), rules.is_empty()) {
        (Some(rule), true) => Some(Policy { name: name.to_owned(), rule }),
        _ => {
            check.refuse(path, Reason::SamplingInvalid, "a policy has exactly one rule");
            None
        }
    }
}

fn parts(check: &mut Check<'_>, path: &str, parts: &[AndPart]) -> Vec<Policy> {
    not_empty(check, path, parts);
    let mut policies = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let mut rules = plain(check, &path, &part.plain);
        if let Some(not) = &part.not {
            rules.extend(self::not(check, &path, not));
        }
        policies.extend(only(check, &path, &part.name, rules));
    }
    policies
}

fn not_empty<T>(check: &mut Check<'_>, path: &str, list: &[T]) {
    if list.is_empty() {
        check.refuse(path, Reason::SamplingInvalid, "must hold at least one");
    }
}

fn not(check: &mut Check<'_>, path: &str, not: &NotPolicy) -> Option<Rule> {
    let path = format!("{path}.not.notSubPolicy");
    let rules = plain(check, &path, &not.not_sub_policy.plain);
    let policy = only(check, &path, &not.not_sub_policy.name, rules)?;
    Some(Rule::Not(Box::new(policy)))
}

fn composite(check: &mut Check<'_>, path: &str, given: &CompositePolicy) -> Rule {
    within_at(check, &format!("{path}.maxTotalSpansPerSecond"), given.max_total_spans_per_second, 1, i64::MAX);
    let place = format!("{path}.compositeSubPolicy");
    not_empty(check, &place, &given.composite_sub_policy);
    let mut policies = Vec::new();
    for (index, part) in given.composite_sub_policy.iter().enumerate() {
        policies.extend(composite_part(check, &format!("{place}[{index}]"), part));
        if !given.rate_allocation.iter().any(|share| share.policy == part.name) {
            let message = "has no share in `rateAllocation`, and keeps nothing";
            check.warn(format!("{place}[{index}]"), Reason::SamplingInvalid, message);
        }
    }
    for (index, share) in given.rate_allocation.iter().enumerate() {
        let path = format!("{path}.rateAllocation[{index}]");
        within_at(check, &format!("{path}.percent"), share.percent, 0, 100);
        if !given.composite_sub_policy.iter().any(|part| part.name == share.policy) {
            check.refuse(format!("{path}.policy"), Reason::SamplingInvalid, "names none of `compositeSubPolicy`");
        }
    }
    Rule::Composite {
        max_total_spans_per_second: given.max_total_spans_per_second,
        parts: policies,
        shares: given.rate_allocation.iter().map(|share| (share.policy.clone(), share.percent)).collect(),
    }
}

fn composite_part(check: &mut Check<'_>, path: &str, part: &CompositePart) -> Option<Policy> {
    let mut rules = plain(check, path, &part.plain);
    if let Some(and) = &part.and {
        rules.push(Rule::And(parts(check, &format!("{path}.and.andSubPolicy"), &and.and_sub_policy)));
    }
    only(check, path, &part.name, rules)
}

fn within_at(check: &mut Check<'_>, path: &str, value: i64, least: i64, most: i64) {
    within(path, Some(value), least, most, &mut check.problems);
}

/// The rules that stand anywhere.
fn plain(check: &mut Check<'_>, path: &str, plain: &Plain) -> Vec<Rule> {
    let mut rules = Vec::new();
    rules.extend(plain.always_sample.as_ref().map(|_| Rule::AlwaysSample));
    rules.extend(plain.trace_flags.as_ref().map(|_| Rule::TraceFlags));
    rules.extend(plain.status_code.as_ref().map(|status| {
        not_empty(check, &format!("{path}.statusCode.statusCodes"), &status.status_codes);
        Rule::StatusCode(status.status_codes.iter().map(|code| code_word(*code)).collect())
    }));
    rules.extend(plain.latency.as_ref().map(|latency| {
        let place = format!("{path}.latency");
        within_at(check, &format!("{place}.thresholdMs"), latency.threshold_ms, 0, i64::MAX);
        let upper = latency.upper_threshold_ms.filter(|upper| *upper != 0);
        if upper.is_some_and(|upper| upper <= latency.threshold_ms) {
            let message = "must be greater than `thresholdMs`";
            check.refuse(format!("{place}.upperThresholdMs"), Reason::SamplingInvalid, message);
        }
        Rule::Latency(latency.threshold_ms, upper)
    }));
    rules.extend(plain.probabilistic.as_ref().map(|probabilistic| {
        percent(check, &format!("{path}.probabilistic.samplingPercentage"), probabilistic.sampling_percentage);
        Rule::Probabilistic(probabilistic.sampling_percentage, probabilistic.hash_salt.clone())
    }));
    rules.extend(by_attribute(check, path, plain));
    rules.extend(by_amount(check, path, plain));
    rules
}

fn code_word(code: StatusCode) -> &'static str {
    match code {
        StatusCode::Unset => "UNSET",
        StatusCode::Ok => "OK",
        StatusCode::Error => "ERROR",
    }
}

fn by_attribute(check: &mut Check<'_>, path: &str, plain: &Plain) -> Vec<Rule> {
    let mut rules = Vec::new();
    if let Some(given) = &plain.string_attribute {
        let place = format!("{path}.stringAttribute.values");
        not_empty(check, &place, &given.values);
        for (index, value) in given.values.iter().enumerate().filter(|_| given.enabled_regex_matching) {
            if let Err(error) = Pattern::new(value) {
                let message = format!("is no regular expression: {error}");
                check.refuse(format!("{place}[{index}]"), Reason::SamplingInvalid, message);
            }
        }
        rules.push(Rule::StringAttribute {
            key: given.key.clone(),
            values: given.values.clone(),
            regex: given.enabled_regex_matching,
            invert: given.invert_match,
        });
    }
    if let Some(given) = &plain.numeric_attribute {
        let place = format!("{path}.numericAttribute");
        let (min, max) = (given.min_value.filter(|min| *min != 0), given.max_value.filter(|max| *max != 0));
        if min.is_none() && max.is_none() {
            let message = "has no bound, and 0 is none: set `minValue` or `maxValue`";
            check.refuse(&place, Reason::SamplingInvalid, message);
        }
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            check.refuse(&place, Reason::SamplingInvalid, "`minValue` is greater than `maxValue`");
        }
        rules.push(Rule::NumericAttribute { key: given.key.clone(), min, max, invert: given.invert_match });
    }
    if let Some(given) = &plain.boolean_attribute {
        let (key, value, invert) = (given.key.clone(), given.value, given.invert_match);
        rules.push(Rule::BooleanAttribute { key, value, invert });
    }
    if let Some(given) = &plain.trace_state {
        not_empty(check, &format!("{path}.traceState.values"), &given.values);
        rules.push(Rule::TraceState(given.key.clone(), given.values.clone()));
    }
    let keys = [
        ("stringAttribute", plain.string_attribute.as_ref().map(|given| &given.key)),
        ("numericAttribute", plain.numeric_attribute.as_ref().map(|given| &given.key)),
        ("booleanAttribute", plain.boolean_attribute.as_ref().map(|given| &given.key)),
        ("traceState", plain.trace_state.as_ref().map(|given| &given.key)),
    ];
    for (name, _) in keys.iter().filter(|(_, key)| key.is_some_and(String::is_empty)) {
        check.refuse(format!("{path}.{name}.key"), Reason::SamplingInvalid, "is empty");
    }
    rules
}

fn by_amount(check: &mut Check<'_>, path: &str, plain: &Plain) -> Vec<Rule> {
    let mut rules = Vec::new();
    if let Some(given) = &plain.span_count {
        let place = format!("{path}.spanCount");
        within_at(check, &format!("{place}.minSpans"), given.min_spans.into(), 0, i32::MAX.into());
        let max = given.max_spans.filter(|max| *max != 0);
        if max.is_some_and(|max| max < given.min_spans) {
            let message = "must not be less than `minSpans`";
            check.refuse(format!("{place}.maxSpans"), Reason::SamplingInvalid, message);
        }
        rules.push(Rule::SpanCount(given.min_spans, max));
    }
    if let Some(given) = &plain.rate_limiting {
        let place = format!("{path}.rateLimiting");
        within_at(check, &format!("{place}.spansPerSecond"), given.spans_per_second, 1, i64::MAX);
        within(&format!("{place}.burstCapacity"), given.burst_capacity, 1, i64::MAX, &mut check.problems);
        rules.push(Rule::RateLimiting(given.spans_per_second, given.burst_capacity));
    }
    if let Some(given) = &plain.bytes_limiting {
        let place = format!("{path}.bytesLimiting");
        within_at(check, &format!("{place}.bytesPerSecond"), given.bytes_per_second, 1, i64::MAX);
        within(&format!("{place}.burstCapacity"), given.burst_capacity, 1, i64::MAX, &mut check.problems);
        rules.push(Rule::BytesLimiting(given.bytes_per_second, given.burst_capacity));
    }
    rules
}
