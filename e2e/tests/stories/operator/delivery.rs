//! The status says how data fares on its way to the backend.

use std::time::{Duration, Instant};

use kubewake_e2e::{
    Authority, Load, Sink, free_address,
    operator::{Operated, trace_pipeline},
};

use super::guarded;

const SOME: &[&str] = &["--requests", "10", "--spans", "10"];

#[test]
fn a_wrong_password_shows_within_15_seconds() {
    let Some(operated) = Operated::anywhere() else { return };
    let sink = Sink::start();
    let backend = guarded::by_password(&sink, &["ada:lovelace"]);
    operated.apply(&guarded::password("ada", "planted-byron"));
    operated.apply(&guarded::with_password(&operated, "backend", backend.grpc()));
    operated.until_reason("tracepipeline/backend", "NoData");
    operated.send(SOME);

    let sent = Instant::now();
    let status = operated.until_reason("tracepipeline/backend", "BackendRefuses");
    // Of somebody's cluster, and of the way to it, nobody knows how busy it is.
    let is_in_time = sent.elapsed() < Duration::from_secs(15);
    assert!(is_in_time || !operated.kubectl.cluster().is_embedded(), "it took {:?}", sent.elapsed());
    let delivering = Operated::condition(&status, "Delivering");
    assert_eq!((&status["state"], &delivering["status"]), (&"Degraded".into(), &"False".into()), "{status}");
    let words = delivering["message"].as_str().unwrap();
    assert!(words.contains("credentials (grpc:16)") && !words.contains("byron"), "{words}");
    let events = operated.kubectl.ok("get events --all-namespaces -o json");
    assert!(events.contains("BackendRefuses") && !events.contains("byron"), "{events}");

    operated.apply(&guarded::password("ada", "lovelace"));
    let report = operated.until_delivered(&sink, SOME);
    assert!(report.items("acknowledged") > 0);
    // What was refused is lost, and that is not forgotten at once.
    let status = operated.until_reason("tracepipeline/backend", "DataDropped");
    assert!(Operated::condition(&status, "Delivering")["message"].as_str().unwrap().contains("refused"), "{status}");
}

#[test]
fn an_endpoint_without_tls_at_a_port_that_expects_it_is_told_how_to_mend_it() {
    let Some(operated) = Operated::start() else { return };
    let backend = guarded::by_certificate(&Sink::start(), &Authority::new("ours"));
    operated.apply(&trace_pipeline("backend", backend.grpc()));
    operated.until_state("tracepipeline/backend", "Ready");
    Load::run("grpc", operated.otlp(), SOME);
    let status = operated.until_reason("tracepipeline/backend", "BackendUnreachable");
    let words = Operated::condition(&status, "Delivering")["message"].as_str().unwrap().to_owned();
    assert!(words.contains("expects TLS") && words.contains("use https:// instead of http://"), "{words}");
}

#[test]
fn a_backend_that_is_not_there_gets_everything_when_it_comes() {
    let Some(operated) = Operated::start() else { return };
    let address = free_address();
    let quick = "retry: {initialInterval: 100ms, maxInterval: 200ms}";
    operated.apply(&trace_pipeline("backend", address).replace("endpoint:", &format!("{quick}, endpoint:")));
    operated.until_state("tracepipeline/backend", "Ready");
    let report = Load::run("grpc", operated.otlp(), SOME);
    let status = operated.until_reason("tracepipeline/backend", "BackendUnreachable");
    assert!(
        Operated::condition(&status, "Delivering")["message"].as_str().unwrap().contains("connection refused"),
        "{status}"
    );
    assert_eq!(operated.kubectl.field("tracepipeline backend", ".status.state"), "Degraded");

    let sink = Sink::start_at(address, &[]);
    sink.await_all(&report.acknowledged);
    let status = operated.until_reason("tracepipeline/backend", "Delivering");
    assert_eq!(status["state"], "Ready", "{status}");
}
