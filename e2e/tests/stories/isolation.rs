//! Two pipelines are fed by one receiver, and the backend of one of them hangs.

use kubewake_e2e::{Collector, Config, Load, Sink, eventually, grpc_to, http_to};

#[test]
fn the_other_pipeline_gets_everything_once() {
    let (good, hanging) = (Sink::start(), Sink::hanging());
    let small = "sending_queue: {queue_size: 20, num_consumers: 1}";
    let config = Config::new()
        .processor("batch", "{timeout: 20ms}")
        .exporter("otlp/good", grpc_to(good.address()))
        .exporter("otlphttp/hanging", http_to(hanging.address()).with(small))
        .pipeline("traces/good", "batch", "otlp/good")
        .pipeline("traces/hanging", "", "otlphttp/hanging");
    let collector = Collector::with(config).start();
    let report = Load::run("grpc", collector.grpc(), &["--requests", "300", "--spans", "10"]);
    assert_eq!(report.items("acknowledged"), 3000, "the sender is told nothing of it: {report:?}");
    assert_eq!(report.json["codes"].as_object().unwrap().len(), 1, "{report:?}");
    good.await_items(3000);
    assert_eq!((good.missing(&report.acknowledged), good.count("duplicates")), (0, 0));

    let status = collector.status();
    let (held, lost) = (&status["pipelines"]["traces/good"], &status["pipelines"]["traces/hanging"]);
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
    eventually("what the other one held arrives", || hanging.items() >= 3000 - dropped);
    assert_eq!(hanging.count("duplicates"), 0);
    assert_eq!(collector.metric("otelcol_receiver_accepted_spans", &[]), 3000.0);
    assert_eq!(collector.metric("otelcol_receiver_refused_spans", &[]), 0.0);
}
