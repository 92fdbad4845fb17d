//! Dropped traces whose bytes linger for an error that comes late.

use std::sync::atomic::Ordering;

use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};

use super::support::*;
use crate::core::{Budget, EarlyDecision, Processor};

const ERRORS: &str = "policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]";

/// A span with this much padding.
fn padded(span: Span, bytes: usize) -> Span {
    Span { attributes: vec![text("pad", &"x".repeat(bytes))], ..span }
}

#[tokio::test(start_paused = true)]
async fn what_lingers_makes_room_before_a_new_trace_does_not_wait() {
    let budget = Budget::new(8 << 20, 1 << 20);
    let settings = format!("decision_wait: 500ms\nlate_error_wait: 60s\nnum_shards: 2\n{ERRORS}");
    let setup = Setup::new(&settings).charged_to(budget.join());
    // A fifth of the memory waits at any time, and a minute brings many times all of it.
    for trace in 1..=3000 {
        let one = if trace % 5 == 0 { error(trace) } else { span(trace) };
        setup.send(vec![padded(one, 10_000)]).await;
        if trace % 20 == 0 {
            setup.pass(100).await;
        }
    }
    setup.pass(1000).await;
    assert_eq!(setup.kept().len(), 600, "every error is kept, and nothing else");
    assert_eq!(setup.stats.overloads.load(Ordering::Relaxed), 0);
    assert_eq!(setup.stats.early_decisions(EarlyDecision::Overload), 0);
    let held = setup.stats.waiting_bytes.load(Ordering::Relaxed);
    assert!(held > 2 << 20, "{held} bytes linger where there is room");
    setup.send(vec![error(1), error(2999)]).await;
    setup.pass(200).await;
    assert_eq!(setup.kept().get(&2999), Some(&2), "the newest linger");
    assert_eq!(setup.kept().get(&1), None, "the oldest went first");
}

#[tokio::test(start_paused = true)]
async fn what_lingers_makes_room_for_a_request_that_would_be_refused() {
    let budget = Budget::new(1 << 20, 100 << 10);
    let settings = format!("decision_wait: 500ms\nlate_error_wait: 60s\n{ERRORS}");
    let setup = Setup::new(&settings).charged_to(budget.join());
    for trace in 1..=10 {
        setup.send(vec![padded(span(trace), 40_000)]).await;
    }
    setup.pass(1000).await;
    assert!(budget.used() > 400_000, "they linger");
    setup.send(vec![padded(error(11), 300_000)]).await;
    setup.pass(1000).await;
    assert_eq!(setup.kept(), [(11, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn what_lingers_makes_room_for_others_though_nobody_sends() {
    let budget = Budget::new(1 << 20, 100 << 10);
    let settings = format!("decision_wait: 500ms\nlate_error_wait: 60s\n{ERRORS}");
    let setup = Setup::new(&settings).charged_to(budget.join());
    for trace in 1..=10 {
        setup.send(vec![padded(span(trace), 40_000)]).await;
    }
    setup.pass(1000).await;
    let elsewhere = setup.member.as_ref().unwrap().reserve(300 << 10).unwrap();
    setup.pass(1100).await;
    assert_eq!(budget.used(), elsewhere.bytes(), "nothing lingers");
    assert_eq!(setup.stats.overloads.load(Ordering::Relaxed), 0);
}

/// Names of the kept spans.
fn names(setup: &Setup) -> Vec<String> {
    let mut names: Vec<String> = setup.backend.spans().into_iter().map(|span| span.name).collect();
    names.sort();
    names
}

fn named(name: &str, span: Span) -> Span {
    Span { name: name.into(), ..span }
}

/// A request of several scopes of one resource.
fn scopes(scopes: Vec<Vec<Span>>) -> ExportTraceServiceRequest {
    let mut all = scopes.into_iter().map(request).reduce(|mut all, mut next| {
        all.resource_spans[0].scope_spans.append(&mut next.resource_spans[0].scope_spans);
        all
    });
    all.take().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_trace_comes_back_with_the_late_spans_before_its_error() {
    let setup = Setup::new(&format!("decision_wait: 500ms\nlate_error_wait: 10s\n{ERRORS}"));
    setup.send(vec![named("first", span(1)), span(2)]).await;
    setup.pass(1000).await;
    setup.send(vec![named("earlier request", span(1))]).await;
    setup.pass(1000).await;
    let other_scope = vec![named("other scope", span(1)), span(2), named("behind another trace", span(1))];
    let late = scopes(vec![other_scope, vec![named("checkout", error(1))], vec![named("after", span(1))]]);
    let mut other_resource = request(vec![named("other resource", span(1))]);
    other_resource.resource_spans.extend(late.resource_spans);
    setup.try_send(&other_resource).await.unwrap();
    setup.pass(200).await;
    let expected =
        ["after", "behind another trace", "checkout", "earlier request", "first", "other resource", "other scope"];
    assert_eq!(names(&setup), expected);
    assert_eq!(setup.stats.promoted.load(Ordering::Relaxed), 1);
    setup.pass(11_000).await;
    assert_eq!(setup.stats.waiting_bytes.load(Ordering::Relaxed), 0, "late spans linger no longer than the others");
}

#[tokio::test(start_paused = true)]
async fn a_late_error_that_is_not_enough_is_there_when_another_one_is() {
    let status = "{name: e, type: status_code, status_code: {status_codes: [ERROR]}}";
    let three = "{name: n, type: span_count, span_count: {min_spans: 4}}";
    let both = format!("policies: [{{name: both, type: and, and: {{and_sub_policy: [{status}, {three}]}}}}]");
    let setup = Setup::new(&format!("decision_wait: 500ms\nlate_error_wait: 10s\n{both}"));
    setup.send(vec![span(1)]).await;
    setup.pass(1000).await;
    setup.send(vec![error(1)]).await;
    setup.send(vec![span(1)]).await;
    setup.pass(200).await;
    assert!(setup.kept().is_empty());
    setup.send(vec![error(1)]).await;
    setup.pass(200).await;
    assert_eq!(setup.kept(), [(1, 4)].into());
}

#[tokio::test(start_paused = true)]
async fn a_trace_whose_late_spans_are_too_many_or_too_large_does_not_come_back_in_part() {
    let setup =
        Setup::new(&format!("decision_wait: 500ms\nlate_error_wait: 10s\nmaximum_trace_size_bytes: 2000000\n{ERRORS}"));
    setup.send(vec![span(1), span(2)]).await;
    setup.pass(1000).await;
    setup.send(vec![span(1); 10_000]).await;
    setup.send(vec![padded(span(2), 2_000_000)]).await;
    setup.send(vec![error(1), error(2)]).await;
    setup.pass(200).await;
    assert!(setup.kept().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_trace_of_many_requests_lingers_as_long_as_a_small_one() {
    let setup = Setup::new(&format!("decision_wait: 5s\nlate_error_wait: 10s\n{ERRORS}"));
    for _ in 0..6 {
        setup.send(vec![span(1); 1000]).await;
        setup.send(vec![padded(span(2), 200_000)]).await;
    }
    setup.pass(12_000).await;
    setup.send(vec![error(1), error(2)]).await;
    setup.pass(200).await;
    assert_eq!(setup.kept(), [(1, 6001), (2, 7)].into());
}

#[tokio::test(start_paused = true)]
async fn a_decision_is_final_where_nothing_lingers() {
    let setup = Setup::new(&format!("decision_wait: 2s\nnum_shards: 1\n{ERRORS}"));
    setup.send(vec![span(1)]).await;
    setup.pass(1000).await;
    setup.send(vec![span(2)]).await;
    setup.pass(1500).await;
    setup.send(vec![error(1)]).await;
    setup.pass(2000).await;
    assert!(setup.kept().is_empty(), "though its bytes are still there for its neighbour's sake");
}

#[tokio::test(start_paused = true)]
async fn a_trace_that_came_back_stays_kept_when_the_table_forgets_it() {
    for sampled in [0, 100] {
        let caches = format!("{{sampled_cache_size: {sampled}, non_sampled_cache_size: 100}}");
        let setup = Setup::new(&format!(
            "decision_wait: 500ms\nlate_error_wait: 10s\nnum_traces: 3\ndecision_cache: {caches}\n{ERRORS}"
        ));
        setup.send(vec![span(1), span(2)]).await;
        setup.pass(1000).await;
        setup.send(vec![error(1)]).await;
        for trace in 10..20 {
            setup.send(vec![span(trace)]).await;
        }
        setup.pass(1000).await;
        setup.send(vec![error(1), error(2)]).await;
        setup.pass(1000).await;
        assert_eq!(setup.kept(), [(1, 3)].into(), "and one that did not come back stays dropped");
    }
}

#[tokio::test(start_paused = true)]
async fn traces_that_came_back_are_forgotten_like_others() {
    let caches = "num_traces: 3\ndecision_cache: {sampled_cache_size: 100, non_sampled_cache_size: 100}";
    let setup = Setup::new(&format!("decision_wait: 500ms\nlate_error_wait: 10s\n{caches}\n{ERRORS}"));
    for trace in 1..=20 {
        setup.send(vec![span(trace)]).await;
        setup.pass(1000).await;
        setup.send(vec![error(trace)]).await;
        assert!(setup.stats.traces.load(Ordering::Relaxed) <= 3);
    }
    setup.send((1..=20).map(span).collect()).await;
    setup.pass(200).await;
    assert_eq!(setup.kept(), (1..=20).map(|trace| (trace, 3)).collect());
}

#[tokio::test(start_paused = true)]
async fn in_one_that_went_nothing_lingers() {
    let budget = Budget::new(1 << 20, 100 << 10);
    let setup = Setup::new(&format!("decision_wait: 500ms\nlate_error_wait: 60s\n{ERRORS}")).charged_to(budget.join());
    setup.send(vec![span(1)]).await;
    setup.pass(1000).await;
    assert!(budget.used() > 0);
    setup.sampler.retire();
    setup.send(vec![span(2)]).await;
    setup.pass(200).await;
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn in_whatever_order_spans_come_a_trace_with_an_error_is_whole_in_the_end() {
    let setup =
        Setup::new(&format!("decision_wait: 500ms\nlate_error_wait: 60s\nnum_traces: 30\nnum_shards: 2\n{ERRORS}"));
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut sent: std::collections::BTreeMap<u128, (usize, bool)> = Default::default();
    for _ in 0..300 {
        let mut all = ExportTraceServiceRequest::default();
        for _ in 0..1 + random(3) {
            let spans = (0..random(4)).map(|_| {
                let trace = u128::from(1 + random(20));
                let fails = random(40) == 0;
                let (spans, failed) = sent.entry(trace).or_default();
                (*spans, *failed) = (*spans + 1, *failed || fails);
                padded(if fails { error(trace) } else { span(trace) }, random(20_000) as usize)
            });
            all.resource_spans.extend(request(spans.collect()).resource_spans);
        }
        setup.try_send(&all).await.unwrap();
        setup.pass(100 * random(3)).await;
    }
    setup.pass(1000).await;
    let expected = sent.into_iter().filter(|(_, (_, failed))| *failed).map(|(trace, (spans, _))| (trace, spans));
    assert_eq!(setup.kept(), expected.collect());
    assert!(setup.stats.promoted.load(Ordering::Relaxed) > 0);
    setup.pass(60_000).await;
    assert_eq!(setup.stats.waiting_bytes.load(Ordering::Relaxed), 0);
}
