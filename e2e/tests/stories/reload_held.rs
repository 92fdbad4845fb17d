//! The document changes while data is held.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, config::otlp_at, free_address, grpc_to, http, http_to,
    wait_until,
};

fn held(sink: &SinkProcess, config: &ConfigBuilder) -> (CollectorProcess, kubewake_e2e::load::LoadReport) {
    let collector = CollectorProcess::with_config(config).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "50", "--spans", "10"]);
    assert_eq!((report.items("acknowledged"), sink.items()), (500, 0), "{report:?}");
    (collector, report)
}

/// A few requests under way, the rest in the queue.
fn to(sink: &SinkProcess, more: &str) -> ConfigBuilder {
    let quick = "tls: {insecure: true}, retry_on_failure: {initial_interval: 50ms, max_interval: 200ms}, timeout: 1s";
    ConfigBuilder::exporting_to("otlp", format!("{{endpoint: \"{}\", {quick}, {more}}}", sink.address()))
}

#[test]
fn a_smaller_queue_keeps_what_it_held() {
    let sink = SinkProcess::hanging();
    let (collector, report) = held(&sink, &to(&sink, "sending_queue: {queue_size: 100, num_consumers: 2}"));
    collector.reload(to(&sink, "sending_queue: {queue_size: 5, num_consumers: 1}"));
    let refused = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "5"]);
    assert_eq!(refused.items("acknowledged"), 0, "it is more than full: {refused:?}");
    sink.recover();
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0);
}

#[test]
fn a_queue_that_is_switched_off_is_delivered_first() {
    let sink = SinkProcess::hanging();
    let (collector, report) = held(&sink, &to(&sink, "sending_queue: {queue_size: 100}"));
    collector.reload(to(&sink, "sending_queue: {enabled: false}"));
    sink.recover();
    sink.wait_for_all(&report.acknowledged);
    let direct = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "5", "--retry"]);
    assert_eq!(sink.missing(&direct.acknowledged), 0, "without a queue OK means that the backend has it");
}

#[test]
fn a_renamed_pipeline_loses_nothing() {
    let sink = SinkProcess::hanging();
    let config = to(&sink, "sending_queue: {queue_size: 100}")
        .processor("batch", "{timeout: 10m}")
        .pipeline("logs", "batch", "otlp");
    let (collector, report) = held(&sink, &config);
    let logs = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "5", "--signal", "logs"]);
    let renamed = config.without_pipeline("traces").without_pipeline("logs");
    let renamed = renamed.pipeline("traces/new", "", "otlp").pipeline("logs/new", "batch", "otlp");
    collector.reload(renamed);
    sink.recover();
    sink.wait_for_all(&report.acknowledged);
    sink.wait_for_all(&logs.acknowledged);
}

#[test]
fn a_pipeline_that_goes_and_comes_back_loses_nothing() {
    let sink = SinkProcess::hanging();
    let config = to(&sink, "sending_queue: {queue_size: 100}");
    let (collector, first) = held(&sink, &config);
    for _ in 0..3 {
        collector.reload(config.clone().without_pipeline("traces"));
        let none = http::post(collector.http(), "/v1/traces", "application/json", b"{}");
        assert_eq!(none.status, 404, "nobody takes traces");
        collector.reload(&config);
    }
    let second = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "50", "--spans", "10"]);
    assert_eq!(second.items("acknowledged"), 500);
    sink.recover();
    sink.wait_for_all(&first.acknowledged);
    sink.wait_for_all(&second.acknowledged);
}

#[test]
fn the_end_comes_while_a_removed_pipeline_still_drains() {
    let sink = SinkProcess::hanging();
    let config = to(&sink, "sending_queue: {queue_size: 100}");
    let (mut collector, report) = held(&sink, &config);
    collector.reload(config.without_pipeline("traces"));
    collector.signal("TERM");
    wait_until("the collector drains", || collector.status()["phase"] == "draining");
    sink.recover();
    assert!(collector.wait_for_exit().success());
    assert_eq!(sink.missing(&report.acknowledged), 0);
}

#[test]
fn reloads_come_in_a_flood() {
    let sink = SinkProcess::start();
    let config = ConfigBuilder::exporting_to("otlphttp", http_to(sink.address()));
    let mut collector = CollectorProcess::with_config(&config).start();
    let load =
        LoadGenerator::start("http", collector.http(), &["--requests", "200", "--spans", "10", "--rate", "2000"]);
    for _ in 0..50 {
        collector.signal("HUP");
        collector.write(config.clone().processor("batch", "{timeout: 10ms}").pipeline("traces", "batch", "otlphttp"));
        collector.signal("HUP");
        collector.write(&config);
    }
    let report = load.finish();
    assert_eq!((report.items("acknowledged"), &report.json["connections"]["lost"]), (2000, &0.into()), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(sink.count("duplicates"), 0);
    assert!(collector.stop().success());
}

#[test]
fn the_console_moves() {
    let moved = free_address();
    let config = ConfigBuilder::exporting_to("nop", "");
    let collector = CollectorProcess::with_config(&config).start();
    collector.write(config.clone().extension("health_check", format!("{{endpoint: \"{moved}\"}}")));
    wait_until("the collector listens on the new address", || std::net::TcpStream::connect(moved).is_ok());
    assert_eq!(http::get(moved, "/status").json()["revision"]["number"], 2);
}

#[test]
fn a_receiver_gets_another_name_and_keeps_its_place() {
    let sink = SinkProcess::start();
    let grpc = free_address();
    let http = free_address();
    let config = |id: &str, grpc, http| {
        let config = ConfigBuilder::new().exporter("otlp", grpc_to(sink.address())).receiver(id, otlp_at(grpc, http));
        config.pipeline_of("traces", id, "", "otlp")
    };
    let collector = CollectorProcess::with_config(config("otlp", grpc, http)).start();
    collector.reload(config("otlp/renamed", grpc, http));
    let report = LoadGenerator::run("http", http, &["--requests", "3"]);
    sink.wait_for_all(&report.acknowledged);
    // The two protocols change places.
    collector.reload(config("otlp/renamed", http, grpc));
    let report = LoadGenerator::run("http", grpc, &["--requests", "3"]);
    assert_eq!(report.items("acknowledged"), 300);
    sink.wait_for_all(&report.acknowledged);
}
