//! All three signals, also through somebody else's collector.

use kubewake_e2e::{
    Collector, Config, Load, Sink, grpc_to,
    operator::{Operated, pipeline},
};

const KINDS: [(&str, &str); 3] = [("TracePipeline", "traces"), ("LogPipeline", "logs"), ("MetricPipeline", "metrics")];

#[test]
fn all_three_signals_flow_each_to_its_own_backend() {
    let Some(operated) = Operated::anywhere() else { return };
    let sinks = KINDS.map(|(kind, _)| {
        let sink = Sink::start();
        operated.apply(&pipeline(kind, "backend", sink.address()));
        sink
    });
    for ((kind, signal), sink) in KINDS.iter().zip(&sinks) {
        operated.until_state(&format!("{}/backend", kind.to_lowercase()), "Ready");
        let report = operated.send(&["--requests", "10", "--signal", signal]);
        sink.await_all(&report.acknowledged);
        operated.until_reason(&format!("{}/backend", kind.to_lowercase()), "Delivering");
    }
    let counts = sinks.each_ref().map(Sink::items);
    assert_eq!(counts, [1000; 3], "each got its own, and nothing of the others");

    // One that goes takes nothing from the others.
    let pods = operated.pods();
    operated.kubectl.ok("delete logpipeline backend");
    let report = operated.send(&["--requests", "10"]);
    sinks[0].await_all(&report.acknowledged);
    assert_eq!(operated.pods(), pods);
}

#[test]
fn a_collector_of_ones_own_behind_a_pipeline_gets_everything() {
    let Some(operated) = Operated::start() else { return };
    let sink = Sink::start();
    let custom = Config::to("otlp", grpc_to(sink.address()))
        .processor("batch", "{timeout: 50ms}")
        .pipeline("traces", "batch", "otlp");
    let custom = Collector::with(custom).start();
    operated.apply(&pipeline("TracePipeline", "custom", custom.grpc()));
    operated.until_state("tracepipeline/custom", "Ready");
    let report = Load::run("grpc", operated.otlp(), &["--seconds", "2", "--rate", "2000"]);
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.await_all(&report.acknowledged);
    assert_eq!(sink.count("duplicates"), 0);
}
