//! Too many traces, too large traces, no memory, and a consumer that accepts nothing.

use std::{collections::BTreeSet, sync::atomic::Ordering, time::Duration};

use kubewake_otlp::{TraceState, probability::Randomness};
use opentelemetry_proto::tonic::{common::v1::any_value::Value, trace::v1::Span};

use super::support::*;
use crate::core::{Budget, EarlyDecision, Processor, testing::settle};

const ALL: &str = "policies: [{name: all, type: always_sample}]";

/// A span with this much padding.
fn large(trace: u128, bytes: usize) -> Span {
    Span { attributes: vec![text("pad", &"x".repeat(bytes))], ..span(trace) }
}

#[tokio::test(start_paused = true)]
async fn a_trace_too_many_makes_the_oldest_a_decision_and_loses_nothing() {
    let setup = Setup::new(&format!("num_traces: 3\ndecision_wait: 60s\n{ALL}"));
    for trace in 1..=10 {
        setup.send(vec![span(trace)]).await;
        setup.pass(100).await;
    }
    assert_eq!(setup.kept().into_keys().collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    assert_eq!(setup.stats.early_decisions(EarlyDecision::NumTraces), 7);
    setup.sampler.flush().await;
    assert_eq!(setup.kept().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn of_traces_that_came_at_the_same_time_the_first_is_decided_on_first() {
    let setup = Setup::new(&format!("num_traces: 3\ndecision_wait: 60s\n{ALL}"));
    setup.send((1..=10).flat_map(|trace| [span(trace), span(trace)]).collect()).await;
    setup.pass(100).await;
    assert_eq!(setup.kept(), (1..=7).map(|trace| (trace, 2)).collect());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_when_all_was_dropped() {
    let setup = Setup::new(
        "num_traces: 1000\ndecision_wait: 2s\npolicies: [{name: e, type: status_code, status_code: {status_codes: [ERROR]}}]",
    );
    let budget = Budget::new(64 << 20, 0);
    let setup = setup.charged_to(budget.join());
    // Segments end between requests, and each is freed before the next one.
    for request in 0..12 {
        setup.send((1..=10).map(|trace| large(request * 10 + trace, 10_000)).collect()).await;
        setup.pass(300).await;
    }
    assert!(setup.stats.waiting_bytes.load(Ordering::Relaxed) > 0);
    setup.pass(3000).await;
    assert_eq!(setup.stats.waiting_bytes.load(Ordering::Relaxed), 0);
    assert_eq!((budget.used(), setup.kept().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn senders_wait_for_a_place_where_that_is_wanted() {
    let setup = Setup::new(&format!("num_traces: 2\ndecision_wait: 5s\nblock_on_overflow: true\n{ALL}"));
    setup.send(vec![span(1)]).await;
    setup.send(vec![span(2)]).await;
    let third = tokio::spawn({
        let sampler = setup.sampler.clone();
        let setup = Setup { sampler, ..Setup::new(ALL) };
        async move { setup.send(vec![span(3)]).await }
    });
    setup.pass(4000).await;
    assert!(!third.is_finished());
    setup.pass(2000).await;
    assert!(third.is_finished(), "the others were decided on");
    setup.pass(6000).await;
    assert_eq!(setup.kept().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn where_no_trace_may_wait_one_does_and_nobody_waits_forever() {
    for block in [false, true] {
        let setup = Setup::new(&format!("num_traces: 0\ndecision_wait: 1s\nblock_on_overflow: {block}\n{ALL}"));
        for trace in 1..=3 {
            tokio::time::timeout(Duration::from_secs(3), setup.send(vec![span(trace)])).await.unwrap();
        }
        setup.pass(2000).await;
        assert_eq!(setup.kept().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_trace_above_the_size_that_was_set_is_dropped_with_all_that_comes() {
    let setup = Setup::new(&format!("decision_wait: 5s\nmaximum_trace_size_bytes: 1000\n{ALL}"));
    setup.send(vec![large(1, 600), span(2)]).await;
    setup.send(vec![large(1, 600), span(2)]).await;
    setup.send(vec![span(1)]).await;
    setup.pass(6000).await;
    assert_eq!(setup.kept(), [(2, 2)].into());
    assert_eq!(setup.stats.too_large.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_a_trace_that_was_dropped_at_once_keeps_its_resource_and_scope() {
    let setup = Setup::new(&format!("decision_wait: 1s\nmaximum_trace_size_bytes: 1000\nnum_shards: 1\n{ALL}"));
    let sent = request(vec![large(1, 2000), span(2), large(3, 2000), span(4), span(2)]);
    setup.try_send(&sent).await.unwrap();
    setup.pass(2000).await;
    assert_eq!(setup.kept(), [(2, 2), (4, 1)].into());
    for got in setup.backend.requests().iter().flat_map(|request| &request.resource_spans) {
        assert_eq!(got.resource, sent.resource_spans[0].resource);
        assert!(got.scope_spans.iter().all(|scope| scope.scope == sent.resource_spans[0].scope_spans[0].scope));
    }
}

#[tokio::test(start_paused = true)]
async fn a_trace_that_takes_too_much_of_the_memory_is_decided_on_and_not_dropped() {
    let budget = Budget::new(1 << 20, 200 << 10);
    let setup = Setup::new(&format!("decision_wait: 60s\n{ALL}")).charged_to(budget.join());
    for _ in 0..4 {
        setup.send(vec![large(1, 50_000)]).await;
        setup.pass(100).await;
        setup.backend.forget();
    }
    assert_eq!(setup.stats.early_decisions(EarlyDecision::Size), 1);
    assert_eq!(setup.stats.waiting_bytes.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_charged_and_given_back() {
    let budget = Budget::new(8 << 20, 1 << 20);
    let errors = "decision_wait: 5s\npolicies: [{name: e, type: status_code, status_code: {status_codes: [ERROR]}}]";
    let setup = Setup::new(errors).charged_to(budget.join());
    for trace in 0..100 {
        setup.send(vec![large(trace, 1000), error(trace / 2)]).await;
    }
    let held = budget.used();
    assert!((110_000..250_000).contains(&held), "{held} bytes for 100 kB of spans");
    setup.pass(6000).await;
    assert_eq!(setup.kept().len(), 50);
    setup.backend.forget();
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn decisions_go_on_while_the_next_step_takes_nothing() {
    let budget = Budget::new(4 << 20, 1 << 20);
    let errors = "decision_wait: 1s\npolicies: [{name: e, type: status_code, status_code: {status_codes: [ERROR]}}]";
    let setup = Setup::new(errors).charged_to(budget.join());
    setup.backend.close();
    for trace in 0..2000 {
        let last = if trace % 10 == 0 { error(trace) } else { span(trace) };
        setup.send(vec![large(trace, 1000), last]).await;
        if trace % 10 == 0 {
            setup.pass(100).await;
        }
    }
    setup.pass(2000).await;
    assert!(budget.used() < 1 << 20, "dropped traces hold nothing: {}", budget.used());
    setup.backend.open();
    setup.sampler.flush().await;
    assert_eq!(setup.kept().len(), 200);
}

#[tokio::test(start_paused = true)]
async fn with_a_next_step_that_takes_nothing_senders_are_refused_and_what_was_taken_arrives() {
    let budget = Budget::new(1 << 20, 200 << 10);
    let setup =
        Setup::new(&format!("decision_wait: 1s\noverload_sampling_percentage: 100\n{ALL}")).charged_to(budget.join());
    setup.backend.close();
    let mut taken = BTreeSet::new();
    let mut refused = 0;
    for trace in 1..2000 {
        match setup.try_send(&request(vec![large(trace, 2000)])).await {
            Ok(()) => drop(taken.insert(trace)),
            Err(no) => {
                assert!(no.is_retryable());
                refused += 1;
            }
        }
        if trace % 50 == 0 {
            setup.pass(100).await;
        }
        assert!(budget.used() <= 1 << 20);
    }
    assert!(refused > 100 && taken.len() > 100, "{refused} refused, {} taken", taken.len());
    setup.backend.open();
    setup.sampler.flush().await;
    assert_eq!(setup.kept().into_keys().collect::<BTreeSet<_>>(), taken);
}

#[tokio::test(start_paused = true)]
async fn when_memory_runs_short_traces_are_kept_by_their_randomness_with_a_true_weight() {
    let budget = Budget::new(1 << 20, 100 << 10);
    let nothing = "policies: [{name: none, type: probabilistic, probabilistic: {sampling_percentage: 0}}]";
    let text = format!("decision_wait: 10s\noverload_sampling_percentage: 25\n{nothing}");
    let setup = Setup::new(&text).charged_to(budget.join());
    let id = |n: u128| (n << 64 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    for n in 1..=4000 {
        setup.send(vec![large(id(n), 300), span(id(n))]).await;
        settle().await;
    }
    setup.pass(100).await;
    assert_eq!(setup.stats.overloaded.load(Ordering::Relaxed), 1);
    let hurried = setup.stats.early_decisions(EarlyDecision::Overload) as f64;
    assert!(hurried > 1000.0, "{hurried} did not wait");
    let spans = setup.backend.spans();
    let mut weight = 0.0;
    for span in &spans {
        let threshold = TraceState::parse(span.trace_state.as_bytes()).unwrap().threshold().unwrap();
        assert!(threshold.keeps(Randomness::from_trace_id(&span.trace_id).unwrap()), "anybody would decide the same");
        weight += threshold.adjusted_count() / 2.0;
    }
    assert!(setup.kept().values().all(|spans| *spans == 2), "traces are whole");
    assert!((weight / hurried - 1.0).abs() < 0.15, "{weight} counted, {hurried} were there");
    // Waiting traces are decided in time, and there is memory again.
    setup.backend.forget();
    setup.pass(12_000).await;
    assert_eq!(setup.stats.overloaded.load(Ordering::Relaxed), 0);
    setup.send(vec![span(7)]).await;
    setup.pass(100).await;
    assert!(setup.kept().is_empty(), "new traces wait again");
    let known = id(4000);
    setup.send(vec![span(known)]).await;
    setup.pass(100).await;
    let was_kept = spans.iter().any(|span| span.trace_id == known.to_be_bytes());
    assert_eq!(setup.kept().contains_key(&known), was_kept, "what was decided on then is remembered");
}

#[tokio::test(start_paused = true)]
async fn when_memory_runs_short_the_randomness_that_spans_carry_decides() {
    let budget = Budget::new(1 << 20, 100 << 10);
    let errors = "policies: [{name: e, type: status_code, status_code: {status_codes: [ERROR]}}]";
    let setup = Setup::new(&format!("overload_sampling_percentage: 50\n{errors}")).charged_to(budget.join());
    let _elsewhere = setup.member.as_ref().unwrap().reserve(900 << 10).unwrap();
    let with = |trace: u128, state: &str| Span { trace_state: state.into(), ..span(trace) };
    // By their ids the first trace would be dropped and the second kept.
    setup.send(vec![with(1, "ot=rv:f0000000000000"), with(u128::MAX, "ot=rv:10000000000000")]).await;
    setup.pass(100).await;
    let states: Vec<String> = setup.backend.spans().into_iter().map(|span| span.trace_state).collect();
    assert_eq!(states, ["ot=rv:f0000000000000;th:8"]);
    // A span of the same request without randomness gets the same one; a later span gets one that keeps it.
    setup.backend.forget();
    setup.send(vec![with(2, "ot=rv:f0000000000000"), span(2)]).await;
    setup.send(vec![span(2)]).await;
    setup.pass(100).await;
    let states: Vec<String> = setup.backend.spans().into_iter().map(|span| span.trace_state).collect();
    assert_eq!(states, ["ot=rv:f0000000000000;th:8", "ot=rv:f0000000000000;th:8", "ot=rv:80000000000000;th:8"]);
}

#[tokio::test(start_paused = true)]
async fn what_an_overload_kept_says_so() {
    let budget = Budget::new(1 << 20, 100 << 10);
    let setup = Setup::new(&format!("record_policy: true\noverload_sampling_percentage: 100\n{ALL}"));
    let setup = setup.charged_to(budget.join());
    let _elsewhere = setup.member.as_ref().unwrap().reserve(900 << 10).unwrap();
    setup.send(vec![span(1)]).await;
    setup.send(vec![span(1)]).await;
    setup.pass(100).await;
    for request in setup.backend.requests() {
        let scope = request.resource_spans[0].scope_spans[0].scope.clone().unwrap();
        assert_eq!(scope.attributes, [attribute("tailsampling.overload_decision", Value::BoolValue(true))]);
    }
    assert_eq!(setup.kept(), [(1, 2)].into());
}

#[tokio::test(start_paused = true)]
async fn an_overload_that_others_made_ends_by_itself_though_nobody_sends() {
    let budget = Budget::new(1 << 20, 100 << 10);
    let setup = Setup::new(&format!("decision_wait: 1s\n{ALL}")).charged_to(budget.join());
    // Memory that is held elsewhere in the pipeline, as by the queue of its exporter.
    let elsewhere = setup.member.as_ref().unwrap().reserve(900 << 10).unwrap();
    setup.send(vec![span(1)]).await;
    setup.pass(2000).await;
    assert_eq!(setup.stats.overloaded.load(Ordering::Relaxed), 1);
    assert_eq!(setup.stats.traces.load(Ordering::Relaxed), 0, "nothing waits");
    drop(elsewhere);
    setup.pass(2000).await;
    assert_eq!(setup.stats.overloaded.load(Ordering::Relaxed), 0);
}
