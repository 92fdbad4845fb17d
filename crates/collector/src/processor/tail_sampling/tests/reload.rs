//! New settings while traces wait.

use std::sync::atomic::Ordering;

use super::support::*;

const ERRORS: &str =
    "decision_wait: 5s\npolicies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]";

#[tokio::test(start_paused = true)]
async fn new_policies_decide_on_what_waits() {
    let setup = Setup::new(ERRORS);
    let slow = |trace| opentelemetry_proto::tonic::trace::v1::Span {
        end_time_unix_nano: START + 2_000_000_000,
        ..span(trace)
    };
    setup.send(vec![error(1), slow(2), span(3)]).await;
    setup.pass(2000).await;
    let text = "decision_wait: 5s\npolicies: [{name: slow, type: latency, latency: {threshold_ms: 1000}}]";
    setup.sampler.reconfigure(settings(text));
    setup.send(vec![span(2), error(3), slow(4)]).await;
    setup.pass(6000).await;
    assert_eq!(setup.kept(), [(2, 2), (4, 1)].into());
}

#[tokio::test(start_paused = true)]
async fn a_shorter_wait_is_in_force_for_what_waits_and_a_longer_one_is_not() {
    let setup = Setup::new("decision_wait: 60s\npolicies: [{name: all, type: always_sample}]");
    let wait =
        |seconds| settings(&format!("decision_wait: {seconds}s\npolicies: [{{name: all, type: always_sample}}]"));
    setup.send(vec![span(1)]).await;
    setup.pass(8000).await;
    setup.send(vec![span(2)]).await;
    setup.sampler.reconfigure(wait(5));
    setup.pass(200).await;
    assert_eq!(setup.kept(), [(1, 1)].into(), "its time has passed already");
    setup.sampler.reconfigure(wait(60));
    setup.pass(5000).await;
    assert_eq!(setup.kept(), [(1, 1), (2, 1)].into());
    setup.pass(60_000).await;
    assert_eq!(setup.kept(), [(1, 1), (2, 1)].into(), "nothing is decided on twice");
}

#[tokio::test(start_paused = true)]
async fn a_late_error_brings_back_by_new_policies_what_old_ones_dropped() {
    let late = |policy: &str| format!("decision_wait: 1s\nlate_error_wait: 10s\npolicies: [{policy}]");
    let setup = Setup::new(&late("{name: slow, type: latency, latency: {threshold_ms: 1000}}"));
    let with = |trace| opentelemetry_proto::tonic::trace::v1::Span { attributes: vec![text("k", "v")], ..span(trace) };
    setup.send(vec![with(1), span(1), span(2)]).await;
    setup.pass(2000).await;
    let errors = "{name: e, type: status_code, status_code: {status_codes: [ERROR]}}";
    let keyed = "{name: k, type: string_attribute, string_attribute: {key: k, values: [v]}}";
    let both = format!("{{name: both, type: and, and: {{and_sub_policy: [{errors}, {keyed}]}}}}");
    setup.sampler.reconfigure(settings(&late(&both)));
    setup.send(vec![error(1), error(2)]).await;
    setup.pass(200).await;
    assert_eq!(setup.kept(), [(1, 3)].into(), "by what came before and now");
}

#[tokio::test(start_paused = true)]
async fn a_late_error_is_judged_by_itself_where_each_arrival_is() {
    let strategy = "sampling_strategy: span-ingest\ndecision_wait: 1s\nlate_error_wait: 10s";
    let errors = "{name: e, type: status_code, status_code: {status_codes: [ERROR]}}";
    let keyed = "{name: k, type: string_attribute, string_attribute: {key: k, values: [v]}}";
    let both =
        format!("{strategy}\npolicies: [{{name: both, type: and, and: {{and_sub_policy: [{errors}, {keyed}]}}}}]");
    let with = |span| opentelemetry_proto::tonic::trace::v1::Span { attributes: vec![text("k", "v")], ..span };
    for reload in [false, true] {
        let before = if reload { format!("{strategy}\npolicies: [{errors}]") } else { both.clone() };
        let setup = Setup::new(&before);
        setup.send(vec![with(span(1)), span(1)]).await;
        setup.pass(2000).await;
        setup.sampler.reconfigure(settings(&both));
        setup.send(vec![error(1)]).await;
        setup.pass(200).await;
        assert_eq!(setup.kept(), [].into(), "no arrival had both");
        setup.send(vec![with(error(1))]).await;
        setup.pass(200).await;
        assert_eq!(setup.kept(), [(1, 4)].into(), "with all that came before");
    }
}

#[tokio::test(start_paused = true)]
async fn decisions_and_stamps_stay_valid() {
    let setup = Setup::new(&format!("record_policy: true\n{ERRORS}"));
    setup.send(vec![error(1), span(2)]).await;
    setup.pass(6000).await;
    setup.sampler.reconfigure(settings("record_policy: true\npolicies: [{name: all, type: always_sample}]"));
    setup.send(vec![span(1), span(2)]).await;
    setup.pass(100).await;
    assert_eq!(setup.kept(), [(1, 2)].into(), "late spans follow the old decision");
    for request in setup.backend.requests() {
        let scope = request.resource_spans[0].scope_spans[0].scope.clone().unwrap();
        assert_eq!(scope.attributes[0], text("tailsampling.policy", "errors"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_did_not_change_keeps_what_it_has_used() {
    let limited = "{name: limited, type: rate_limiting, rate_limiting: {spans_per_second: 1, burst_capacity: 5}}";
    let policies = |more: &str| format!("decision_wait: 1s\npolicies: [{limited}{more}]");
    let setup = Setup::new(&policies(""));
    setup.send((1..=10).map(span).collect()).await;
    setup.pass(1200).await;
    assert_eq!(setup.kept().len(), 5);
    setup.backend.forget();
    let more = ", {name: errors, type: status_code, status_code: {status_codes: [ERROR]}}";
    setup.sampler.reconfigure(settings(&policies(more)));
    setup.send((11..=20).map(span).collect()).await;
    setup.pass(1200).await;
    assert!(setup.kept().len() <= 2, "only what came since: {:?}", setup.kept());
    assert_eq!(setup.stats.overloads.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn caches_of_other_sizes_know_what_they_knew() {
    let sized = |kept: usize, dropped: usize| {
        format!("decision_cache: {{sampled_cache_size: {kept}, non_sampled_cache_size: {dropped}}}\n{ERRORS}")
    };
    let setup = Setup::new(&sized(1000, 1000));
    setup.send(vec![error(1), span(2)]).await;
    setup.pass(6000).await;
    for (kept, dropped) in [(2000, 1000), (2000, 3000), (500, 20)] {
        setup.sampler.reconfigure(settings(&sized(kept, dropped)));
        setup.backend.forget();
        setup.send(vec![span(1), error(2)]).await;
        setup.pass(6000).await;
        assert_eq!(setup.kept(), [(1, 1)].into(), "late spans follow the decision");
    }
}
