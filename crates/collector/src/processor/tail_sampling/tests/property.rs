//! For arbitrary policies, traces and arrivals: the kept traces are those that the model keeps, and whole.

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, Status},
};
use proptest::prelude::*;

use super::{
    model,
    support::{START, Setup, attribute, settings, span},
};
use crate::core::Processor;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec!["", "a", "ab", "b"]).prop_map(|text| Value::StringValue(text.into())),
        (-2..4_i64).prop_map(Value::IntValue),
        any::<bool>().prop_map(Value::BoolValue),
        Just(Value::DoubleValue(1.5)),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    // The same key twice now and then: the first one counts.
    let one = (prop::sample::select(vec!["k", "n", "other"]), value()).prop_map(|(key, value)| attribute(key, value));
    prop::collection::vec(one, 0..3)
}

fn any_span() -> impl Strategy<Value = Span> {
    let ids = prop::sample::select(vec![0, 1, 2, 3, 7 << 64 | 9, u128::MAX]);
    let states = prop::sample::select(vec!["", "", "", "v=1", "w=2,v=1", "ot=th:8", "ot=rv:40000000000000"]);
    let times = (0..4_u64, 0..4_u64);
    (ids, states, times, 0..3_i32, 0..4_u32, attributes()).prop_map(
        |(id, state, (start, end), code, flags, attributes)| Span {
            trace_state: state.into(),
            start_time_unix_nano: START + start * 100_000_000,
            end_time_unix_nano: START + end * 100_000_000,
            status: (code > 0).then(|| Status { code, ..Status::default() }),
            flags,
            attributes,
            ..span(id)
        },
    )
}

fn any_request() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let scope = prop::collection::vec(any_span(), 0..4).prop_map(|spans| ScopeSpans { spans, ..ScopeSpans::default() });
    let resource =
        (attributes(), prop::collection::vec(scope, 1..3)).prop_map(|(attributes, scope_spans)| ResourceSpans {
            resource: Some(Resource { attributes, ..Resource::default() }),
            scope_spans,
            ..ResourceSpans::default()
        });
    prop::collection::vec(resource, 0..3).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

fn leaf() -> impl Strategy<Value = String> {
    let key = || prop::sample::select(vec!["k", "n"]);
    prop_oneof![
        Just("type: always_sample".to_owned()),
        Just("type: trace_flags".to_owned()),
        (0..400_i64, prop_oneof![Just(0), 1..500_i64])
            .prop_map(|(low, high)| format!("type: latency, latency: {{threshold_ms: {low}, upper_threshold_ms: {high}}}")),
        (key(), -2..3_i64, -2..3_i64, any::<bool>()).prop_map(|(key, min, max, invert)| format!(
            "type: numeric_attribute, numeric_attribute: {{key: {key}, min_value: {min}, max_value: {max}, invert_match: {invert}}}"
        )),
        (key(), any::<bool>(), any::<bool>()).prop_map(|(key, value, invert)| format!(
            "type: boolean_attribute, boolean_attribute: {{key: {key}, value: {value}, invert_match: {invert}}}"
        )),
        (key(), prop::sample::select(vec!["a", "ab", "^a", "b$", "''"]), any::<bool>(), any::<bool>()).prop_map(
            |(key, value, regex, invert)| format!(
                "type: string_attribute, string_attribute: {{key: {key}, values: [{value}], enabled_regex_matching: {regex}, \
                 invert_match: {invert}}}"
            )
        ),
        (prop::sample::select(vec![0, 10, 50, 90, 100]), prop::sample::select(vec!["''", "salt"])).prop_map(
            |(percent, salt)| format!("type: probabilistic, probabilistic: {{sampling_percentage: {percent}, hash_salt: {salt}}}")
        ),
        prop::sample::select(vec!["OK", "ERROR", "UNSET", "OK, ERROR"])
            .prop_map(|codes| format!("type: status_code, status_code: {{status_codes: [{codes}]}}")),
        (0..6, 0..6).prop_map(|(min, max)| format!("type: span_count, span_count: {{min_spans: {min}, max_spans: {max}}}")),
        prop::sample::select(vec!["'1'", "'2'"])
            .prop_map(|value| format!("type: trace_state, trace_state: {{key: v, values: [{value}]}}")),
    ]
}

/// A sub-policy, perhaps inverted.
fn part() -> impl Strategy<Value = String> {
    let not = leaf().prop_map(|leaf| format!("type: not, not: {{not_sub_policy: {{name: inner, {leaf}}}}}"));
    prop_oneof![3 => leaf(), 1 => not]
}

fn list(parts: Vec<String>) -> String {
    let named = parts.iter().enumerate().map(|(at, part)| format!("{{name: p{at}, {part}}}"));
    named.collect::<Vec<_>>().join(", ")
}

fn policy() -> impl Strategy<Value = String> {
    let several = |part| prop::collection::vec(part, 1..4);
    prop_oneof![
        4 => part(),
        1 => several(part().boxed()).prop_map(|parts| format!("type: and, and: {{and_sub_policy: [{}]}}", list(parts))),
        1 => several(part().boxed()).prop_map(|parts| format!("type: drop, drop: {{drop_sub_policy: [{}]}}", list(parts))),
        1 => several(leaf().boxed()).prop_map(|parts| {
            let shares: Vec<String> = (0..parts.len()).map(|at| format!("{{policy: p{at}, percent: 0}}")).collect();
            format!(
                "type: composite, composite: {{max_total_spans_per_second: 1000000, composite_sub_policy: [{}], \
                 rate_allocation: [{}]}}",
                list(parts),
                shares.join(", ")
            )
        }),
    ]
}

/// Policies that depend on earlier traces. Sizes are such that bytes around the padding do not matter.
fn limited() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..6, 0..8).prop_map(|(rate, burst)| format!(
            "type: rate_limiting, rate_limiting: {{spans_per_second: {rate}, burst_capacity: {burst}}}"
        )),
        (0..3_usize, 0..8_usize).prop_map(|(rate, burst)| format!(
            "type: bytes_limiting, bytes_limiting: {{bytes_per_second: {}, burst_capacity: {}}}",
            rate * 10 * PAD,
            burst * PAD + PAD / 2
        )),
    ]
}

/// A policy that contains a limit.
fn limiting() -> impl Strategy<Value = String> {
    let errors = || Just("type: status_code, status_code: {status_codes: [ERROR]}".to_owned());
    let part = || prop_oneof![2 => limited(), 1 => errors(), 1 => Just("type: always_sample".to_owned())];
    let some = |part| prop::collection::vec(part, 1..4);
    let not = limited().prop_map(|inner| format!("type: not, not: {{not_sub_policy: {{name: inner, {inner}}}}}"));
    let composite = (1..12, prop::collection::vec((part(), 0..60), 1..4)).prop_map(|(most, parts)| {
        let (parts, shares): (Vec<_>, Vec<i32>) = parts.into_iter().unzip();
        let shares = shares.iter().enumerate().map(|(at, share)| format!("{{policy: p{at}, percent: {share}}}"));
        format!(
            "type: composite, composite: {{max_total_spans_per_second: {most}, composite_sub_policy: [{}], \
             rate_allocation: [{}]}}",
            list(parts),
            shares.collect::<Vec<_>>().join(", ")
        )
    });
    prop_oneof![
        3 => limited(),
        1 => not,
        1 => some(part().boxed()).prop_map(|parts| format!("type: and, and: {{and_sub_policy: [{}]}}", list(parts))),
        1 => some(part().boxed()).prop_map(|parts| format!("type: drop, drop: {{drop_sub_policy: [{}]}}", list(parts))),
        3 => composite,
    ]
}

const PAD: usize = 4000;

/// The delay of a trace after the one before, in ticks, and its spans: error or not, and length.
fn one_trace() -> impl Strategy<Value = (u64, Vec<(bool, usize)>)> {
    (1..8_u64, prop::collection::vec((any::<bool>(), 0..3_usize), 1..4))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn limits_let_through_what_the_model_lets_through(
        policies in prop::collection::vec(limiting(), 1..4),
        traces in prop::collection::vec(one_trace(), 1..16),
        reload_at in 0..16_usize,
    ) {
        const WAIT: i64 = 10;
        let text = |more: &str| format!("decision_wait: 1s\nnum_shards: 1\npolicies: [{}{more}]", list(policies.clone()));
        let before = settings(&text(""));
        let after = settings(&text(", {name: more, type: trace_state, trace_state: {key: z, values: [z]}}"));
        let spans = |id: u128, spans: &[(bool, usize)]| -> Vec<Span> {
            let one = |(is_error, pads): &(bool, usize)| Span {
                attributes: vec![super::support::text("pad", &"x".repeat(pads * PAD))],
                ..if *is_error { super::support::error(id) } else { span(id) }
            };
            spans.iter().map(one).collect()
        };
        let mut world = model::RateLimitModel::default();
        let mut now = 0;
        let mut expected = std::collections::BTreeMap::new();
        for (id, (gap, trace)) in (1_u128..).zip(&traces) {
            now += *gap as i64;
            world.tick = now + WAIT + 1;
            let trace = spans(id, trace).into_iter().map(|span| (Vec::new(), span)).collect::<Vec<_>>();
            if model::keeps(&before.policies, id, &trace, &mut world) {
                expected.insert(id, trace.len());
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let kept = runtime.block_on(async {
            let setup = Setup::with_settings(before.clone());
            for (at, (gap, trace)) in traces.iter().enumerate() {
                setup.pass(gap * 100).await;
                if at == reload_at {
                    // Unchanged limits keep the part that is used up.
                    setup.sampler.reconfigure(after.clone());
                }
                setup.send(spans(at as u128 + 1, trace)).await;
            }
            setup.pass(2000).await;
            setup.kept()
        });
        prop_assert_eq!(kept, expected, "{}", text(""));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_are_whole_traces_that_the_model_keeps(
        policies in prop::collection::vec(policy(), 1..4),
        requests in prop::collection::vec(any_request(), 0..6),
        first_match in any::<bool>(),
        reload in any::<bool>(),
        shards in 1..4,
    ) {
        let head = format!("decision_wait: 5s\nnum_shards: {shards}\nsample_on_first_match: {first_match}\n");
        let text = format!("{head}policies: [{}]", list(policies));
        let settings_now = settings(&text);
        let expected: std::collections::BTreeMap<u128, usize> = model::traces(&requests)
            .into_iter()
            .filter(|(id, trace)| model::keeps(&settings_now.policies, *id, trace, &mut model::RateLimitModel::default()))
            .map(|(id, trace)| (id, trace.len()))
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let kept = runtime.block_on(async {
            // Policies that apply while traces wait must decide as policies that were there from the start.
            let before = format!("decision_wait: 5s\nnum_shards: {shards}\npolicies: [{{name: none, type: span_count, span_count: {{min_spans: 9999}}}}]");
            let setup = Setup::new(if reload { &before } else { &text });
            for (at, request) in requests.iter().enumerate() {
                setup.try_send(request).await.unwrap();
                if reload && at == 1 {
                    setup.sampler.reconfigure(settings_now.clone());
                }
                setup.pass(100).await;
            }
            setup.sampler.reconfigure(settings_now.clone());
            setup.pass(6000).await;
            setup.sampler.flush().await;
            setup.kept()
        });
        prop_assert_eq!(kept, expected, "{}", text);
    }
}
