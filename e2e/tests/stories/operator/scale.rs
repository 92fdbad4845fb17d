//! There are as many collectors as incoming traffic needs.

use kubewake_e2e::{
    LoadGenerator, SinkProcess,
    operator::{OPERATOR_NAMESPACE, OperatorCluster, telemetry, trace_pipeline},
    wait_until,
};

/// Requests of so little CPU are used up by little traffic.
const SMALL: &str = "{replicas: {min: 1, max: 3}, scaling: {cpuUtilization: 50}, enrichment: {enabled: false}, resources: {requests: {cpu: 40m, memory: 64Mi}, limits: {cpu: 2, memory: 256Mi}}}";

fn replicas(operated: &OperatorCluster) -> String {
    operated.kubectl.field(&format!("deployment kubewake-gateway --namespace {OPERATOR_NAMESPACE}"), ".spec.replicas")
}

#[test]
fn replicas_follow_the_traffic_and_nothing_is_lost() {
    let Some(operated) = OperatorCluster::start_with(&["--autoscaler-period", "1"], &[]) else { return };
    let sink = SinkProcess::start();
    operated.apply(&telemetry(SMALL));
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    // What somebody else says of the autoscaler stays, and nobody waits for five minutes.
    operated.kubectl.run_ok(&format!("patch hpa kubewake-gateway --namespace {OPERATOR_NAMESPACE} -p {{\"spec\":{{\"behavior\":{{\"scaleDown\":{{\"stabilizationWindowSeconds\":1}}}}}}}}"));
    wait_until("there is one replica", || replicas(&operated) == "1");

    let mut reports = Vec::new();
    wait_until("there are three replicas", || {
        reports.push(LoadGenerator::run("grpc", operated.otlp(), &["--seconds", "2", "--rate", "20000", "--retry"]));
        replicas(&operated) == "3"
    });
    wait_until("there is one again", || {
        reports.push(LoadGenerator::run("grpc", operated.otlp(), &["--requests", "1", "--retry"]));
        replicas(&operated) == "1"
    });
    wait_until("the others are gone", || operated.pods().len() == 1);
    for report in &reports {
        assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
        sink.wait_for_all(&report.acknowledged);
    }
}

#[test]
fn a_slow_backend_is_said_and_does_not_scale_out() {
    let Some(operated) = OperatorCluster::start_with(&["--autoscaler-period", "1"], &[]) else { return };
    let sink = SinkProcess::start_with(&["--delay", "8s"]);
    operated.apply(&telemetry(&SMALL.replace("cpu: 40m", "cpu: 1")));
    operated.apply(&trace_pipeline("backend", sink.address()).replace("endpoint:", "timeout: 30s, endpoint:"));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let load = LoadGenerator::start(
        "grpc",
        operated.otlp(),
        &["--seconds", "20", "--rate", "100", "--spans", "10", "--retry"],
    );
    let status = operated.wait_for_reason("tracepipeline/backend", "BackendSlow");
    assert_eq!(status["state"], "Degraded", "{status}");
    assert_eq!(replicas(&operated), "1");
    sink.set_mode("delay_ms=0");
    let report = load.finish();
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(replicas(&operated), "1");
    operated.wait_for_reason("tracepipeline/backend", "Delivering");
}
