//! `tail_sampling`: the Collector's documented examples, defaults, and refused settings.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use kubewake_config::{
    FixedSources, load,
    model::{PolicyRateLimit, ProcessorConfig, SamplingRule, SamplingStrategy, TailSamplingProcessor},
};

/// A document around an example, which has processors or the settings of one.
fn document(example: &str) -> String {
    let lines = || example.lines();
    let processors: String = if lines().any(|line| line == "processors:") {
        lines().map(|line| format!("{line}\n")).collect()
    } else {
        format!("processors:\n{}", lines().map(|line| format!("  {line}\n")).collect::<String>())
    };
    format!(
        "receivers:\n  otlp: {{protocols: {{grpc: }}}}\n{processors}exporters:\n  nop:\nservice:\n  pipelines:\n    \
         traces: {{receivers: [otlp], processors: [tail_sampling], exporters: [nop]}}\n"
    )
}

fn settings(example: &str) -> TailSamplingProcessor {
    let loaded = load(&document(example), &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}"));
    match loaded.document.processors.into_values().next().unwrap() {
        ProcessorConfig::TailSampling(settings) => *settings,
        other => panic!("{other:?}"),
    }
}

/// Settings on one line, with one valid policy.
fn with(settings: &str) -> String {
    document(&format!("tail_sampling: {{policies: [{{name: all, type: always_sample}}], {settings}}}"))
}

fn policy(policy: &str) -> String {
    document(&format!("tail_sampling: {{policies: [{policy}]}}"))
}

#[test]
fn the_documented_examples_load_unchanged() {
    let practical = settings(include_str!("tail_sampling/practical.yaml"));
    assert_eq!(practical.policies.len(), 7);
    let volume = settings(include_str!("tail_sampling/volume.yaml"));
    let limit = PolicyRateLimit { per_second: 1_048_576, burst: 5_242_880 };
    assert_eq!(volume.policies[0].rule, SamplingRule::BytesLimiting(limit));
}

#[test]
fn of_the_documented_policies_only_those_in_ottl_are_refused() {
    for (example, policies, in_ottl) in
        [(include_str!("tail_sampling/policies.yaml"), 18, 2), (include_str!("tail_sampling/detailed.yaml"), 15, 1)]
    {
        let errors = load(&document(example), &FixedSources::new()).unwrap_err();
        assert_eq!(errors.problems().len(), in_ottl, "{errors}");
        for problem in errors.problems() {
            assert!(problem.to_string().contains("`ottl_condition` is not supported by this build"), "{problem}");
        }
        // The rest of the example, with other policies in their place.
        let other = example.replace("type: ottl_condition", "type: always_sample");
        assert_eq!(settings(&other).policies.len(), policies);
    }
}

#[test]
fn defaults_are_the_collectors() {
    let settings = settings("tail_sampling: {policies: [{name: all, type: always_sample}]}");
    assert_eq!(settings.decision_wait, Duration::from_secs(30));
    assert_eq!((settings.num_traces, settings.sampled_cache_size, settings.non_sampled_cache_size), (50_000, 0, 0));
    assert_eq!(settings.strategy, SamplingStrategy::TraceComplete);
    assert!(settings.decision_wait_after_root.is_zero() && settings.maximum_trace_size == 0);
    assert!(!settings.sample_on_first_match && !settings.block_on_overflow && !settings.drop_pending_on_shutdown);
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let at = |rest: &str| format!("processors::tail_sampling::{rest}");
    for (text, path, words) in [
        (with("decision_wait: soon"), at("decision_wait"), "is not a duration"),
        (with("num_traces: -1"), at("num_traces"), "must not be negative"),
        (with("num_shards: 257"), at("num_shards"), "must be at most 256"),
        (with("sampling_strategy: later"), at("sampling_strategy"), "unknown `sampling_strategy` \"later\""),
        (with("tail_storage: pebble"), at("tail_storage"), "not supported by this build"),
        (with("overload_sampling_percentage: 101"), at("overload_sampling_percentage"), "between 0 and 100"),
        (with("decision_cache: {size: 5}"), at("decision_cache::size"), "unknown field"),
        (policy("{name: a, type: sometimes}"), at("policies::0::type"), "unknown sampling policy type \"sometimes\""),
        (policy("{type: always_sample}"), at("policies::0::name"), "must have a `name`"),
        (policy("{name: a}"), at("policies::0::type"), "must have a `type`"),
        (
            policy("{name: a, type: always_sample}, {name: a, type: trace_flags}"),
            at("policies::1::name"),
            "duplicate policy name \"a\"",
        ),
        (
            policy("{name: a, type: status_code, status_code: {status_codes: [error]}}"),
            at("policies::0::status_code::status_codes"),
            "unknown status code \"error\"",
        ),
        (
            policy(
                "{name: a, type: string_attribute, string_attribute: {key: k, values: ['('], enabled_regex_matching: true}}",
            ),
            at("policies::0::string_attribute::values"),
            "invalid regular expression \"(\"",
        ),
        (
            policy("{name: a, type: and, and: {and_sub_policy: [{name: d, type: drop}]}}"),
            at("policies::0::and::and_sub_policy::0::type"),
            "a policy of type `drop` cannot be part of `and` or `drop`",
        ),
        (
            policy(
                "{name: a, type: and, and: {and_sub_policy: [{name: b, type: and, and: {and_sub_policy: [{name: c, type: always_sample}]}}]}}",
            ),
            at("policies::0::and::and_sub_policy::0::type"),
            "move its sub-policies up",
        ),
        (
            policy("{name: a, type: not, not: {not_sub_policy: {name: b, type: composite}}}"),
            at("policies::0::not::not_sub_policy::type"),
            "a policy of type `composite` cannot be part of `not`",
        ),
        (
            policy("{name: a, type: probabilistic, probabilistic: {sampling_percentage: .nan}}"),
            at("policies::0::probabilistic::sampling_percentage"),
            "must be a number",
        ),
        (
            policy(r#"{name: a, type: ottl_condition, ottl_condition: {span: ['attributes["a"] == "b"']}}"#),
            at("policies::0::type"),
            r#"ottl_condition: {span: ['attributes["a"] == "b"']}"#,
        ),
        (policy("{name: a, type: and}"), at("policies::0::and::and_sub_policy"), "must hold at least one policy"),
        (
            policy("{name: a, type: latency, latency: {threshold: 5}}"),
            at("policies::0::latency::threshold"),
            "unknown field `threshold`",
        ),
        (
            document(
                "tail_sampling: {sampling_strategy: span-ingest, policies: [{name: slow, type: rate_limiting, \
                 rate_limiting: {spans_per_second: 1}}]}",
            ),
            at("sampling_strategy"),
            "needs stateless policies, and \"slow\" is stateful",
        ),
    ] {
        let errors = load(&text, &FixedSources::new()).err().unwrap_or_else(|| panic!("taken: {text}"));
        let problems = errors.problems();
        assert_eq!(problems.len(), 1, "{text}\n{errors}");
        assert!(!errors.to_string().contains("has no effect"), "{text}\n{errors}");
        assert_eq!(problems[0].path, path, "{errors}");
        assert!(problems[0].to_string().contains(words), "lacks {words:?}\n{errors}");
    }
}

/// A policy that keeps a percentage.
fn chance(name: &str, percentage: u32, salt: &str) -> String {
    format!(
        "{{name: {name}, type: probabilistic, probabilistic: {{sampling_percentage: {percentage}, hash_salt: '{salt}'}}}}"
    )
}

/// A composite of two policies with these shares.
fn shares(shares: &str) -> String {
    policy(&format!(
        "{{name: a, type: composite, composite: {{max_total_spans_per_second: 10, composite_sub_policy: [{{name: x, \
         type: always_sample}}, {{name: y, type: always_sample}}], rate_allocation: [{shares}]}}}}"
    ))
}

#[test]
fn what_is_meant_is_taken_without_a_word() {
    for text in [
        shares("{policy: x, percent: 40}, {policy: y, percent: 60}"),
        policy("{name: a, type: latency, latency: {threshold_ms: 5, upper_threshold_ms: 6}}"),
        policy("{name: a, type: latency, latency: {upper_threshold_ms: 6}}"),
        policy("{name: a, type: span_count, span_count: {max_spans: 2}}"),
        policy("{name: a, type: rate_limiting, rate_limiting: {spans_per_second: 1}}"),
        policy("{name: a, type: numeric_attribute, numeric_attribute: {key: k, min_value: -5, max_value: -1}}"),
        policy(&format!(
            "{}, {}, {}",
            chance("a", 10, ""),
            chance("b", 20, "default-hash-seed"),
            chance("c", 100, "x")
        )),
        policy(&format!("{{name: d, type: drop, drop: {{drop_sub_policy: [{}]}}}}", chance("a", 100, ""))),
        with("sampling_strategy: span-ingest"),
    ] {
        let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        assert_eq!(loaded.warnings, [], "{text}");
    }
}

#[test]
fn what_has_no_effect_is_said() {
    for (text, words) in [
        (policy("{name: a, type: always_sample, latency: {threshold_ms: 1}}"), "the policy is of another type"),
        (policy("{name: a, type: always_sample, extra: {x: 1}}"), "no such policy type is known"),
        (policy("{name: a, type: numeric_attribute, numeric_attribute: {key: k}}"), "any number matches"),
        (policy("{name: a, type: probabilistic, probabilistic: {sampling_percentage: 150}}"), "not between 0 and 100"),
        (
            policy(
                "{name: a, type: composite, composite: {max_total_spans_per_second: 10, policy_order: [x], \
                 composite_sub_policy: [{name: y, type: always_sample}], rate_allocation: [{policy: y, percent: 50}]}}",
            ),
            "`policy_order` has no effect",
        ),
        (document("tail_sampling: {decision_wait: 1s}"), "the processor has no policies"),
        (with("num_traces: 0"), "`num_traces: 0` means 1"),
        (policy("{name: a, type: numeric_attribute, numeric_attribute: {min_value: 1}}"), "`key` is missing"),
        (policy("{name: a, type: boolean_attribute}"), "`key` is missing"),
        (policy("{name: a, type: string_attribute, string_attribute: {key: k}}"), "`values` is empty"),
        (policy("{name: a, type: trace_state, trace_state: {key: k}}"), "`values` is empty"),
        (
            policy("{name: a, type: numeric_attribute, numeric_attribute: {key: k, min_value: 5, max_value: 1}}"),
            "`max_value` is below `min_value`",
        ),
        (policy("{name: a, type: latency, latency: {threshold_ms: 5, upper_threshold_ms: 5}}"), "no trace matches"),
        (policy("{name: a, type: latency, latency: {threshold_ms: -5}}"), "every trace matches"),
        (policy("{name: a, type: span_count, span_count: {min_spans: 5, max_spans: 2}}"), "no trace matches"),
        (policy("{name: a, type: span_count}"), "every trace matches"),
        (policy("{name: a, type: rate_limiting, rate_limiting: {spans_per_second: -1}}"), "is not positive"),
        (policy("{name: a, type: bytes_limiting}"), "`bytes_per_second` is not positive"),
        (
            policy("{name: a, type: rate_limiting, rate_limiting: {spans_per_second: 1, burst_capacity: -1}}"),
            "a negative `burst_capacity`",
        ),
        (policy("{name: a, type: probabilistic}"), "no trace is kept"),
        (policy("{name: a, type: composite}"), "`max_total_spans_per_second` is not positive"),
        (policy("{name: a, type: composite}"), "`composite_sub_policy` is empty"),
        (shares("{policy: z, percent: 50}"), "`composite_sub_policy` has no policy \"z\""),
        (shares("{policy: y, percent: 60}, {policy: x, percent: 60}"), "allocates 120 %"),
        (shares("{policy: y, percent: -60}"), "means an equal share"),
        (shares("{policy: y}"), "means an equal share"),
        (shares("{policy: y, percent: 10}, {policy: y, percent: 20}"), "another share below"),
        (policy(&format!("{}, {}", chance("a", 10, ""), chance("b", 20, "x"))), "have different `hash_salt`s"),
        (
            policy(&format!(
                "{{name: d, type: and, and: {{and_sub_policy: [{}, {}]}}}}",
                chance("a", 1, ""),
                chance("b", 2, "x")
            )),
            "have different `hash_salt`s",
        ),
        (
            policy(&format!("{{name: d, type: drop, drop: {{drop_sub_policy: [{}]}}}}", chance("a", 90, ""))),
            "does not account for it",
        ),
        (
            document(
                "tail_sampling: {sampling_strategy: span-ingest, policies: [{name: all, type: always_sample}, \
                 {name: d, type: drop, drop: {drop_sub_policy: [{name: f, type: trace_flags}]}}]}",
            ),
            "no trace is kept: with `span-ingest`",
        ),
    ] {
        let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{text}\n{errors}"));
        let warnings: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
        assert!(warnings.iter().any(|warning| warning.contains(words)), "{text}\n{warnings:?}");
    }
}
