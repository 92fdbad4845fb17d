//! Malicious data.

use std::sync::{Arc, Mutex, atomic::Ordering};

use bytes::Bytes;
use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::trace::v1::Span;

use super::support::*;
use crate::core::{
    Batch, Budget, ConsumeOutcome, Consumer, DropReason, OverflowPolicy, Part, Processor, SamplingOutcome,
    testing::{self, numbers},
};

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
        // Refused when there is no room; memory use never exceeds the limit.
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
    let budget = Budget::new(4 << 20, 0);
    let large = vec![error(1); 1000];
    let setup = Setup::new(slow).charged_to(budget.join());
    setup.send(vec![span(1)]).await;
    setup.pass(2000).await;
    for _ in 0..100 {
        setup.send(large.clone()).await;
        let held = setup.stats.waiting_bytes.load(Ordering::Relaxed);
        assert!(held < 1 << 20, "an eighth of the memory and a request, not {held} bytes");
    }
    let asked = setup.stats.policy("slow").counts(SamplingOutcome::NotSampled).traces.load(Ordering::Relaxed);
    assert!(asked <= 11, "the policies are not asked about more spans than can come back");
    assert_eq!(setup.stats.decisions(SamplingOutcome::NotSampled), 1);
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
    assert_eq!(asked.counts(SamplingOutcome::NotSampled).traces.load(Ordering::Relaxed), 1);
    assert_eq!(asked.counts(SamplingOutcome::Sampled).traces.load(Ordering::Relaxed), 0, "it cannot be brought back");
    assert!(setup.kept().is_empty());
}

/// Releases all batches, and remembers which traces arrived and how many items were counted as lost.
#[derive(Default)]
struct Counting {
    traces: Mutex<Vec<u64>>,
    losses: Mutex<Vec<(usize, DropReason)>>,
}

impl Consumer for Counting {
    fn consume(self: Arc<Self>, batch: Batch, _: OverflowPolicy) -> ConsumeOutcome {
        self.traces.lock().unwrap().extend(numbers(&batch));
        ConsumeOutcome::Now(Ok(()))
    }

    fn count_refused(&self, _: &Batch) {}

    fn count_lost(&self, batch: &Batch, reason: DropReason) {
        self.losses.lock().unwrap().push((batch.items(), reason));
    }
}

#[tokio::test(start_paused = true)]
async fn acknowledged_request_that_never_fits_is_counted_and_does_not_hold_up_what_is_behind_it() {
    let member = Budget::new(256 << 10, 0).join();
    let setup = Setup::new("decision_wait: 1s\npolicies: [{name: all, type: always_sample}]");
    let next = Arc::new(Counting::default());
    setup.sampler.output().set_targets(vec![next.clone()]);
    // The facts of a request take many times its bytes, of which a stranger may send as many as fit.
    let (many, one) =
        (testing::part(0..5000, member.reserve(120_000).unwrap()), testing::part([7], member.reserve(500).unwrap()));
    let mut batch = Batch::empty(Signal::Traces);
    batch.push(many);
    batch.push(one);
    setup.sampler.clone().consume(batch, OverflowPolicy::Wait).wait().await.unwrap();
    setup.sampler.flush().await;
    assert_eq!(*next.losses.lock().unwrap(), [(5000, DropReason::MemoryLimit)]);
    assert_eq!(*next.traces.lock().unwrap(), [7]);
    assert_eq!(member.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn empty_resources_and_scopes_are_charged_for_before_they_are_noted() {
    let limit = 1 << 20;
    let setup = Setup::new(MIXED);
    for (piece, around) in [(&[0x0a, 0x00][..], None), (&[0x12, 0x00], Some(1))] {
        // As many entries as fit, and one span.
        let entries = piece.repeat(100_000);
        let one = [0x0a, 0x04, 0x12, 0x02, 0x12, 0x00];
        let mut bytes = Vec::new();
        match around {
            None => bytes.extend_from_slice(&entries),
            Some(number) => kubewake_otlp::wire::put_bytes(&mut bytes, number, &entries),
        }
        bytes.extend_from_slice(&one);
        let budget = Budget::new(limit, 0);
        let charge = Arc::new(budget.join().reserve(bytes.len() as u64).unwrap());
        let part = Part::new(Bytes::from(bytes), 1, Arc::default(), charge);
        let refusal =
            setup.sampler.clone().consume(Batch::single(Signal::Traces, part), OverflowPolicy::Refuse).wait().await;
        assert!(!refusal.unwrap_err().is_retryable(), "there is never so much memory");
        assert_eq!(budget.used(), 0);
    }
}
