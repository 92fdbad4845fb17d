//! An operator looks at how the collector is doing.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, free_address, grpc_to, http, wait_until,
};

#[test]
fn status_and_health_of_a_collector_at_work() {
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))).start();
    for path in ["/", "/livez", "/readyz", "/status"] {
        assert_eq!(collector.health(path).status, 200, "{path}");
    }
    assert_eq!(collector.health("/nothing").status, 404);
    LoadGenerator::run("grpc", collector.grpc(), &["--requests", "5"]);
    sink.wait_for_items(500);
    let traces = || collector.status()["pipelines"]["traces"].clone();
    wait_until("the delivery shows", || traces()["delivered"] == 500);
    let status = collector.status();
    let traces = traces();
    assert_eq!((&status["phase"], &status["revision"]["number"]), (&"ready".into(), &1.into()));
    assert!(status["refused"].is_null());
    assert_eq!(
        (&traces["received"], &traces["state"], &traces["last_error"]),
        (&500.into(), &"ok".into(), &"none".into())
    );
    assert!(traces["last_success"]["age_seconds"].is_number(), "{traces}");
    assert!(traces["dropped"].as_object().unwrap().values().all(|count| *count == 0), "{traces}");
    assert_eq!(traces["exporters"]["otlp"]["queue_size"], 0);
    assert_eq!(
        (&traces["diagnosis"], &status["pipelines"]["logs"]["diagnosis"]),
        (&"Delivering".into(), &"NoData".into())
    );
    assert_eq!(status["pipelines"]["logs"]["state"], "idle");
    assert_eq!(collector.health("/").json()["status"], "Server available");
}

#[test]
fn metrics_have_the_collectors_names() {
    let sink = SinkProcess::start();
    let config = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))
        .processor("batch", "{timeout: 10ms}")
        .processor("memory_limiter", "{check_interval: 1s, limit_mib: 64}")
        .pipeline("traces", "memory_limiter, batch", "otlp");
    let collector = CollectorProcess::with_config(config).start();
    LoadGenerator::run("grpc", collector.grpc(), &["--requests", "5"]);
    LoadGenerator::run("http", collector.http(), &["--requests", "2", "--signal", "logs"]);
    sink.wait_for_items(700);
    wait_until("the delivery shows", || collector.metric("otelcol_exporter_sent_spans", &[]) == 500.0);
    let port = format!("server_port=\"{}\"", sink.address().port());
    for (name, labels, value) in [
        ("otelcol_receiver_accepted_spans", &["receiver=\"otlp\"", "transport=\"grpc\""][..], 500.0),
        ("otelcol_receiver_accepted_log_records", &["receiver=\"otlp\"", "transport=\"http\""], 200.0),
        ("otelcol_receiver_refused_spans", &["transport=\"grpc\""], 0.0),
        ("otelcol_processor_incoming_items", &["processor=\"batch\"", "otel_signal=\"traces\""], 500.0),
        ("otelcol_processor_batch_batch_send_size_sum", &["processor=\"batch\""], 500.0),
        ("otelcol_processor_memory_limiter_accepted_spans", &["processor=\"memory_limiter\""], 500.0),
        ("otelcol_exporter_sent_spans", &["exporter=\"otlp\"", "server_address=\"127.0.0.1\"", &port], 500.0),
        ("otelcol_exporter_sent_log_records", &["exporter=\"otlp\""], 200.0),
        ("otelcol_exporter_send_failed_spans", &["exporter=\"otlp\""], 0.0),
        ("otelcol_exporter_queue_size", &["data_type=\"traces\""], 0.0),
        ("otelcol_exporter_queue_capacity", &["data_type=\"traces\""], 1000.0),
        ("kubewake_pipeline_delivered_items", &["pipeline=\"traces\""], 500.0),
        ("kubewake_config_reloads", &["result=\"applied\""], 1.0),
    ] {
        assert!(collector.metrics_page().contains(&format!("\n{name}{{")), "{name} is there");
        assert_eq!(collector.metric(name, labels), value, "{name} {labels:?}\n{}", collector.metrics_page());
    }
    assert!(collector.metric("otelcol_process_memory_rss", &[]) > 0.0);
    assert!(collector.metric("otelcol_process_uptime", &[]) > 0.0);
}

#[test]
fn health_turns_bad_with_a_pipeline_that_gets_nowhere_and_good_again() {
    let address = free_address();
    let check = r#"{endpoint: "${env:HEALTH}", check_collector_pipeline: {enabled: true, interval: 1s, exporter_failure_threshold: 2}}"#;
    let collector = CollectorProcess::with_config(
        ConfigBuilder::exporting_to("otlp", grpc_to(address)).extension("health_check", check),
    )
    .start();
    assert_eq!(collector.health("/").status, 200);
    LoadGenerator::run("grpc", collector.grpc(), &["--requests", "1"]);
    wait_until("health turns bad", || collector.health("/").status == 503);
    let health = collector.health("/").json();
    assert_eq!(health["stalled"], serde_json::json!(["traces"]), "{health}");
    let traces = &collector.status()["pipelines"]["traces"];
    assert_eq!((&traces["last_error"], &traces["diagnosis"]), (&"connection".into(), &"BackendUnreachable".into()));
    assert!(traces["exporters"]["otlp"]["oldest"]["age_seconds"].as_f64() > Some(0.9), "{traces}");
    assert_eq!(collector.status()["pipelines"]["logs"]["state"], "idle", "the others are fine");
    // Neither is it a reason to restart the collector, nor not to send to it.
    assert_eq!((collector.health("/livez").status, collector.health("/readyz").status), (200, 200));

    let sink = SinkProcess::start_at(address, &[]);
    sink.wait_for_items(100);
    wait_until("health turns good", || collector.health("/").status == 200);
    assert_eq!(collector.status()["pipelines"]["traces"]["state"], "ok");
}

#[test]
fn a_partial_success_is_counted_and_not_sent_again() {
    let sink = SinkProcess::start_with(&["--reject-items", "3"]);
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))).start();
    LoadGenerator::run("grpc", collector.grpc(), &["--requests", "1"]);
    wait_until("the rejection shows", || collector.metric("kubewake_exporter_rejected_items", &[]) == 3.0);
    assert_eq!(collector.metric("kubewake_pipeline_dropped_items", &["reason=\"rejected\""]), 3.0);
    assert_eq!((sink.items(), sink.count("duplicates")), (100, 0));
}

#[test]
fn grpc_health_answers() {
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "")).start();
    let call = kubewake_e2e::GrpcCall::call(format!("http://{}", collector.grpc()), "grpc.health.v1.Health/Check");
    assert_eq!(call.send(b"").code, 0);
    assert_eq!(http::get(collector.http(), "/v1/traces").status, 405);
}
