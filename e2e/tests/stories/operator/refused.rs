//! A document that collectors refuse changes nothing for those who send, and for pipelines that it says nothing new of.

use std::net::TcpListener;

use kubewake_e2e::{
    LoadGenerator, SinkProcess,
    operator::{OperatorCluster, pipeline, telemetry, trace_pipeline},
};

#[test]
fn a_refused_document_is_said_and_the_one_before_goes_on() {
    let Some(operated) = OperatorCluster::start() else { return };
    let logs = SinkProcess::start();
    let traces = SinkProcess::start();
    operated.apply(&telemetry("{receivers: {opencensus: {enabled: true}}}"));
    operated.apply(&pipeline("LogPipeline", "backend", logs.address()));
    operated.wait_for_pods(2);
    // The collectors were asked, so that it is known that they have this document.
    operated.wait_for_reason("logpipeline/backend", "NoData");
    // Somebody sits where spans will be listened for.
    let taken: Vec<TcpListener> =
        operated.addresses().into_iter().map(|(_, address)| TcpListener::bind((address, 55678)).unwrap()).collect();
    operated.apply(&trace_pipeline("backend", traces.address()));
    let status = operated.wait_for_reason("tracepipeline/backend", "DocumentRefused");
    let configured = OperatorCluster::condition(&status, "Configured");
    assert!(configured["message"].as_str().unwrap().contains("55678"), "{status}");
    let report = LoadGenerator::run("grpc", operated.otlp(), &["--requests", "10", "--signal", "logs"]);
    assert_eq!(report.items("acknowledged"), 1000, "{report:?}");
    logs.wait_for_all(&report.acknowledged);
    let status = operated.wait_for_reason("logpipeline/backend", "Delivering");
    assert_eq!(OperatorCluster::condition(&status, "Configured")["status"], "True", "{status}");

    drop(taken);
    // The next document is another attempt.
    let next = trace_pipeline("backend", traces.address()).replace("endpoint:", "timeout: 7s, endpoint:");
    operated.apply(&next);
    operated.wait_for_reason("tracepipeline/backend", "NoData");
    operated.send_until_delivered(&traces, &["--requests", "10"]);
}
