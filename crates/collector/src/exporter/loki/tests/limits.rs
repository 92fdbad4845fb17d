//! Sizes of lines, metadata and requests.

use super::*;

#[tokio::test]
async fn long_line_is_cut_between_characters_and_counted() {
    let loki = StrictLoki::storing(Limits { line_bytes: 10, ..Limits::default() }).await;
    let exporter = exporter(&loki, ", max_line_size: 10");
    let lines = vec![record(0, "123456789ä"), record(1, "1234567890"), record(2, "12345678901")];
    let success = exporter.send(&batch(vec![namespace("a", lines)])).await.unwrap();
    assert_eq!((success.truncated, success.rejected.total()), (2, 0));
    assert_eq!(loki.texts(""), ["123456789", "1234567890", "1234567890"]);
}

#[tokio::test]
async fn long_line_is_rejected_if_the_settings_say_so() {
    let loki = StrictLoki::storing(Limits { line_bytes: 10, ..Limits::default() }).await;
    let exporter = exporter(&loki, ", max_line_size: 10, max_line_behavior: drop");
    let lines = vec![record(0, "12345678901"), record(1, "short"), record(2, "12345678901")];
    let success = exporter.send(&batch(vec![namespace("a", lines)])).await.unwrap();
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::TooLarge, 2)]);
    assert_eq!(loki.texts(""), ["short"]);
    let long = batch(vec![namespace("a", vec![record(0, "12345678901")])]);
    assert_eq!(exporter.send(&long).await.unwrap().rejected.total(), 1);
    assert_eq!(loki.requests().len(), 1, "there is nothing to send");
}

#[tokio::test]
async fn metadata_beyond_the_limits_is_left_out_and_counted() {
    let limits = Limits { metadata_entries: 3, metadata_bytes: 30, ..Limits::default() };
    let loki = StrictLoki::storing(limits).await;
    let exporter = exporter(&loki, ", labels: {job: x}, structured_metadata: {max_entries: 3, max_size: 30}");
    let mut many = record(0, "many");
    many.attributes = attributes((0..5).map(|_| ("a", number(1))).collect());
    let names = ["a", "b", "c", "d"];
    many.attributes = attributes(names.iter().map(|name| (*name, number(1))).collect());
    let mut long = record(1, "long");
    let value = "x".repeat(30);
    long.attributes = attributes(vec![("long", text(&value)), ("b", number(2))]);
    let success = exporter.send(&batch(vec![resource(vec![], vec![many, long, record(2, "none")])])).await.unwrap();
    assert_eq!(success.truncated, 2);
    let (_, lines) = loki.only_stream();
    let names: Vec<Vec<&str>> = lines.iter().map(|line| line.metadata.keys().map(String::as_str).collect()).collect();
    assert_eq!(names, [vec!["a", "b", "c"], vec!["b"], vec![]]);
}

#[tokio::test]
async fn batch_is_sent_in_requests_of_the_configured_size() {
    let loki = StrictLoki::storing(Limits { request_bytes: 2000, ..Limits::default() }).await;
    let exporter = exporter(&loki, ", max_request_size: 2000");
    let lines: Vec<String> = (0..100).map(|number| format!("{number:0100}")).collect();
    let records = lines.iter().enumerate().map(|(after, line)| record(after as u64, line)).collect();
    exporter.send(&batch(vec![namespace("a", records)])).await.unwrap();
    assert_eq!(loki.texts(""), lines);
    let requests = loki.requests();
    assert!((5..10).contains(&requests.len()), "{} requests", requests.len());
}

#[tokio::test]
async fn request_that_is_too_large_for_loki_is_halved_and_later_ones_are_smaller() {
    let loki = StrictLoki::storing(Limits { request_bytes: 2000, ..Limits::default() }).await;
    let exporter = exporter(&loki, "");
    let lines: Vec<String> = (0..100).map(|number| format!("{number:0100}")).collect();
    let records = |from: u64| lines.iter().zip(from..).map(|(line, after)| record(after, line)).collect();
    let success = exporter.send(&batch(vec![namespace("a", records(0))])).await.unwrap();
    assert_eq!((success, loki.texts("")), (SendSuccess::default(), lines.clone()));
    let before = loki.requests().len();
    exporter.send(&batch(vec![namespace("b", records(0))])).await.unwrap();
    assert!(loki.requests().len() - before < 15, "the size is known");
}

#[tokio::test]
async fn single_line_that_is_too_large_is_rejected_and_the_others_are_stored() {
    let loki = StrictLoki::storing(Limits { request_bytes: 500, ..Limits::default() }).await;
    let exporter = exporter(&loki, "");
    let large = "x".repeat(600);
    let lines = vec![record(0, "before"), record(1, &large), record(2, "behind")];
    let success = exporter.send(&batch(vec![namespace("a", lines)])).await.unwrap();
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::TooLarge, 1)]);
    assert!(success.message.contains("HTTP 413"), "{}", success.message);
    assert_eq!(loki.texts(""), ["before", "behind"]);
}
