//! What happens on each answer of Loki.

use super::*;
use crate::core::{BackendStatus, ErrorClass};

/// Two namespaces with a line each.
fn two_tenants() -> Batch {
    batch(vec![namespace("a", vec![record(0, "of a")]), namespace("b", vec![record(0, "of b")])])
}

const BY_NAMESPACE: &str = ", tenant: '%{k8s.namespace.name}'";

#[tokio::test]
async fn lines_of_a_stream_are_sent_in_the_order_of_their_times() {
    // The stand-in takes no line that is older than the last one of its stream.
    let loki = StrictLoki::storing(Limits::default()).await;
    let exporter = exporter(&loki, "");
    let requests = vec![
        namespace("a", vec![record(7, "3"), record(1, "0")]),
        namespace("b", vec![record(0, "other")]),
        namespace("a", vec![record(7, "4"), record(2, "1"), record(2, "2")]),
    ];
    let success = exporter.send(&batch(requests)).await.unwrap();
    assert_eq!(success.rejected.total(), 0, "{}", success.message);
    assert_eq!(loki.texts(""), ["0", "1", "2", "3", "4", "other"]);
    assert_eq!(loki.requests().len(), 1);
}

#[tokio::test]
async fn time_of_observation_and_the_present_stand_for_a_missing_time() {
    let loki = StrictLoki::storing(Limits::default()).await;
    let observed = LogRecord {
        time_unix_nano: 0,
        observed_time_unix_nano: TIME + 3,
        body: Some(text("x")),
        ..LogRecord::default()
    };
    let none = LogRecord { observed_time_unix_nano: 0, ..observed.clone() };
    exporter(&loki, "").send(&batch(vec![namespace("a", vec![none, observed])])).await.unwrap();
    let (_, lines) = loki.only_stream();
    assert_eq!(lines[0].time, TIME + 3);
    assert!(lines[1].time > TIME + 3, "{}", lines[1].time);
}

#[tokio::test]
async fn lines_that_loki_refuses_are_counted_with_their_reason_and_never_sent_again() {
    let loki = StrictLoki::storing(Limits { oldest: TIME + 2, ..Limits::default() }).await;
    let lines = (0..5).map(|after| record(after, "x")).collect();
    let success = exporter(&loki, "").send(&batch(vec![namespace("a", lines)])).await.unwrap();
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::Time, 2)]);
    assert!(success.message.contains("2 errors like:"), "{}", success.message);
    assert_eq!((loki.texts("").len(), loki.requests().len()), (3, 1));
}

#[tokio::test]
async fn tenant_that_is_limited_does_not_hold_up_the_others_and_is_tried_again_alone() {
    let limit = |tenant: &str, before: usize| match (tenant, before) {
        ("a", 0) => Manner::Answer(429),
        _ => Manner::Store,
    };
    let loki = StrictLoki::start(Limits::default(), limit).await;
    let (errors, _) = deliver(&*exporter(&loki, BY_NAMESPACE), two_tenants()).await;
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!(error.class, ErrorClass::Throttled);
    let tenants: Vec<String> = loki.requests().iter().map(|seen| seen.header("x-scope-orgid").to_owned()).collect();
    assert_eq!(tenants, ["a", "b", "a"]);
    assert_eq!((loki.texts("a"), loki.texts("b")), (vec!["of a".to_owned()], vec!["of b".to_owned()]));
}

#[tokio::test]
async fn limit_of_one_stream_repeats_the_request_and_stores_nothing_twice() {
    let limit = |_: &str, before: usize| if before == 0 { Manner::LimitFirstStream } else { Manner::Store };
    let loki = StrictLoki::start(Limits::default(), limit).await;
    let (errors, success) = deliver(&*exporter(&loki, ""), two_tenants()).await;
    assert_eq!((errors.len(), success), (1, SendSuccess::default()));
    assert_eq!(loki.texts(""), ["of a", "of b"]);
}

#[tokio::test]
async fn answer_that_is_lost_leads_to_no_duplicate() {
    let lose = |_: &str, before: usize| if before < 2 { Manner::LoseAnswer } else { Manner::Store };
    let loki = StrictLoki::start(Limits::default(), lose).await;
    let (errors, success) = deliver(&*exporter(&loki, ""), two_tenants()).await;
    assert_eq!((errors.len(), success), (2, SendSuccess::default()));
    assert_eq!(loki.texts(""), ["of a", "of b"]);
}

#[tokio::test]
async fn blocked_ingestion_is_an_error_although_its_status_is_a_2xx() {
    let block = |_: &str, before: usize| if before == 0 { Manner::Answer(260) } else { Manner::Store };
    let loki = StrictLoki::start(Limits::default(), block).await;
    let (errors, _) = deliver(&*exporter(&loki, ""), two_tenants()).await;
    let status = http::StatusCode::from_u16(260).unwrap();
    assert_eq!((errors[0].class, errors[0].backend_status), (ErrorClass::Throttled, Some(BackendStatus::Http(status))));
    assert_eq!(loki.texts("").len(), 2);
}

#[tokio::test]
async fn statuses_of_trouble_are_retried_and_those_of_mistakes_are_not() {
    for status in [408, 429, 500, 502, 503, 504] {
        let fail = move |_: &str, before: usize| if before == 0 { Manner::Answer(status) } else { Manner::Store };
        let loki = StrictLoki::start(Limits::default(), fail).await;
        let (errors, success) = deliver(&*exporter(&loki, ""), two_tenants()).await;
        assert_eq!((errors.len(), success, loki.texts("").len()), (1, SendSuccess::default(), 2), "{status}");
    }
    for status in [301, 400, 401, 403, 404, 405, 422] {
        let loki = StrictLoki::start(Limits::default(), move |_, _| Manner::Answer(status)).await;
        let error = exporter(&loki, "").send(&two_tenants()).await.unwrap_err();
        assert!(!error.retryable && error.partial.is_none(), "{status}: {error}");
        assert!(error.message.contains(&format!("/loki/api/v1/push: HTTP {status} not now")), "{error}");
    }
}

#[tokio::test]
async fn tenant_that_is_denied_is_rejected_and_the_others_are_stored() {
    let deny = |tenant: &str, _: usize| if tenant == "a" { Manner::Answer(403) } else { Manner::Store };
    let loki = StrictLoki::start(Limits::default(), deny).await;
    let success = exporter(&loki, BY_NAMESPACE).send(&two_tenants()).await.unwrap();
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::Target, 1)]);
    assert_eq!(loki.texts("b"), ["of b"]);
}

#[tokio::test]
async fn destination_that_does_not_respond_is_asked_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = settings(&format!("http://{}", listener.local_addr().unwrap()), BY_NAMESPACE);
    let connections = tokio::spawn(async move {
        let mut connections = 0;
        while let Ok(Ok(connection)) =
            tokio::time::timeout(std::time::Duration::from_millis(300), listener.accept()).await
        {
            drop(connection);
            connections += 1;
        }
        connections
    });
    let error = build(&settings, None).unwrap().exporter.send(&two_tenants()).await.unwrap_err();
    assert!(error.retryable && error.partial.is_none() && error.class == ErrorClass::Connection, "{error:?}");
    assert_eq!(connections.await.unwrap(), 1, "not once for each tenant");
}

#[tokio::test]
async fn credentials_are_sent_and_not_repeated_in_messages() {
    let loki = StrictLoki::start(Limits::default(), |_, _| Manner::Answer(401)).await;
    let url = loki.url().replace("http://", "http://user:hunter2@");
    let settings = settings(&url, ", headers: {x-scope-orgid: fixed, x-key: hunter2}");
    let error = build(&settings, None).unwrap().exporter.send(&two_tenants()).await.unwrap_err();
    assert!(!error.message.contains("hunter2"), "{error}");
    let seen = &loki.requests()[0];
    assert_eq!((seen.header("authorization"), seen.header("x-scope-orgid")), ("Basic dXNlcjpodW50ZXIy", "fixed"));
}

#[tokio::test]
async fn memory_that_is_too_scarce_is_an_error_and_nothing_is_lost() {
    let loki = StrictLoki::storing(Limits::default()).await;
    let exporter = exporter(&loki, "");
    let budget = crate::core::Budget::new(600_000, 0);
    let member = budget.join();
    let mut tight = Batch::empty(Signal::Logs);
    let lines: Vec<String> = (0..200).map(|number| format!("{number:01000}")).collect();
    let records = lines.iter().enumerate().map(|(after, line)| record(after as u64, line)).collect();
    for part in batch(vec![namespace("a", records)]).into_parts() {
        let charge = Arc::new(member.reserve(part.bytes.len() as u64).unwrap());
        tight.push(Part { charge, ..part });
    }
    // Nothing is free beside the batch.
    let others = member.reserve(budget.limit() - budget.used()).unwrap();
    let error = exporter.send(&tight).await.unwrap_err();
    assert!(error.retryable && error.class == ErrorClass::Local, "{error:?}");
    drop(others);
    let (_, success) = deliver(&*exporter, tight).await;
    assert_eq!((success.rejected.total(), loki.texts("")), (0, lines), "in requests that fit into the memory");
    assert_eq!(budget.used(), 0);
}
