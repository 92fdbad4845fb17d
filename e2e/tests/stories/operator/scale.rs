//! There are as many collectors as incoming traffic needs.

use kubewake_e2e::{
    Load, Sink, eventually,
    operator::{NAMESPACE, Operated, telemetry, trace_pipeline},
};

/// Requests of so little CPU are used up by little traffic.
const SMALL: &str = "{replicas: {min: 1, max: 3}, scaling: {cpuUtilization: 50}, enrichment: {enabled: false}, resources: {requests: {cpu: 40m, memory: 64Mi}, limits: {cpu: 2, memory: 256Mi}}}";

fn replicas(operated: &Operated) -> String {
    operated.kubectl.field(&format!("deployment kubewake-gateway --namespace {NAMESPACE}"), ".spec.replicas")
}

#[test]
fn replicas_follow_the_traffic_and_nothing_is_lost() {
    let Some(operated) = Operated::start_with(&["--autoscaler-period", "1"], &[]) else { return };
    let sink = Sink::start();
    operated.apply(&telemetry(SMALL));
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.until_state("tracepipeline/backend", "Ready");
    // What somebody else says of the autoscaler stays, and nobody waits for five minutes.
    operated.kubectl.ok(&format!("patch hpa kubewake-gateway --namespace {NAMESPACE} -p {{\"spec\":{{\"behavior\":{{\"scaleDown\":{{\"stabilizationWindowSeconds\":1}}}}}}}}"));
    eventually("there is one", || replicas(&operated) == "1");

    let mut reports = Vec::new();
    eventually("there are three", || {
        reports.push(Load::run("grpc", operated.otlp(), &["--seconds", "2", "--rate", "20000", "--retry"]));
        replicas(&operated) == "3"
    });
    eventually("there is one again", || {
        reports.push(Load::run("grpc", operated.otlp(), &["--requests", "1", "--retry"]));
        replicas(&operated) == "1"
    });
    eventually("the others are gone", || operated.pods().len() == 1);
    for report in &reports {
        assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
        sink.await_all(&report.acknowledged);
    }
}

#[test]
fn a_slow_backend_is_said_and_does_not_scale_out() {
    let Some(operated) = Operated::start_with(&["--autoscaler-period", "1"], &[]) else { return };
    let sink = Sink::start_with(&["--delay", "8s"]);
    operated.apply(&telemetry(&SMALL.replace("cpu: 40m", "cpu: 1")));
    operated.apply(&trace_pipeline("backend", sink.address()).replace("endpoint:", "timeout: 30s, endpoint:"));
    operated.until_state("tracepipeline/backend", "Ready");
    let load = Load::start("grpc", operated.otlp(), &["--seconds", "20", "--rate", "100", "--spans", "10", "--retry"]);
    let status = operated.until_reason("tracepipeline/backend", "BackendSlow");
    assert_eq!(status["state"], "Degraded", "{status}");
    assert_eq!(replicas(&operated), "1");
    sink.mode("delay_ms=0");
    let report = load.finish();
    sink.await_all(&report.acknowledged);
    assert_eq!(replicas(&operated), "1");
    operated.until_reason("tracepipeline/backend", "Delivering");
}
