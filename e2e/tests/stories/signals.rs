//! The collector is stopped.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, free_address, grpc_to, http, http_to, wait_until,
};

#[test]
fn what_was_acknowledged_is_delivered_before_it_ends() {
    let sink = SinkProcess::start_with(&["--delay", "5ms"]);
    let config =
        ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()).with_setting("sending_queue: {num_consumers: 1}"))
            .processor("batch", "{timeout: 10m, send_batch_size: 1000000}")
            .pipeline("traces", "", "otlp")
            .pipeline("logs", "batch", "otlp");
    let mut collector = CollectorProcess::with_config(config).start();
    let traces = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "50", "--spans", "10"]);
    let logs = LoadGenerator::run("http", collector.http(), &["--requests", "50", "--spans", "10", "--signal", "logs"]);
    assert_eq!(traces.items("acknowledged") + logs.items("acknowledged"), 1000);
    let status = collector.stop();
    assert!(status.success(), "{status}\n{}", collector.logs());
    assert_eq!(sink.missing(&traces.acknowledged) + sink.missing(&logs.acknowledged), 0);
    assert_eq!(sink.items(), 1000, "and nothing twice");
}

#[test]
fn senders_under_way_lose_nothing_that_was_acknowledged() {
    for protocol in ["grpc", "http"] {
        let sink = SinkProcess::start_with(&["--delay", "5ms"]);
        let config = ConfigBuilder::exporting_to("otlphttp", http_to(sink.address()))
            .processor("batch", "{timeout: 50ms}")
            .pipeline("traces", "batch", "otlphttp");
        let mut collector = CollectorProcess::with_config(config).start();
        let door = if protocol == "grpc" { collector.grpc() } else { collector.http() };
        let load = LoadGenerator::start(protocol, door, &["--seconds", "3", "--rate", "5000", "--spans", "10"]);
        sink.wait_for_items(1000);
        let status = collector.stop();
        assert!(status.success(), "{status}\n{}", collector.logs());
        let report = load.finish();
        assert_eq!(sink.missing(&report.acknowledged), 0, "{protocol}: {report:?}");
        assert_eq!(sink.count("duplicates"), 0, "{protocol}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let sink = SinkProcess::hanging();
    let mut collector =
        CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))).start();
    LoadGenerator::run("grpc", collector.grpc(), &["--requests", "1"]);
    collector.signal("TERM");
    wait_until("the collector drains", || collector.status()["phase"] == "draining");
    assert_eq!(collector.health("/readyz").status, 503);
    assert_eq!(collector.health("/livez").status, 200);
    collector.signal("TERM");
    let status = collector.wait_for_exit();
    assert_eq!(status.code(), Some(1), "{}", collector.logs());
}

#[test]
fn a_drain_that_takes_too_long_is_given_up() {
    let sink = SinkProcess::hanging();
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()));
    let mut collector = CollectorProcess::with_config(config).args(&["--drain-seconds", "1"]).start();
    LoadGenerator::run("grpc", collector.grpc(), &["--requests", "1"]);
    collector.signal("TERM");
    collector.wait_for_exit();
    assert!(collector.logs().contains("shutdown") || collector.logs().contains("dropped"), "{}", collector.logs());
}

#[test]
fn a_collector_that_holds_nothing_ends_whatever_its_backend_does() {
    for signal in ["TERM", "INT"] {
        let mut collector =
            CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(free_address()))).start();
        let idle = kubewake_e2e::Http1Connection::connect(collector.http());
        assert_eq!(http::get(collector.http(), "/").status, 404);
        collector.signal(signal);
        assert!(collector.wait_for_exit().success());
        drop(idle);
    }
}
