//! A backend has a bad day.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, HttpBackend, LoadGenerator, SinkProcess, free_address, grpc_to, http, http_to,
    otlp::spans, wait_until,
};

fn both(sink: &SinkProcess) -> [(&'static str, ConfigBuilder); 2] {
    [
        ("grpc", ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))),
        ("http", ConfigBuilder::exporting_to("otlphttp", http_to(sink.address()))),
    ]
}

#[test]
fn what_fails_for_now_is_sent_again() {
    let flaky = ["--fail-share", "0.5", "--fail-code", "UNAVAILABLE"];
    let sink = SinkProcess::start_with(&flaky);
    for (protocol, config) in both(&sink) {
        let collector = CollectorProcess::with_config(config).start();
        let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "100", "--spans", "10"]);
        assert_eq!(report.items("acknowledged"), 1000);
        sink.wait_for_all(&report.acknowledged);
        assert_eq!(sink.count("duplicates"), 0, "{protocol}");
        assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &[]), 0.0, "{protocol}");
    }
    assert!(sink.count("failed") > 0);
}

#[test]
fn the_backends_hint_is_followed() {
    let sink = SinkProcess::start_with(&["--fail-share", "1", "--fail-code", "429", "--retry-after", "1s"]);
    for (protocol, config) in both(&sink) {
        let collector = CollectorProcess::with_config(config).start();
        let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "1"]);
        let before = sink.count("failed");
        wait_until("two more requests have failed", || sink.count("failed") >= before + 2);
        assert_eq!(collector.status()["pipelines"]["traces"]["last_error"], "throttled", "{protocol}");
        sink.set_mode("fail_share=0");
        sink.wait_for_all(&report.acknowledged);
        sink.set_mode("fail_share=1");
    }
}

#[test]
fn what_is_refused_for_good_is_dropped_and_counted() {
    let sink = SinkProcess::start_with(&["--refuse"]);
    for (protocol, config) in both(&sink) {
        let before = sink.count("failed");
        let collector = CollectorProcess::with_config(config).start();
        LoadGenerator::run("grpc", collector.grpc(), &["--requests", "3", "--spans", "10"]);
        let refused = || collector.metric("kubewake_pipeline_dropped_items", &["reason=\"refused\""]);
        wait_until("the items are dropped", || refused() == 30.0);
        assert_eq!(sink.count("failed") - before, 3, "{protocol}: none is sent twice");
        assert_eq!(collector.metric("otelcol_exporter_send_failed_spans", &[]), 30.0, "{protocol}");
        let traces = collector.status()["pipelines"]["traces"].clone();
        assert_eq!(
            (&traces["last_error"], &traces["dropped"]["refused"]),
            (&"refused".into(), &30.into()),
            "{protocol}"
        );
        let code = if protocol == "grpc" { "grpc:3" } else { "http:400" };
        assert_eq!((&traces["last_error_code"], &traces["state"]), (&code.into(), &"failing".into()), "{protocol}");
        assert_eq!(
            (&traces["diagnosis"], &traces["last_drop"]["reason"]),
            (&"BackendRefuses".into(), &"refused".into())
        );
    }
}

#[test]
fn retries_end() {
    let settings = format!(
        r#"{{endpoint: "{}", tls: {{insecure: true}}, retry_on_failure: {{initial_interval: 10ms, max_interval: 20ms, max_elapsed_time: 100ms}}}}"#,
        free_address()
    );
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", settings)).start();
    LoadGenerator::run("grpc", collector.grpc(), &["--requests", "2", "--spans", "10"]);
    let dropped = || collector.metric("kubewake_pipeline_dropped_items", &["reason=\"retries_exhausted\""]);
    wait_until("the items are dropped after the last attempt", || dropped() == 20.0);
}

#[test]
fn without_a_queue_the_sender_hears_from_the_backend() {
    let sink = SinkProcess::start_with(&["--fail-share", "1", "--fail-code", "UNAVAILABLE"]);
    let direct = "sending_queue: {enabled: false}, retry_on_failure: {enabled: false}";
    let settings = format!(r#"{{endpoint: "{}", tls: {{insecure: true}}, {direct}}}"#, sink.address());
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", settings)).start();
    let post = || http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["x"])).status;
    assert_eq!(post(), 503, "it may come back");
    sink.set_mode("fail_code=INVALID_ARGUMENT");
    assert!([400, 500].contains(&post()), "for good");
    sink.set_mode("fail_share=0");
    assert_eq!((post(), sink.items()), (200, 1), "OK means that the backend has it");
}

#[test]
fn a_backend_that_speaks_nonsense_does_no_harm() {
    let garbage =
        HttpBackend::start(|_| (200, vec![("content-type", "application/x-protobuf".to_owned())], vec![0xff; 9999]));
    let wrong = HttpBackend::start(|_| (404, Vec::new(), b"<html>".repeat(99_999)));
    let moved = HttpBackend::start(|_| (302, vec![("location", "http://127.0.0.1:1/".to_owned())], Vec::new()));
    let config = ConfigBuilder::new()
        .exporter("otlphttp/garbage", http_to(garbage.address()))
        .exporter("otlphttp/wrong", http_to(wrong.address()))
        .exporter("otlphttp/moved", http_to(moved.address()))
        // It takes gRPC for a malformed request of HTTP/1.1, and says so.
        .exporter("otlp/other_protocol", grpc_to(wrong.address()))
        .pipeline("traces/garbage", "", "otlphttp/garbage")
        .pipeline("traces/wrong", "", "otlphttp/wrong")
        .pipeline("traces/moved", "", "otlphttp/moved")
        .pipeline("traces/other_protocol", "", "otlp/other_protocol");
    let mut collector = CollectorProcess::with_config(config).start();
    assert_eq!(http::post(collector.http(), "/v1/traces", "application/x-protobuf", &spans(&["x"])).status, 200);
    let pipeline = |name: &str| collector.status()["pipelines"][name].clone();
    wait_until("garbage behind a success is not believed", || pipeline("traces/garbage")["last_error"] == "protocol");
    wait_until("a wrong address is final", || pipeline("traces/wrong")["dropped"]["refused"] == 1);
    wait_until("nobody is followed elsewhere", || pipeline("traces/moved")["dropped"]["refused"] == 1);
    wait_until("another protocol is an error", || pipeline("traces/other_protocol")["failures"].as_u64() > Some(1));
    assert!(collector.is_running());
}
