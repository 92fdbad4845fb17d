//! The receiver with real files, real queues and scripted backends.

mod delivery;
mod engine;
mod operators;
mod rotation;
mod support;

use self::support::{Fixture, Mood, wait_until};

fn lines(range: std::ops::Range<usize>) -> String {
    range.map(|number| format!("line {number}\n")).collect()
}

fn bodies(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("line {number}")).collect()
}

/// The numbers of lines.
fn numbers(found: &[String]) -> Vec<usize> {
    found.iter().map(|body| body.trim_start_matches("line ").parse().unwrap()).collect()
}

/// Once each, in any order.
fn assert_each_once(found: &[String], expected: std::ops::Range<usize>) {
    let mut sorted = numbers(found);
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(expected), "each line once");
}

/// At least once each, in any order.
fn assert_each(found: &[String], expected: std::ops::Range<usize>) {
    let mut sorted = numbers(found);
    sorted.sort_unstable();
    sorted.dedup();
    assert!(sorted.into_iter().eq(expected), "each line");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_delivered_with_the_attributes_of_their_file() {
    let mut fixture = Fixture::new("start_at: beginning, include_file_path: true, resource: {site: here}");
    fixture.write("a.log", "one\ntwo\n");
    fixture.start(&["nop"]);
    let backend = fixture.backend("nop");
    backend.wait_for_bodies(&["one", "two"]).await;
    fixture.write("a.log", "three\n");
    backend.wait_for_bodies(&["one", "two", "three"]).await;
    for record in backend.record_attributes() {
        assert_eq!(record["log.file.name"], "a.log");
        assert_eq!(record["log.file.path"], fixture.path("a.log").to_str().unwrap());
    }
    assert!(backend.resources().iter().all(|resource| resource["site"] == "here"));
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_containers_are_joined_and_their_pods_named() {
    let mut fixture = Fixture::new("start_at: beginning, include_file_path: true, operators: [{type: container}]");
    let time = "2026-11-19T18:00:00.123456789Z";
    let text = format!("{time} stdout P par\n{time} stderr F error\n{time} stdout F tial\n");
    fixture.write("shop_cart-1_0b9c/app/2.log", &text);
    fixture.set_include("*/*/*.log");
    fixture.start(&["nop"]);
    let backend = fixture.backend("nop");
    backend.wait_for_bodies(&["error", "partial"]).await;
    let resource = backend.resources().remove(0);
    let expected = [
        ("k8s.container.name", "app"),
        ("k8s.container.restart_count", "2"),
        ("k8s.namespace.name", "shop"),
        ("k8s.pod.name", "cart-1"),
        ("k8s.pod.uid", "0b9c"),
    ];
    assert_eq!(resource, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stack_trace_at_the_end_of_a_log_is_delivered_as_one_record() {
    let mut fixture = Fixture::new("start_at: beginning, join_stack_traces: true, operators: [{type: container}]");
    let time = "2026-11-19T18:00:00.123456789Z";
    let text =
        format!("{time} stderr F java.lang.Error: x\n{time} stdout F out\n{time} stderr F \tat a.B.c(B.java:1)\n");
    fixture.write("shop_cart-1_0b9c/app/0.log", &text);
    fixture.set_include("*/*/*.log");
    fixture.start(&["nop"]);
    fixture.backend("nop").wait_for_bodies(&["out", "java.lang.Error: x\n\tat a.B.c(B.java:1)"]).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_last_line_is_delivered_when_it_does_not_grow() {
    let mut fixture = Fixture::new("start_at: beginning, force_flush_period: 50ms");
    fixture.write("a.log", "one\nhalf");
    fixture.start(&["nop"]);
    fixture.backend("nop").wait_for_bodies(&["one", "half"]).await;
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_that_starts_again_continues_where_it_was() {
    let mut fixture = Fixture::new("start_at: beginning");
    fixture.write("a.log", &lines(0..1000));
    fixture.start(&["nop"]);
    let backend = fixture.backend("nop");
    backend.wait_for_count(1000).await;
    fixture.stop().await;
    fixture.write("a.log", &lines(1000..1500));
    fixture.start(&["nop"]);
    backend.wait_for_count(1500).await;
    fixture.stop().await;
    assert_eq!(backend.bodies(), bodies(0..1500));
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_without_a_state_directory_starts_as_start_at_says() {
    let mut fixture = Fixture::new("start_at: end").without_state();
    fixture.write("a.log", "old\n");
    fixture.start(&["nop"]);
    let backend = fixture.backend("nop");
    // It is not visible when the files have been listed: lines are written until one is read.
    wait_until("a line", || {
        fixture.write("a.log", "new\n");
        !backend.bodies().is_empty()
    })
    .await;
    fixture.stop().await;
    assert!(!backend.bodies().contains(&"old".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_delivered_before_the_end_is_delivered_after_the_next_start() {
    let mut fixture = Fixture::new("start_at: beginning");
    fixture.write("a.log", &lines(0..100));
    let backend = fixture.backend("nop");
    backend.set_mood(Mood::Hangs);
    fixture.start(&["nop"]);
    backend.wait_for_attempts(1).await;
    fixture.stop_within(std::time::Duration::from_millis(50)).await;
    assert_eq!((backend.bodies(), fixture.dropped()), (Vec::new(), 0));
    backend.set_mood(Mood::Takes);
    fixture.start(&["nop"]);
    backend.wait_for_count(100).await;
    fixture.stop().await;
    assert_eq!(backend.bodies(), bodies(0..100));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_receiver_loses_nothing() {
    let mut fixture = Fixture::new("start_at: beginning");
    let backend = fixture.backend("nop");
    for round in 0..5 {
        fixture.write("a.log", &lines(round * 200..(round + 1) * 200));
        fixture.start(&["nop"]);
        wait_until("the last line", || backend.bodies().contains(&format!("line {}", round * 200 + 199))).await;
        fixture.kill();
    }
    assert_each(&backend.bodies(), 0..1000);
}
