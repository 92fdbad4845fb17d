//! All three signals, also through somebody else's collector.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, LoadGenerator, SinkProcess, grpc_to,
    operator::{OperatorCluster, pipeline},
};

const KINDS: [(&str, &str); 3] = [("TracePipeline", "traces"), ("LogPipeline", "logs"), ("MetricPipeline", "metrics")];

#[test]
fn all_three_signals_flow_each_to_its_own_backend() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sinks = KINDS.map(|(kind, _)| {
        let sink = SinkProcess::start();
        operated.apply(&pipeline(kind, "backend", sink.address()));
        sink
    });
    for ((kind, signal), sink) in KINDS.iter().zip(&sinks) {
        operated.wait_for_state(&format!("{}/backend", kind.to_lowercase()), "Ready");
        let report = operated.send(&["--requests", "10", "--signal", signal]);
        sink.wait_for_all(&report.acknowledged);
        operated.wait_for_reason(&format!("{}/backend", kind.to_lowercase()), "Delivering");
    }
    let counts = sinks.each_ref().map(SinkProcess::items);
    assert_eq!(counts, [1000; 3], "each got its own, and nothing of the others");

    // One that goes takes nothing from the others.
    let pods = operated.pods();
    operated.kubectl.run_ok("delete logpipeline backend");
    let report = operated.send(&["--requests", "10"]);
    sinks[0].wait_for_all(&report.acknowledged);
    assert_eq!(operated.pods(), pods);
}

#[test]
fn a_collector_of_ones_own_behind_a_pipeline_gets_everything() {
    let Some(operated) = OperatorCluster::start() else { return };
    let sink = SinkProcess::start();
    let custom = ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))
        .processor("batch", "{timeout: 50ms}")
        .pipeline("traces", "batch", "otlp");
    let custom = CollectorProcess::with_config(custom).start();
    operated.apply(&pipeline("TracePipeline", "custom", custom.grpc()));
    operated.wait_for_state("tracepipeline/custom", "Ready");
    let report = LoadGenerator::run("grpc", operated.otlp(), &["--seconds", "2", "--rate", "2000"]);
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(sink.count("duplicates"), 0);
}
