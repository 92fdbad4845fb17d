//! `spec.sampling`: validation, and conversion to the collector's form.

use kubewake_config::{
    RegexPattern,
    model::{CompositePart, PolicyRateLimit, SamplingPolicy, SamplingRule, TailSamplingProcessor, TextValues},
};

use super::{
    context::ValidationContext,
    sending::{check_range, duration},
};
use crate::{
    ConditionReason, Signal, TelemetryPipeline,
    v1alpha1::{self, AndPart, CompositePolicy, NotPolicy, PlainRules, StatusCode, TailSamplingOptions},
    valid_pipeline::ValidSampling,
};

/// The smallest percentage that consistent sampling can express.
const MIN_PERCENTAGE: f64 = 100.0 / (1_u64 << 56) as f64;

pub(super) fn sampling(check: &mut ValidationContext<'_>, pipeline: &TelemetryPipeline) -> ValidSampling {
    let Some(given) = &pipeline.sampling else { return ValidSampling::default() };
    if pipeline.signal != Signal::Traces {
        check.refuse("spec.sampling", ConditionReason::SamplingInvalid, "is only supported for traces");
    }
    if let Some(percentage) = given.percentage {
        percent(check, "spec.sampling.percentage", percentage);
    }
    ValidSampling { percentage: given.percentage, tail: given.tail.as_ref().map(|tail| self::tail(check, tail)) }
}

fn percent(check: &mut ValidationContext<'_>, path: &str, percentage: f64) {
    if !(0.0..=100.0).contains(&percentage) || percentage > 0.0 && percentage < MIN_PERCENTAGE {
        check.refuse(path, ConditionReason::SamplingInvalid, "must be from 0 to 100");
    } else if percentage == 0.0 {
        check.warn(path, ConditionReason::SamplingInvalid, "is 0: no traces are kept");
    }
}

const TAIL_PATH: &str = "spec.sampling.tail";

fn tail(check: &mut ValidationContext<'_>, tail: &TailSamplingOptions) -> TailSamplingProcessor {
    let mut time = |name: &str, text: &Option<String>| {
        text.as_deref().and_then(|text| duration(&format!("{TAIL_PATH}.{name}"), text, &mut check.problems))
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
        check_range(&format!("{TAIL_PATH}.{name}"), value, least, most, &mut check.problems);
    }
    if tail.policies.is_empty() {
        check.refuse(
            format!("{TAIL_PATH}.policies"),
            ConditionReason::SamplingInvalid,
            "must hold at least one policy",
        );
    }
    let default = TailSamplingProcessor::default();
    let count = |given: Option<i64>| given.and_then(|given| usize::try_from(given).ok());
    TailSamplingProcessor {
        decision_wait: decision_wait.unwrap_or(default.decision_wait),
        decision_wait_after_root: after_root.unwrap_or(default.decision_wait_after_root),
        num_traces: count(tail.num_traces).unwrap_or(default.num_traces),
        sampled_cache_size: count(cache.sampled_cache_size).unwrap_or(default.sampled_cache_size),
        non_sampled_cache_size: count(cache.non_sampled_cache_size).unwrap_or(default.non_sampled_cache_size),
        sample_on_first_match: tail.sample_on_first_match,
        maximum_trace_size: tail.maximum_trace_size_bytes.map_or(default.maximum_trace_size, i64::unsigned_abs),
        late_error_wait: late_error_wait.unwrap_or(default.late_error_wait),
        policies: policies(check, &tail.policies),
        ..default
    }
}

fn policies(check: &mut ValidationContext<'_>, given: &[v1alpha1::TailSamplingPolicy]) -> Vec<SamplingPolicy> {
    let mut seen = std::collections::HashSet::new();
    let mut policies = Vec::new();
    for (index, policy) in given.iter().enumerate() {
        let path = format!("{TAIL_PATH}.policies[{index}]");
        if !seen.insert(&policy.name) {
            check.refuse(format!("{path}.name"), ConditionReason::SamplingInvalid, "is the name of another policy");
        }
        policies.extend(top_level_policy(check, &path, policy));
    }
    policies
}

fn top_level_policy(
    check: &mut ValidationContext<'_>,
    path: &str,
    policy: &v1alpha1::TailSamplingPolicy,
) -> Option<SamplingPolicy> {
    let mut rules = plain(check, path, &policy.plain);
    if let Some(and) = &policy.and {
        rules.push(SamplingRule::And(parts(check, &format!("{path}.and.andSubPolicy"), &and.and_sub_policy)));
    }
    if let Some(drop) = &policy.drop {
        rules.push(SamplingRule::Drop(parts(check, &format!("{path}.drop.dropSubPolicy"), &drop.drop_sub_policy)));
    }
    if let Some(not) = &policy.not {
        rules.extend(self::not(check, path, not));
    }
    if let Some(composite) = &policy.composite {
        rules.push(self::composite(check, &format!("{path}.composite"), composite));
    }
    require_one_rule(check, path, &policy.name, rules)
}

/// Checks that a policy has exactly one rule, and returns it.
fn require_one_rule(
    check: &mut ValidationContext<'_>,
    path: &str,
    name: &str,
    mut rules: Vec<SamplingRule>,
) -> Option<SamplingPolicy> {
    if name.is_empty() {
        check.refuse(format!("{path}.name"), ConditionReason::SamplingInvalid, "is empty");
    }
    match (rules.pop(), rules.is_empty()) {
        (Some(rule), true) => Some(SamplingPolicy { name: name.to_owned(), rule }),
        _ => {
            check.refuse(path, ConditionReason::SamplingInvalid, "a policy has exactly one rule");
            None
        }
    }
}

fn parts(check: &mut ValidationContext<'_>, path: &str, parts: &[AndPart]) -> Vec<SamplingPolicy> {
    not_empty(check, path, parts);
    let mut policies = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let mut rules = plain(check, &path, &part.plain);
        if let Some(not) = &part.not {
            rules.extend(self::not(check, &path, not));
        }
        policies.extend(require_one_rule(check, &path, &part.name, rules));
    }
    policies
}

fn not_empty<T>(check: &mut ValidationContext<'_>, path: &str, list: &[T]) {
    if list.is_empty() {
        check.refuse(path, ConditionReason::SamplingInvalid, "must not be empty");
    }
}

fn not(check: &mut ValidationContext<'_>, path: &str, not: &NotPolicy) -> Option<SamplingRule> {
    let path = format!("{path}.not.notSubPolicy");
    let rules = plain(check, &path, &not.not_sub_policy.plain);
    let policy = require_one_rule(check, &path, &not.not_sub_policy.name, rules)?;
    Some(SamplingRule::Not(Box::new(policy)))
}

fn composite(check: &mut ValidationContext<'_>, path: &str, given: &CompositePolicy) -> SamplingRule {
    within_at(check, &format!("{path}.maxTotalSpansPerSecond"), given.max_total_spans_per_second, 1, i64::MAX);
    let place = format!("{path}.compositeSubPolicy");
    not_empty(check, &place, &given.composite_sub_policy);
    let mut policies = Vec::new();
    for (index, part) in given.composite_sub_policy.iter().enumerate() {
        policies.extend(composite_part(check, &format!("{place}[{index}]"), part));
        if !given.rate_allocation.iter().any(|share| share.policy == part.name) {
            let message = "has no share in `rateAllocation`, and keeps nothing";
            check.warn(format!("{place}[{index}]"), ConditionReason::SamplingInvalid, message);
        }
    }
    for (index, share) in given.rate_allocation.iter().enumerate() {
        let path = format!("{path}.rateAllocation[{index}]");
        within_at(check, &format!("{path}.percent"), share.percent, 0, 100);
        if !given.composite_sub_policy.iter().any(|part| part.name == share.policy) {
            check.refuse(
                format!("{path}.policy"),
                ConditionReason::SamplingInvalid,
                "is not the name of a policy in `compositeSubPolicy`",
            );
        }
    }
    let percent = |policy: &SamplingPolicy| {
        given.rate_allocation.iter().rfind(|share| share.policy == policy.name).map(|share| share.percent)
    };
    let parts = policies.into_iter().map(|policy| CompositePart { percent: percent(&policy), policy }).collect();
    SamplingRule::Composite { max_total: given.max_total_spans_per_second, parts }
}

fn composite_part(
    check: &mut ValidationContext<'_>,
    path: &str,
    part: &v1alpha1::CompositePart,
) -> Option<SamplingPolicy> {
    let mut rules = plain(check, path, &part.plain);
    if let Some(and) = &part.and {
        rules.push(SamplingRule::And(parts(check, &format!("{path}.and.andSubPolicy"), &and.and_sub_policy)));
    }
    require_one_rule(check, path, &part.name, rules)
}

fn within_at(check: &mut ValidationContext<'_>, path: &str, value: i64, least: i64, most: i64) {
    check_range(path, Some(value), least, most, &mut check.problems);
}

/// The rules that are allowed at any level.
fn plain(check: &mut ValidationContext<'_>, path: &str, plain: &PlainRules) -> Vec<SamplingRule> {
    let mut rules = Vec::new();
    rules.extend(plain.always_sample.as_ref().map(|_| SamplingRule::Always));
    rules.extend(plain.trace_flags.as_ref().map(|_| SamplingRule::TraceFlags));
    rules.extend(plain.status_code.as_ref().map(|status| {
        not_empty(check, &format!("{path}.statusCode.statusCodes"), &status.status_codes);
        SamplingRule::Status { codes: status.status_codes.iter().map(|code| code_number(*code)).collect() }
    }));
    rules.extend(plain.latency.as_ref().map(|latency| {
        let place = format!("{path}.latency");
        within_at(check, &format!("{place}.thresholdMs"), latency.threshold_ms, 0, i64::MAX);
        let upper = latency.upper_threshold_ms.filter(|upper| *upper != 0);
        if upper.is_some_and(|upper| upper <= latency.threshold_ms) {
            let message = "must be greater than `thresholdMs`";
            check.refuse(format!("{place}.upperThresholdMs"), ConditionReason::SamplingInvalid, message);
        }
        SamplingRule::Latency { threshold: latency.threshold_ms, upper: upper.unwrap_or(0) }
    }));
    rules.extend(plain.probabilistic.as_ref().map(|probabilistic| {
        percent(check, &format!("{path}.probabilistic.samplingPercentage"), probabilistic.sampling_percentage);
        SamplingRule::Probabilistic {
            salt: probabilistic.hash_salt.clone().unwrap_or_default(),
            percentage: probabilistic.sampling_percentage,
        }
    }));
    rules.extend(by_attribute(check, path, plain));
    rules.extend(by_amount(check, path, plain));
    rules
}

/// The number of a status code in OTLP.
fn code_number(code: StatusCode) -> i32 {
    match code {
        StatusCode::Unset => 0,
        StatusCode::Ok => 1,
        StatusCode::Error => 2,
    }
}

fn patterns(check: &mut ValidationContext<'_>, path: &str, texts: &[String]) -> Vec<RegexPattern> {
    let mut patterns = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        match RegexPattern::new(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => {
                let message = format!("is not a valid regular expression: {error}");
                check.refuse(format!("{path}[{index}]"), ConditionReason::SamplingInvalid, message);
            }
        }
    }
    patterns
}

fn by_attribute(check: &mut ValidationContext<'_>, path: &str, plain: &PlainRules) -> Vec<SamplingRule> {
    let mut rules = Vec::new();
    if let Some(given) = &plain.string_attribute {
        let place = format!("{path}.stringAttribute.values");
        not_empty(check, &place, &given.values);
        let values = if given.enabled_regex_matching {
            TextValues::Patterns(patterns(check, &place, &given.values))
        } else {
            TextValues::Exact(given.values.clone())
        };
        rules.push(SamplingRule::Text { key: given.key.clone(), values, invert: given.invert_match });
    }
    if let Some(given) = &plain.numeric_attribute {
        let place = format!("{path}.numericAttribute");
        let min = given.min_value.filter(|min| *min != 0);
        let max = given.max_value.filter(|max| *max != 0);
        if min.is_none() && max.is_none() {
            let message = "has no limit: set `minValue` or `maxValue` to a value other than 0";
            check.refuse(&place, ConditionReason::SamplingInvalid, message);
        }
        if min.zip(max).is_some_and(|(min, max)| min > max) {
            check.refuse(&place, ConditionReason::SamplingInvalid, "`minValue` is greater than `maxValue`");
        }
        rules.push(SamplingRule::Numeric {
            key: given.key.clone(),
            min: min.unwrap_or(i64::MIN),
            max: max.unwrap_or(i64::MAX),
            invert: given.invert_match,
        });
    }
    if let Some(given) = &plain.boolean_attribute {
        let key = given.key.clone();
        let value = given.value;
        let invert = given.invert_match;
        rules.push(SamplingRule::Boolean { key, value, invert });
    }
    if let Some(given) = &plain.trace_state {
        not_empty(check, &format!("{path}.traceState.values"), &given.values);
        rules.push(SamplingRule::TraceState { key: given.key.clone(), values: given.values.clone() });
    }
    let keys = [
        ("stringAttribute", plain.string_attribute.as_ref().map(|given| &given.key)),
        ("numericAttribute", plain.numeric_attribute.as_ref().map(|given| &given.key)),
        ("booleanAttribute", plain.boolean_attribute.as_ref().map(|given| &given.key)),
        ("traceState", plain.trace_state.as_ref().map(|given| &given.key)),
    ];
    for (name, _) in keys.iter().filter(|(_, key)| key.is_some_and(String::is_empty)) {
        check.refuse(format!("{path}.{name}.key"), ConditionReason::SamplingInvalid, "is empty");
    }
    rules
}

/// The burst is twice the rate unless it is set.
fn rate_limit(per_second: i64, burst: Option<i64>) -> PolicyRateLimit {
    PolicyRateLimit { per_second, burst: burst.unwrap_or(per_second.saturating_mul(2)) }
}

fn by_amount(check: &mut ValidationContext<'_>, path: &str, plain: &PlainRules) -> Vec<SamplingRule> {
    let mut rules = Vec::new();
    if let Some(given) = &plain.span_count {
        let place = format!("{path}.spanCount");
        within_at(check, &format!("{place}.minSpans"), given.min_spans.into(), 0, i32::MAX.into());
        let max = given.max_spans.filter(|max| *max != 0);
        if max.is_some_and(|max| max < given.min_spans) {
            let message = "must not be less than `minSpans`";
            check.refuse(format!("{place}.maxSpans"), ConditionReason::SamplingInvalid, message);
        }
        rules.push(SamplingRule::SpanCount { min: given.min_spans.into(), max: max.unwrap_or(0).into() });
    }
    if let Some(given) = &plain.rate_limiting {
        let place = format!("{path}.rateLimiting");
        within_at(check, &format!("{place}.spansPerSecond"), given.spans_per_second, 1, i64::MAX);
        check_range(&format!("{place}.burstCapacity"), given.burst_capacity, 1, i64::MAX, &mut check.problems);
        rules.push(SamplingRule::RateLimiting(rate_limit(given.spans_per_second, given.burst_capacity)));
    }
    if let Some(given) = &plain.bytes_limiting {
        let place = format!("{path}.bytesLimiting");
        within_at(check, &format!("{place}.bytesPerSecond"), given.bytes_per_second, 1, i64::MAX);
        check_range(&format!("{place}.burstCapacity"), given.burst_capacity, 1, i64::MAX, &mut check.problems);
        rules.push(SamplingRule::BytesLimiting(rate_limit(given.bytes_per_second, given.burst_capacity)));
    }
    rules
}
