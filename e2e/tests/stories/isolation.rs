//! Two pipelines are fed by one receiver, and the backend of one of them hangs.

use kubewake_e2e::{CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, grpc_to, http_to, wait_until};

#[test]
fn the_other_pipeline_gets_everything_once() {
    let good = SinkProcess::start();
    let hanging = SinkProcess::hanging();
    let small = "sending_queue: {queue_size: 20, num_consumers: 1}";
    let config = ConfigBuilder::new()
        .processor("batch", "{timeout: 20ms}")
        .exporter("otlp/good", grpc_to(good.address()))
        .exporter("otlphttp/hanging", http_to(hanging.address()).with_setting(small))
        .pipeline("traces/good", "batch", "otlp/good")
        .pipeline("traces/hanging", "", "otlphttp/hanging");
    let collector = CollectorProcess::with_config(config).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "300", "--spans", "10"]);
    assert_eq!(report.items("acknowledged"), 3000, "the sender is told nothing of it: {report:?}");
    assert_eq!(report.json["codes"].as_object().unwrap().len(), 1, "{report:?}");
    good.wait_for_items(3000);
    assert_eq!((good.missing(&report.acknowledged), good.count("duplicates")), (0, 0));

    let status = collector.status();
    let held = &status["pipelines"]["traces/good"];
    let lost = &status["pipelines"]["traces/hanging"];
    assert_eq!(held["dropped"]["queue_full"], 0, "{status}");
    let dropped = lost["dropped"]["queue_full"].as_u64().unwrap();
    assert!((2700..3000).contains(&dropped), "20 requests of 10 wait, a few are under way: {status}");
    let metric = |pipeline: &str| {
        let pipeline = format!("pipeline=\"{pipeline}\"");
        collector.metric("kubewake_pipeline_dropped_items", &[&pipeline, "reason=\"queue_full\""])
    };
    assert_eq!((metric("traces/good"), metric("traces/hanging")), (0.0, dropped as f64));
    let failed = collector.metric("otelcol_exporter_enqueue_failed_spans", &["exporter=\"otlphttp/hanging\""]);
    assert_eq!(failed, dropped as f64);

    hanging.recover();
    wait_until("held data arrives at the other backend", || hanging.items() >= 3000 - dropped);
    assert_eq!(hanging.count("duplicates"), 0);
    assert_eq!(collector.metric("otelcol_receiver_accepted_spans", &[]), 3000.0);
    assert_eq!(collector.metric("otelcol_receiver_refused_spans", &[]), 0.0);
}

#[test]
fn one_pipelines_memory_is_not_the_others() {
    let good = SinkProcess::start();
    let hanging = SinkProcess::hanging();
    let config = ConfigBuilder::new()
        .processor("memory_limiter", "{check_interval: 1s, limit_mib: 1, spike_limit_mib: 0}")
        .exporter("otlp/good", grpc_to(good.address()))
        .exporter("otlp/hanging", grpc_to(hanging.address()).with_setting("sending_queue: {queue_size: 100000}"))
        .pipeline("traces/good", "memory_limiter", "otlp/good")
        .pipeline("traces/hanging", "memory_limiter", "otlp/hanging");
    let collector = CollectorProcess::with_config(config).start();
    // Five times what one may hold, slowly enough for the good one to keep up: one request at a time.
    let args =
        ["--requests", "200", "--spans", "50", "--connections", "1", "--in-flight", "1", "--retry", "--grace", "60"];
    let report = LoadGenerator::run("grpc", collector.grpc(), &args);
    assert_eq!(report.items("acknowledged"), 10_000, "{report:?}");
    good.wait_for_all(&report.acknowledged);
    assert_eq!(good.count("duplicates"), 0);
    let status = collector.status();
    assert_eq!(status["pipelines"]["traces/good"]["dropped"]["memory_limit"], 0, "{status}");
    let dropped = status["pipelines"]["traces/hanging"]["dropped"]["memory_limit"].as_u64().unwrap();
    assert!(dropped > 5000, "most of it does not fit: {status}");
    hanging.recover();
    wait_until("the queued data arrives", || hanging.items() == 10_000 - dropped);
}

#[test]
fn two_exporters_of_one_pipeline_get_no_duplicates() {
    let good = SinkProcess::start();
    let hanging = SinkProcess::hanging();
    let config = ConfigBuilder::new()
        .exporter("otlp/good", grpc_to(good.address()))
        .exporter(
            "otlp/hanging",
            grpc_to(hanging.address()).with_setting("sending_queue: {queue_size: 20, num_consumers: 1}"),
        )
        .pipeline("traces", "", "otlp/good, otlp/hanging");
    let collector = CollectorProcess::with_config(config).start();
    let report = LoadGenerator::run("grpc", collector.grpc(), &["--requests", "100", "--spans", "10"]);
    good.wait_for_all(&report.acknowledged);
    assert_eq!((good.items(), good.count("duplicates")), (report.items("acknowledged"), 0));
    let dropped = collector.metric("kubewake_pipeline_dropped_items", &[]) as u64;
    hanging.recover();
    wait_until("the other backend gets all data that was not dropped", || {
        hanging.items() == report.items("acknowledged") - dropped
    });
}
