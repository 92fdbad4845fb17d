//! Dropped traces whose bytes linger for an error that comes late.

use std::sync::atomic::Ordering;

use opentelemetry_proto::tonic::trace::v1::Span;

use super::support::*;
use crate::core::{Budget, EarlyDecision};

const ERRORS: &str = "policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]";

/// The span with so much in it.
fn padded(span: Span, bytes: usize) -> Span {
    Span { attributes: vec![text("pad", &"x".repeat(bytes))], ..span }
}

#[tokio::test(start_paused = true)]
async fn what_lingers_makes_room_before_a_new_trace_does_not_wait() {
    let budget = Budget::new(8 << 20, 1 << 20);
    let settings = format!("decision_wait: 500ms\nlate_error_wait: 60s\nnum_shards: 2\n{ERRORS}");
    let setup = Setup::new(&settings).charged_to(budget.join());
    // A fifth of the memory waits at any time, and what comes in a minute is many times all of it.
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
    assert_eq!(setup.stats.hurried(EarlyDecision::Overload), 0);
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
    let elsewhere = setup.member.as_ref().unwrap().admit(300 << 10).unwrap();
    setup.pass(1100).await;
    assert_eq!(budget.used(), elsewhere.bytes(), "nothing lingers");
    assert_eq!(setup.stats.overloads.load(Ordering::Relaxed), 0);
}
