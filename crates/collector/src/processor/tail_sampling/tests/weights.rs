//! The weights of kept spans, so that counts are true.

use std::sync::atomic::Ordering;

use kubewake_otlp::{TraceState, probability::Threshold};
use opentelemetry_proto::tonic::trace::v1::Span;

use super::support::*;

const ERRORS: &str = "{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}";
const TENTH: &str = "{name: tenth, type: probabilistic, probabilistic: {sampling_percentage: 10}}";

/// Ids that look random.
fn id(n: u128) -> u128 {
    (n << 64 | n).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn threshold(span: &Span) -> Option<Threshold> {
    TraceState::parse(span.trace_state.as_bytes()).unwrap().threshold()
}

/// Sends traces, every fourth with an error; returns the total weight of the kept ones, by kind.
async fn counted(setup: &Setup) -> (f64, f64) {
    for n in 1..=2000 {
        setup.send(vec![if n % 4 == 0 { error(id(n)) } else { span(id(n)) }]).await;
    }
    setup.pass(2000).await;
    let mut errors = 0.0;
    let mut others = 0.0;
    for span in setup.backend.spans() {
        let count = threshold(&span).map_or(1.0, Threshold::adjusted_count);
        *if span.status.is_some() { &mut errors } else { &mut others } += count;
    }
    (errors, others)
}

fn near(count: f64, expected: f64) {
    // A tenth of 1500 is 150, and four standard deviations of that are a third of it.
    assert!((count / expected - 1.0).abs() < 0.33, "{count} counted, {expected} were there");
}

#[tokio::test(start_paused = true)]
async fn counts_are_true_whatever_the_order_of_policies_and_however_they_are_asked() {
    let share = |parts: &str| {
        format!(
            "{{name: whole, type: composite, composite: {{max_total_spans_per_second: 100000, \
             composite_sub_policy: [{parts}], \
             rate_allocation: [{{policy: tenth, percent: 50}}, {{policy: errors, percent: 50}}]}}}}"
        )
    };
    for settings in [
        format!("policies: [{ERRORS}, {TENTH}]"),
        format!("policies: [{TENTH}, {ERRORS}]"),
        format!("sample_on_first_match: true\npolicies: [{ERRORS}, {TENTH}]"),
        format!("sample_on_first_match: true\npolicies: [{TENTH}, {ERRORS}]"),
        format!("sampling_strategy: span-ingest\npolicies: [{TENTH}, {ERRORS}]"),
        format!("policies: [{}]", share(&format!("{ERRORS}, {TENTH}"))),
        format!("policies: [{}]", share(&format!("{TENTH}, {ERRORS}"))),
    ] {
        let setup = Setup::new(&format!("decision_wait: 1s\n{settings}"));
        let (errors, others) = counted(&setup).await;
        assert_eq!(errors, 500.0, "an error stands for itself: {settings}");
        near(others, 1500.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_composite_that_has_nothing_left_keeps_nothing_anyway() {
    let rest = "{name: rest, type: always_sample}";
    for share in [
        "",
        // Fifty of a thousand spans in this second.
        ", {policy: rest, percent: 5}",
    ] {
        let setup = Setup::new(&format!(
            "decision_wait: 1s\npolicies: [{{name: whole, type: composite, composite: {{max_total_spans_per_second: 1000, \
             composite_sub_policy: [{TENTH}, {rest}], rate_allocation: [{{policy: tenth, percent: 50}}{share}]}}}}]"
        ));
        let (errors, others) = counted(&setup).await;
        near(errors + others, 2000.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_not_used_up_by_asking_what_a_trace_stands_for() {
    let limited = "{name: limited, type: rate_limiting, rate_limiting: {spans_per_second: 1, burst_capacity: 3}}";
    let half = "{name: half, type: probabilistic, probabilistic: {sampling_percentage: 50}}";
    let setup = Setup::new(&format!("decision_wait: 1s\nsample_on_first_match: true\npolicies: [{half}, {limited}]"));
    for n in 1..=100 {
        setup.send(vec![span(id(n))]).await;
    }
    setup.pass(2000).await;
    let spans = setup.backend.spans();
    let by_limit = spans.iter().filter(|span| threshold(span).is_none()).count();
    assert_eq!(by_limit, 3, "of {} kept", spans.len());
}

#[tokio::test(start_paused = true)]
async fn whoever_samples_next_sees_what_the_hash_decided_by() {
    let caches = "decision_cache: {sampled_cache_size: 10000}";
    let setup = Setup::new(&format!("decision_wait: 1s\n{caches}\npolicies: [{TENTH}]"));
    for n in 1..=1000 {
        setup.send(vec![span(id(n))]).await;
    }
    setup.pass(2000).await;
    let early: Vec<Span> = setup.backend.spans();
    assert!(early.len() > 50);
    // Late spans have the same weight.
    for n in 1..=1000 {
        setup.send(vec![span(id(n))]).await;
    }
    setup.pass(100).await;
    let all = setup.backend.spans();
    for span in &all {
        let state = TraceState::parse(span.trace_state.as_bytes()).unwrap();
        let threshold = state.threshold().unwrap();
        let randomness = state.randomness().unwrap();
        assert!(threshold.keeps(randomness), "{}", span.trace_state);
        let same = all.iter().filter(|other| other.trace_id == span.trace_id);
        assert!(same.map(|other| &other.trace_state).all(|state| *state == span.trace_state));
    }
    assert!(early.iter().all(|one| all.iter().filter(|span| span.trace_id == one.trace_id).count() == 2));
    // By that randomness, the next sampler keeps its share of these.
    let fifth = |span: &&Span| {
        let randomness = TraceState::parse(span.trace_state.as_bytes()).unwrap().randomness().unwrap();
        Threshold::from_probability(0.05, 0).unwrap().keeps(randomness)
    };
    let kept = early.iter().filter(fifth).count() as f64 / early.len() as f64;
    assert!((0.25..0.75).contains(&kept), "half of a tenth is a twentieth: {kept}");
}

#[tokio::test(start_paused = true)]
async fn spans_that_carry_no_randomness_get_that_of_the_others() {
    // By its id alone the trace would not be kept.
    let with = |state: &str| Span { trace_state: state.into(), ..span(1) };
    let state = |span: &Span| {
        let state = TraceState::parse(span.trace_state.as_bytes()).unwrap();
        (state.threshold().map(Threshold::adjusted_count), state.randomness().map(|randomness| randomness.bits()))
    };
    let stated = 0xf0_0000_0000_0000;
    for caches in ["", "decision_cache: {sampled_cache_size: 100}"] {
        let setup = Setup::new(&format!("decision_wait: 1s\n{caches}\npolicies: [{TENTH}]"));
        setup.send(vec![with("ot=rv:f0000000000000"), span(1)]).await;
        setup.pass(2000).await;
        let states: Vec<_> = setup.backend.spans().iter().map(state).collect();
        assert_eq!(states, [(Some(10.0), Some(stated)); 2]);
        setup.backend.forget();
        setup.send(vec![span(1), with("ot=rv:f1000000000000"), with("ot=rv:00000000000001")]).await;
        setup.pass(100).await;
        let [late, agrees, contradicts] = &setup.backend.spans()[..] else { panic!("all of them are kept") };
        let least = if caches.is_empty() { stated } else { threshold(late).unwrap().rejected() };
        assert_eq!(state(late), (Some(10.0), Some(least)), "what is known, or the least that is true");
        assert_eq!(state(agrees), (Some(10.0), Some(0xf1_0000_0000_0000)));
        assert_eq!(contradicts.trace_state, "ot=rv:00000000000001", "whoever is next would drop it");
        assert_eq!(setup.stats.unreadable_trace_states.load(Ordering::Relaxed), 1);
    }
}
