//! What happens on each answer.

use super::*;
use crate::core::Batch;

/// A batch of so many records, whose lines are their numbers.
fn lines(count: u64) -> Batch {
    batch(vec![namespace("a", (0..count).map(|number| record(number, &number.to_string())).collect())])
}

fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn statuses_from_200_to_205_are_success() {
    for status in 200..=205 {
        let backend = answering(move |_, _| status).await;
        assert_eq!(exporter(&backend, "").send(&lines(2)).await.unwrap(), SendSuccess::default(), "{status}");
    }
}

#[tokio::test]
async fn mistakes_are_refused_for_good_and_all_else_is_retried() {
    for status in [400, 401, 403, 404, 405, 410, 413, 422] {
        let backend = answering(move |_, _| status).await;
        let error = exporter(&backend, "").send(&lines(1)).await.unwrap_err();
        assert!(!error.retryable && error.message.ends_with(&format!("/in: HTTP {status} said")), "{error}");
    }
    for status in [206, 301, 408, 429, 500, 501, 503] {
        let backend = answering(move |_, _| status).await;
        let error = exporter(&backend, "").send(&lines(1)).await.unwrap_err();
        assert!(error.retryable && error.partial.is_none(), "{status}: {error}");
    }
}

#[tokio::test]
async fn only_what_is_left_is_sent_again() {
    let backend = answering(|_, before| if before == 1 { 503 } else { 200 }).await;
    let exporter = exporter(&backend, ", max_request_size: 1000");
    let error = exporter.send(&lines(20)).await.unwrap_err();
    let rest = error.partial.unwrap().rest;
    let settled = documents(&backend.seen()[..1]).len();
    assert!(rest.items() == 20 - settled && settled > 0, "{settled}");
    exporter.send(&rest).await.unwrap();
    let mut seen = backend.seen();
    seen.remove(1);
    assert_eq!(messages(&seen), numbers(0..20), "in their order, each once");
}

#[tokio::test]
async fn refused_request_does_not_hold_up_the_others() {
    let backend = answering(|_, before| if before == 1 { 400 } else { 200 }).await;
    let success = exporter(&backend, ", max_request_size: 1000").send(&lines(20)).await.unwrap();
    let refused = documents(&backend.seen()[1..2]).len() as u64;
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::Other, refused)]);
    assert!(success.message.contains("HTTP 400"), "{}", success.message);
}

#[tokio::test]
async fn request_that_is_too_large_is_halved_and_later_ones_are_smaller() {
    let backend = answering(|seen, _| if seen.body.len() > 1000 { 413 } else { 200 }).await;
    let exporter = exporter(&backend, "");
    exporter.send(&lines(40)).await.unwrap();
    let taken = |from: usize| -> Vec<Seen> {
        backend.seen().into_iter().skip(from).filter(|seen| seen.body.len() <= 1000).collect()
    };
    assert_eq!(messages(&taken(0)), numbers(0..40));
    let before = backend.seen().len();
    exporter.send(&lines(40)).await.unwrap();
    assert_eq!(messages(&taken(before)).len(), documents(&backend.seen()[before..]).len(), "the size is known");
}

#[tokio::test]
async fn single_document_that_is_too_large_is_rejected_and_the_others_are_stored() {
    let backend = answering(|seen, _| if seen.body.len() > 500 { 413 } else { 200 }).await;
    let long = "x".repeat(600);
    let lines = vec![record(0, "before"), record(1, &long), record(2, "behind")];
    let success = exporter(&backend, "").send(&batch(vec![namespace("a", lines)])).await.unwrap();
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::TooLarge, 1)]);
    let taken: Vec<Seen> = backend.seen().into_iter().filter(|seen| seen.body.len() <= 500).collect();
    assert_eq!(messages(&taken), ["before", "behind"]);
}

#[tokio::test]
async fn batch_is_sent_in_requests_of_the_configured_size() {
    let backend = taking().await;
    exporter(&backend, ", max_request_size: 1000").send(&lines(50)).await.unwrap();
    let seen = backend.seen();
    assert!(seen.len() > 1 && seen.iter().all(|seen| seen.body.len() <= 1000));
    assert_eq!(messages(&seen), numbers(0..50));
}

#[tokio::test]
async fn secrets_are_not_repeated_in_messages() {
    let backend = Backend::start(Speaks::Http1, None, |seen, _| Reply::http(403, &[], seen.header("x-key"))).await;
    let error = exporter(&backend, ", headers: {x-key: hunter2}").send(&lines(1)).await.unwrap_err();
    assert!(error.message.ends_with("HTTP 403 ***"), "{error}");
}

#[tokio::test]
async fn batch_is_sent_in_small_requests_when_no_memory_is_free() {
    let backend = taking().await;
    let budget = crate::core::Budget::new(300_000, 0);
    let member = budget.join();
    let mut tight = Batch::empty(kubewake_otlp::Signal::Logs);
    let texts: Vec<String> = (0..200).map(|number| format!("{number:0500}")).collect();
    let records = texts.iter().zip(0..).map(|(line, after)| record(after, line)).collect();
    for part in batch(vec![namespace("a", records)]).into_parts() {
        let charge = Arc::new(member.reserve(part.bytes.len() as u64).unwrap());
        tight.push(crate::core::Part { charge, ..part });
    }
    let others = member.reserve(budget.limit() - budget.used()).unwrap();
    exporter(&backend, "").send(&tight).await.unwrap();
    assert_eq!(messages(&backend.seen()), texts, "each once");
    assert!(backend.seen().len() > 1);
    drop((others, tight));
    assert_eq!(budget.used(), 0);
}
