//! Another version of the operator has other defaults.

use kubewake_e2e::{
    LoadGenerator, OperatorCluster, SinkProcess,
    operator::{telemetry, trace_pipeline},
    wait_until,
};
use kubewake_release::ReleaseImage;

#[test]
fn changed_defaults_roll_the_collectors_and_nothing_is_lost() {
    let Some(mut operated) = OperatorCluster::start() else { return };
    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    operated.kubectl.run_ok("rollout status deployment/kubewake-gateway --namespace kubewake-system");
    let before = operated.pods();
    let load = LoadGenerator::start("grpc", operated.otlp(), &["--rate", "500", "--seconds", "20", "--retry"]);
    operated.stop_operator();
    let mut command = operated.command();
    // The same image by a shorter name, which nodes complete.
    let image = ReleaseImage::Collector.reference().trim_start_matches("docker.io/");
    command.args(["--collector-image", image]);
    operated.start_operator_with(&mut command);
    wait_until("every collector is replaced", || {
        let now = operated.pods();
        !now.is_empty() && now.iter().all(|(_, uid, _)| before.iter().all(|(_, old, _)| old != uid))
    });
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let report = load.finish();
    assert!(report.items("acknowledged") > 0);
    sink.wait_for_all(&report.acknowledged);
}

#[test]
fn collectors_that_cannot_start_are_told_of_while_the_others_go_on() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.wait_for_pods(2);
    operated.wait_for_state("tracepipeline/backend", "Ready");
    operated.apply(&telemetry("{image: registry.invalid/collector:1}"));
    let status = operated.wait_for_state("tracepipeline/backend", "Degraded");
    let ready = OperatorCluster::condition(&status, "CollectorReady");
    assert_eq!((&ready["status"], &ready["reason"]), (&"False".into(), &"CollectorNotReady".into()), "{status}");
    let words = "the image registry.invalid/collector:1 cannot be pulled";
    assert!(ready["message"].as_str().unwrap().contains(words), "{status}");
    operated.send_until_delivered(&sink, &["--requests", "10"]);
    operated.apply(&telemetry("{}"));
    operated.wait_for_state("tracepipeline/backend", "Ready");

    operated.apply(&telemetry("{resources: {requests: {cpu: '1000'}}}"));
    let status = operated.wait_for_state("tracepipeline/backend", "Degraded");
    let ready = OperatorCluster::condition(&status, "CollectorReady");
    assert_eq!((&ready["status"], &ready["reason"]), (&"False".into(), &"CollectorNotReady".into()), "{status}");
    assert!(ready["message"].as_str().unwrap().contains("Insufficient cpu"), "{status}");
    operated.wait_for_state("telemetry/default", "Degraded");
    operated.send_until_delivered(&sink, &["--requests", "10"]);
    operated.apply(&telemetry("{}"));
    operated.wait_for_state("tracepipeline/backend", "Ready");
}
