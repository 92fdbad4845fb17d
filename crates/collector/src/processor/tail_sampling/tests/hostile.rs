//! Data that somebody made to do harm.

use std::sync::atomic::Ordering;

use opentelemetry_proto::tonic::trace::v1::Span;

use super::support::*;
use crate::core::{Budget, Processor, SamplingOutcome};

const MIXED: &str = "decision_wait: 5s
policies:
- {name: errors, type: status_code, status_code: {status_codes: [ERROR]}}
- {name: slow, type: latency, latency: {threshold_ms: 1000}}
- {name: some, type: probabilistic, probabilistic: {sampling_percentage: 10}}";

#[tokio::test(start_paused = true)]
async fn a_million_spans_in_one_trace_stay_within_the_memory_and_stop_nobody() {
    let limit = 32 << 20;
    let budget = Budget::new(limit, limit / 5);
    let setup = Setup::new(MIXED).charged_to(budget.join());
    let giant = request(vec![span(1); 10_000]);
    for _ in 0..100 {
        // Refused when there is no room; never more than there is.
        let _ = setup.try_send(&giant).await;
        assert!(budget.used() <= limit);
        setup.pass(100).await;
    }
    setup.send(vec![error(2)]).await;
    setup.pass(6000).await;
    assert_eq!(setup.kept().get(&2), Some(&1), "the shard goes on");
    setup.sampler.flush().await;
    setup.backend.forget();
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_giant_trace_that_is_kept_arrives_whole_in_requests_of_a_sane_size() {
    let setup = Setup::new("decision_wait: 1s\npolicies: [{name: all, type: always_sample}]");
    for _ in 0..20 {
        setup.send(vec![span(1); 5000]).await;
    }
    setup.pass(3000).await;
    assert_eq!(setup.kept(), [(1, 100_000)].into());
    assert!(setup.backend.requests().len() >= 12);
}

#[tokio::test(start_paused = true)]
async fn one_span_each_of_many_traces_stays_within_the_memory() {
    let limit = 4 << 20;
    let budget = Budget::new(limit, limit / 5);
    let setup = Setup::new(MIXED).charged_to(budget.join());
    for request_number in 0..100_u128 {
        let spans = (1..=1000)
            .map(|n| Span { trace_id: (request_number * 1000 + n).to_be_bytes().to_vec(), ..Span::default() });
        let _ = setup.try_send(&request(spans.collect())).await;
        assert!(budget.used() <= limit);
        setup.pass(100).await;
        setup.backend.forget();
    }
    setup.pass(6000).await;
    setup.backend.forget();
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn zero_ids_duplicates_and_reversed_times_are_taken_as_they_are() {
    let setup = Setup::new(MIXED);
    let reversed = |trace| Span { start_time_unix_nano: START + 5_000_000_000, end_time_unix_nano: 1, ..span(trace) };
    let extreme = |trace| Span { start_time_unix_nano: u64::MAX, end_time_unix_nano: 0, ..error(trace) };
    setup.send(vec![span(0), error(0), reversed(1), reversed(1), extreme(2), extreme(2), extreme(2)]).await;
    setup.pass(6000).await;
    let kept = setup.kept();
    assert_eq!((kept.get(&0), kept.get(&2)), (Some(&2), Some(&3)));
    assert_eq!(setup.stats.waiting_bytes.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_large_resource_is_not_multiplied_by_the_traces_that_share_it() {
    let setup = Setup::new("decision_wait: 1s\nnum_shards: 1\npolicies: [{name: all, type: always_sample}]");
    let mut sent = request((1..=1000).map(span).collect());
    sent.resource_spans[0].resource.as_mut().unwrap().attributes.push(text("pad", &"x".repeat(100_000)));
    setup.try_send(&sent).await.unwrap();
    let held = setup.stats.waiting_bytes.load(Ordering::Relaxed);
    assert!(held < 500_000, "{held} bytes are held");
    setup.pass(3000).await;
    let requests = setup.backend.requests();
    let resources: usize = requests.iter().map(|request| request.resource_spans.len()).sum();
    assert!(resources <= 5, "the resource is written {resources} times");
}

#[tokio::test(start_paused = true)]
async fn late_errors_of_a_trace_that_nobody_wants_are_held_only_as_long_as_it_could_come_back() {
    let slow = "decision_wait: 1s\nlate_error_wait: 60s\npolicies: [{name: slow, type: latency, latency: {threshold_ms: 1000}}]";
    let (budget, large) = (Budget::new(4 << 20, 0), vec![error(1); 1000]);
    let setup = Setup::new(slow).charged_to(budget.join());
    setup.send(vec![span(1)]).await;
    setup.pass(2000).await;
    for _ in 0..100 {
        setup.send(large.clone()).await;
        let held = setup.stats.waiting_bytes.load(Ordering::Relaxed);
        assert!(held < 1 << 20, "an eighth of the memory and a request, not {held} bytes");
    }
    let asked = setup.stats.policy("slow").of(SamplingOutcome::NotSampled).traces.load(Ordering::Relaxed);
    assert!(asked <= 11, "the policies are not asked about more spans than can come back");
    assert_eq!(setup.stats.decided(SamplingOutcome::NotSampled), 1);
    assert!(setup.kept().is_empty());
    setup.pass(60_000).await;
    assert_eq!(budget.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn late_errors_of_a_giant_trace_are_not_looked_into() {
    let errors = "policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]";
    let setup = Setup::new(&format!("decision_wait: 1s\nlate_error_wait: 60s\n{errors}"));
    setup.send(vec![span(1); 10_001]).await;
    setup.pass(2000).await;
    for _ in 0..3 {
        setup.send(vec![error(1)]).await;
    }
    setup.pass(200).await;
    let asked = setup.stats.policy("errors");
    assert_eq!(asked.of(SamplingOutcome::NotSampled).traces.load(Ordering::Relaxed), 1);
    assert_eq!(asked.of(SamplingOutcome::Sampled).traces.load(Ordering::Relaxed), 0, "it cannot be brought back");
    assert!(setup.kept().is_empty());
}
