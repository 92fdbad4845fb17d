//! Logs go to Loki.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use kubewake_e2e::{CollectorProcess, ConfigBuilder, LokiAnswer, LokiBackend, http, otlp::logs_json, wait_until};

/// Retries that come at once.
const RETRY: &str = "retry_on_failure: {initial_interval: 10ms, max_interval: 20ms}";

fn collector(loki: &LokiBackend, more: &str) -> CollectorProcess {
    let settings = format!("{{endpoint: '{}', {RETRY}{more}}}", loki.url());
    let config = ConfigBuilder::new().exporter("loki", settings).pipeline("logs", "", "loki");
    CollectorProcess::with_config(config).start()
}

fn post(collector: &CollectorProcess, body: &str) {
    assert_eq!(http::post(collector.http(), "/v1/logs", "application/json", body.as_bytes()).status, 200);
}

#[test]
fn lines_have_the_labels_of_their_pod_and_their_order() {
    let loki = LokiBackend::start();
    let collector = collector(&loki, ", labels: {cluster: prod, ns: '%{k8s.namespace.name}'}");
    let pod = [("k8s.namespace.name", "shop"), ("k8s.pod.name", "cart-1")];
    post(&collector, &logs_json(&pod, &[("user", "7")], &["one", "two ✓", "three"]));
    wait_until("all lines are stored", || loki.lines().len() == 3);
    assert_eq!(loki.texts(""), ["one", "two ✓", "three"]);
    let line = loki.lines()[0].clone();
    assert_eq!(line.labels, r#"{cluster="prod", ns="shop"}"#);
    assert_eq!((line.metadata("k8s_pod_name"), line.metadata("user")), ("cart-1", "7"));
    assert_eq!(collector.metric("otelcol_exporter_sent_log_records", &[]), 3.0);
}

#[test]
fn tenant_that_is_limited_waits_and_the_others_do_not() {
    let is_limited = Arc::new(AtomicBool::new(true));
    let limit = is_limited.clone();
    let loki = LokiBackend::start_with(move |tenant| match tenant {
        "noisy" if limit.load(Ordering::Relaxed) => LokiAnswer::Refuse(429, "Ingestion rate limit exceeded"),
        _ => LokiAnswer::Store,
    });
    let collector = collector(&loki, ", tenant: '%{k8s.namespace.name}'");
    for namespace in ["noisy", "calm"] {
        post(&collector, &logs_json(&[("k8s.namespace.name", namespace)], &[], &["line"]));
    }
    wait_until("the other tenant has its line", || loki.texts("calm") == ["line"]);
    wait_until("the status has the code", || collector.status()["pipelines"]["logs"]["last_error_code"] == "http:429");
    is_limited.store(false, Ordering::Relaxed);
    wait_until("the limited tenant has its line, too", || loki.texts("noisy") == ["line"]);
    assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0);
}

#[test]
fn lines_that_loki_refuses_are_counted_and_not_sent_again() {
    let said = "2 errors like: entry for stream '{}' has timestamp too old: x, oldest acceptable timestamp is: y";
    let loki = LokiBackend::start_with(move |_| LokiAnswer::StoreAndSay(400, said));
    let collector = collector(&loki, "");
    post(&collector, &logs_json(&[], &[], &["one", "two", "three"]));
    let rejected = || collector.metric("kubewake_exporter_rejected_items", &["reason=\"time\""]);
    wait_until("the lines are counted", || rejected() == 2.0);
    assert_eq!(collector.metric("kubewake_pipeline_delivered_items", &[]), 1.0);
    assert_eq!(loki.requests().len(), 1);
}

#[test]
fn blocked_ingestion_loses_nothing() {
    let is_blocked = Arc::new(AtomicBool::new(true));
    let block = is_blocked.clone();
    let loki = LokiBackend::start_with(move |_| match block.load(Ordering::Relaxed) {
        true => LokiAnswer::Refuse(260, "ingestion blocked"),
        false => LokiAnswer::Store,
    });
    let collector = collector(&loki, "");
    post(&collector, &logs_json(&[], &[], &["one"]));
    wait_until("it was refused twice", || loki.requests().len() >= 2);
    is_blocked.store(false, Ordering::Relaxed);
    wait_until("the line is stored", || loki.texts("") == ["one"]);
}
