//! The time of decisions, and the fate of early and late spans.

use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value};

use super::support::*;
use crate::core::{Processor, SamplingOutcome};

const ERRORS: &str =
    "decision_wait: 5s\npolicies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]";
const ALL: &str = "policies: [{name: all, type: always_sample}]";

fn kept<const N: usize>(traces: [(u128, usize); N]) -> std::collections::BTreeMap<u128, usize> {
    traces.into()
}

#[tokio::test(start_paused = true)]
async fn a_trace_is_decided_on_when_its_time_has_passed_and_as_a_whole() {
    let setup = Setup::new(ERRORS);
    setup.send(vec![span(1), span(2)]).await;
    setup.pass(4000).await;
    setup.send(vec![error(1), span(2)]).await;
    assert!(setup.kept().is_empty());
    setup.pass(900).await;
    assert!(setup.kept().is_empty(), "not before its time");
    setup.pass(300).await;
    assert_eq!(setup.kept(), kept([(1, 2)]));
    assert_eq!(setup.stats.decisions(SamplingOutcome::Sampled), 1);
    assert_eq!(setup.stats.decisions(SamplingOutcome::NotSampled), 1);
}

#[tokio::test(start_paused = true)]
async fn what_leaves_together_can_be_taken_apart_by_who_sent_it() {
    let setup = Setup::new(&format!("num_shards: 1\ndecision_wait: 5s\n{ALL}"));
    // The senders have equal resources, and a trace in common.
    for trace in [1, 2, 3] {
        setup.send(vec![span(9), span(trace), span(trace)]).await;
    }
    setup.pass(6000).await;
    let traces = |request: &ExportTraceServiceRequest| {
        let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        let mut traces: Vec<u8> = scopes.flat_map(|scope| &scope.spans).map(|span| span.trace_id[15]).collect();
        traces.sort();
        traces
    };
    let mut requests: Vec<Vec<u8>> = setup.backend.requests().iter().map(traces).collect();
    requests.sort();
    assert_eq!(requests, [[1, 1, 9], [2, 2, 9], [3, 3, 9]]);
    assert_eq!(setup.backend.batches(), 1);
}

#[tokio::test(start_paused = true)]
async fn late_spans_follow_the_decision() {
    let setup = Setup::new(ERRORS);
    setup.send(vec![error(1), span(2)]).await;
    setup.pass(6000).await;
    setup.send(vec![span(1), span(1), span(2)]).await;
    setup.pass(100).await;
    assert_eq!(setup.kept(), kept([(1, 3)]));
}

#[tokio::test(start_paused = true)]
async fn a_late_error_of_a_trace_whose_bytes_are_gone_stays_dropped() {
    let setup = Setup::new(ERRORS);
    setup.send(vec![span(1)]).await;
    setup.pass(6000).await;
    setup.send(vec![error(1)]).await;
    setup.pass(6000).await;
    assert!(setup.kept().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_late_error_brings_back_a_trace_whose_bytes_are_still_there() {
    let setup = Setup::new(&format!("late_error_wait: 10s\n{ERRORS}"));
    setup.send(vec![span(1), span(1), span(2)]).await;
    setup.pass(8000).await;
    setup.send(vec![span(1)]).await;
    setup.pass(2000).await;
    assert!(setup.kept().is_empty(), "a late span without an error changes nothing");
    setup.send(vec![error(1)]).await;
    setup.pass(200).await;
    assert_eq!(setup.kept(), kept([(1, 4)]), "what was there, what came late, and the error");
    setup.send(vec![span(1)]).await;
    setup.pass(200).await;
    assert_eq!(setup.kept(), kept([(1, 5)]), "and it is kept from then on");
    setup.pass(10_000).await;
    setup.send(vec![error(2)]).await;
    setup.pass(6000).await;
    assert_eq!(setup.kept(), kept([(1, 5)]), "the other one's bytes have gone");
    assert_eq!(setup.stats.waiting_bytes.load(std::sync::atomic::Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_root_makes_it_time_sooner() {
    let setup = Setup::new(&format!("decision_wait: 60s\ndecision_wait_after_root_received: 2s\n{ALL}"));
    setup.send(vec![span(1), span(2)]).await;
    setup.pass(1000).await;
    setup.send(vec![root(1)]).await;
    setup.pass(1900).await;
    assert!(setup.kept().is_empty());
    setup.pass(300).await;
    assert_eq!(setup.kept(), kept([(1, 2)]));
    setup.pass(60_000).await;
    assert_eq!(setup.kept(), kept([(1, 2), (2, 1)]));
}

#[tokio::test(start_paused = true)]
async fn the_first_match_is_enough_where_that_is_wanted() {
    let setup = Setup::new(&format!("sample_on_first_match: true\n{ERRORS}"));
    setup.send(vec![span(1), span(2)]).await;
    setup.pass(1000).await;
    setup.send(vec![error(1)]).await;
    setup.pass(100).await;
    assert_eq!(setup.kept(), kept([(1, 2)]), "without waiting");
    setup.send(vec![span(1)]).await;
    setup.pass(100).await;
    assert_eq!(setup.kept(), kept([(1, 3)]));
}

#[tokio::test(start_paused = true)]
async fn with_caches_decisions_outlive_the_table() {
    let caches = "num_traces: 2\ndecision_cache: {sampled_cache_size: 100, non_sampled_cache_size: 100}";
    let setup = Setup::new(&format!("{caches}\n{ERRORS}"));
    setup.send(vec![error(1), span(2)]).await;
    setup.pass(6000).await;
    for other in 10..20 {
        setup.send(vec![span(other)]).await;
    }
    setup.pass(6000).await;
    setup.send(vec![span(1), span(1), error(2), error(2), error(2)]).await;
    setup.pass(6000).await;
    assert_eq!(setup.kept(), kept([(1, 3)]));
    let count = |count: &std::sync::atomic::AtomicU64| count.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((count(&setup.stats.cached_kept), count(&setup.stats.cached_dropped)), (2, 3), "spans");
    assert_eq!(count(&setup.stats.traces), 0, "the table is empty");
}

#[tokio::test(start_paused = true)]
async fn kept_spans_say_who_kept_them_where_that_is_wanted() {
    let setup = Setup::new(&format!("record_policy: true\n{ERRORS}"));
    setup.send(vec![error(1)]).await;
    setup.pass(6000).await;
    setup.send(vec![span(1)]).await;
    setup.pass(100).await;
    let requests = setup.backend.requests();
    let attributes: Vec<Vec<(String, Option<Value>)>> = requests
        .iter()
        .map(|request| {
            let scope = request.resource_spans[0].scope_spans[0].scope.as_ref().unwrap();
            assert_eq!(scope.name, "lib");
            let pairs = scope.attributes.iter();
            pairs.map(|pair| (pair.key.clone(), pair.value.clone().and_then(|value| value.value))).collect()
        })
        .collect();
    let policy = || ("tailsampling.policy".to_owned(), Some(Value::StringValue("errors".into())));
    let cached = ("tailsampling.cached_decision".to_owned(), Some(Value::BoolValue(true)));
    assert_eq!(attributes, [vec![policy()], vec![policy(), cached]]);
}

#[tokio::test(start_paused = true)]
async fn a_composite_says_which_of_its_parts_kept_them() {
    let part = |name: &str, code: &str| {
        format!("{{name: {name}, type: status_code, status_code: {{status_codes: [{code}]}}}}")
    };
    let setup = Setup::new(&format!(
        "record_policy: true\ndecision_wait: 1s\npolicies: [{{name: whole, type: composite, composite: \
         {{max_total_spans_per_second: 100, composite_sub_policy: [{}, {}], \
         rate_allocation: [{{policy: bad, percent: 50}}, {{policy: fine, percent: 50}}]}}}}]",
        part("bad", "ERROR"),
        part("fine", "UNSET")
    ));
    setup.send(vec![error(1), span(2)]).await;
    setup.pass(2000).await;
    let scopes = setup.backend.requests().into_iter().flat_map(|request| request.resource_spans);
    let mut found: Vec<(u8, Vec<_>)> = scopes
        .flat_map(|resource| resource.scope_spans)
        .map(|entry| (entry.spans[0].trace_id[15], entry.scope.unwrap().attributes))
        .collect();
    found.sort_by_key(|(trace, _)| *trace);
    let said = |part| vec![text("tailsampling.policy", "whole"), text("tailsampling.composite_policy", part)];
    assert_eq!(found, [(1, said("bad")), (2, said("fine"))]);
}

#[tokio::test(start_paused = true)]
async fn a_probability_is_written_where_nothing_else_kept_the_trace() {
    let setup = Setup::new(
        "decision_wait: 1s\npolicies:\n- {name: half, type: probabilistic, probabilistic: {sampling_percentage: 50}}\n\
         - {name: errors, type: status_code, status_code: {status_codes: [ERROR]}}",
    );
    let with = |state: &str, span: opentelemetry_proto::tonic::trace::v1::Span| {
        opentelemetry_proto::tonic::trace::v1::Span { trace_state: state.into(), ..span }
    };
    // Randomness that a policy of 50 % keeps, and a threshold above that of 50 %.
    let rv = "ot=rv:f0000000000000";
    setup.send(vec![with(rv, span(1)), with("vendor=x", span(1))]).await;
    setup.send(vec![with("ot=rv:f0000000000000;th:c", span(2)), with(rv, error(3))]).await;
    setup.send(vec![with("ot=rv:70000000000000", span(4))]).await;
    setup.pass(2000).await;
    let mut states: Vec<(u128, String)> = setup
        .backend
        .spans()
        .into_iter()
        .map(|span| (u128::from_be_bytes(span.trace_id.try_into().unwrap()), span.trace_state))
        .collect();
    states.sort();
    let expected = [
        (1, "ot=rv:f0000000000000;th:8"),
        (1, "ot=rv:f0000000000000;th:8,vendor=x"),
        (2, "ot=rv:f0000000000000;th:c"),
        (3, rv),
    ];
    assert_eq!(states, expected.map(|(trace, state)| (trace, state.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn spans_of_one_resource_share_it_and_nothing_is_changed() {
    let setup = Setup::new(&format!("decision_wait: 1s\n{ALL}"));
    let sent = request((1..=50).map(span).collect());
    setup.try_send(&sent).await.unwrap();
    setup.pass(2000).await;
    let got = setup.backend.requests();
    let per_shard = got.iter().map(|request| request.resource_spans.len()).max();
    assert_eq!(per_shard, Some(1), "each shard writes the resource once");
    let mut spans = setup.backend.spans();
    spans.sort_by(|a, b| a.trace_id.cmp(&b.trace_id));
    assert_eq!(spans, sent.resource_spans[0].scope_spans[0].spans);
    assert_eq!(got[0].resource_spans[0].resource, sent.resource_spans[0].resource);
}

#[tokio::test(start_paused = true)]
async fn at_the_end_everything_is_decided_on() {
    let setup = Setup::new(ERRORS);
    setup.send(vec![error(1), span(2)]).await;
    setup.sampler.flush().await;
    assert_eq!(setup.kept(), kept([(1, 1)]));
    setup.sampler.flush().await;
}

#[tokio::test(start_paused = true)]
async fn at_the_end_everything_is_dropped_where_that_is_wanted() {
    let setup = Setup::new(&format!("drop_pending_traces_on_shutdown: true\n{ERRORS}"));
    setup.send(vec![error(1), span(2)]).await;
    setup.sampler.flush().await;
    assert!(setup.kept().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_that_went_holds_nothing_back() {
    let setup = Setup::new(ERRORS);
    setup.send(vec![error(1)]).await;
    setup.sampler.retire();
    setup.pass(100).await;
    setup.send(vec![error(2), span(3)]).await;
    setup.pass(100).await;
    assert_eq!(setup.kept(), kept([(1, 1), (2, 1)]));
}

#[tokio::test(start_paused = true)]
async fn more_conditions_than_bits_are_looked_for_when_it_is_time() {
    let policy =
        |n: u32| format!("{{name: p{n}, type: string_attribute, string_attribute: {{key: k{n}, values: [yes]}}}}");
    let policies: Vec<String> = (0..100).map(policy).collect();
    let setup = Setup::new(&format!("decision_wait: 5s\npolicies: [{}]", policies.join(", ")));
    let with = |trace, key: &str| opentelemetry_proto::tonic::trace::v1::Span {
        attributes: vec![text(key, "yes")],
        ..span(trace)
    };
    setup.send(vec![with(1, "k3"), with(2, "k99"), with(3, "k100"), span(2)]).await;
    setup.pass(6000).await;
    assert_eq!(setup.kept(), kept([(1, 1), (2, 2)]));
}

#[tokio::test(start_paused = true)]
async fn each_arrival_is_decided_on_by_itself_where_that_is_wanted() {
    let parts = "[{name: e, type: status_code, status_code: {status_codes: [ERROR]}}, {name: f, type: trace_flags}]";
    let setup = Setup::new(&format!(
        "decision_wait: 5s\nsampling_strategy: span-ingest\npolicies: [{{name: both, type: and, and: {{and_sub_policy: {parts}}}}}]"
    ));
    let sampled = |trace| opentelemetry_proto::tonic::trace::v1::Span { flags: 1, ..span(trace) };
    setup.send(vec![span(1), span(2), error(3)]).await;
    setup.send(vec![error(1), sampled(1), sampled(3)]).await;
    setup.pass(100).await;
    assert_eq!(setup.kept(), kept([(1, 3)]), "at once, with what came before; never by two arrivals together");
    setup.send(vec![span(1)]).await;
    setup.pass(6000).await;
    assert_eq!(setup.kept(), kept([(1, 4)]));
    assert_eq!(setup.stats.decisions(SamplingOutcome::NotSampled), 2);
}
