//! The status says how data fares on its way to the backend.

use std::time::{Duration, Instant};

use kubewake_e2e::{
    LoadGenerator, SinkProcess, TestAuthority, free_address,
    operator::{OperatorCluster, trace_pipeline},
};

use super::guarded;

const SOME: &[&str] = &["--requests", "10", "--spans", "10"];

#[test]
fn a_wrong_password_shows_within_15_seconds() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    let backend = guarded::by_password(&sink, &["ada:lovelace"]);
    operated.apply(&guarded::password("ada", "planted-byron"));
    operated.apply(&guarded::with_password(&operated, "backend", backend.grpc()));
    operated.wait_for_reason("tracepipeline/backend", "NoData");
    operated.send(SOME);

    let sent = Instant::now();
    let status = operated.wait_for_reason("tracepipeline/backend", "BackendRefuses");
    // Of somebody's cluster, and of the way to it, nobody knows how busy it is.
    let is_in_time = sent.elapsed() < Duration::from_secs(15);
    assert!(is_in_time || !operated.kubectl.cluster().is_embedded(), "it took {:?}", sent.elapsed());
    let delivering = OperatorCluster::condition(&status, "Delivering");
    assert_eq!((&status["state"], &delivering["status"]), (&"Degraded".into(), &"False".into()), "{status}");
    let words = delivering["message"].as_str().unwrap();
    assert!(words.contains("credentials (grpc:16)") && !words.contains("byron"), "{words}");
    let events = operated.kubectl.run_ok("get events --all-namespaces -o json");
    assert!(events.contains("BackendRefuses") && !events.contains("byron"), "{events}");

    operated.apply(&guarded::password("ada", "lovelace"));
    let report = operated.send_until_delivered(&sink, SOME);
    assert!(report.items("acknowledged") > 0);
    // What was refused is lost, and that is not forgotten at once.
    let status = operated.wait_for_reason("tracepipeline/backend", "DataDropped");
    assert!(
        OperatorCluster::condition(&status, "Delivering")["message"].as_str().unwrap().contains("refused"),
        "{status}"
    );
}

#[test]
fn an_endpoint_without_tls_at_a_port_that_expects_it_is_told_how_to_mend_it() {
    let Some(operated) = OperatorCluster::start() else { return };
    let backend = guarded::by_certificate(&SinkProcess::start(), &TestAuthority::new("ours"));
    operated.apply(&trace_pipeline("backend", backend.grpc()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    LoadGenerator::run("grpc", operated.otlp(), SOME);
    let status = operated.wait_for_reason("tracepipeline/backend", "BackendUnreachable");
    let words = OperatorCluster::condition(&status, "Delivering")["message"].as_str().unwrap().to_owned();
    assert!(words.contains("expects TLS") && words.contains("use https:// instead of http://"), "{words}");
}

#[test]
fn a_backend_that_is_not_there_gets_everything_when_it_comes() {
    let Some(operated) = OperatorCluster::start() else { return };
    let address = free_address();
    let quick = "retry: {initialInterval: 100ms, maxInterval: 200ms}";
    operated.apply(&trace_pipeline("backend", address).replace("endpoint:", &format!("{quick}, endpoint:")));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let report = LoadGenerator::run("grpc", operated.otlp(), SOME);
    let status = operated.wait_for_reason("tracepipeline/backend", "BackendUnreachable");
    assert!(
        OperatorCluster::condition(&status, "Delivering")["message"].as_str().unwrap().contains("connection refused"),
        "{status}"
    );
    assert_eq!(operated.kubectl.field("tracepipeline backend", ".status.state"), "Degraded");

    let sink = SinkProcess::start_at(address, &[]);
    sink.wait_for_all(&report.acknowledged);
    let status = operated.wait_for_reason("tracepipeline/backend", "Delivering");
    assert_eq!(status["state"], "Ready", "{status}");
}
