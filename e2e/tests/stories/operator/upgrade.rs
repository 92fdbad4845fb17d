//! Another version of the operator has other defaults.

use kubewake_e2e::{
    Load, Operated, Sink, eventually,
    operator::{telemetry, trace_pipeline},
};
use kubewake_release::Image;

#[test]
fn changed_defaults_roll_the_collectors_and_nothing_is_lost() {
    let Some(mut operated) = Operated::start() else { return };
    let sink = Sink::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.until_state("tracepipeline/backend", "Ready");
    operated.kubectl.ok("rollout status deployment/kubewake-gateway --namespace kubewake-system");
    let before = operated.pods();
    let load = Load::start("grpc", operated.otlp(), &["--rate", "500", "--seconds", "20", "--retry"]);
    operated.stop_operator();
    let mut command = operated.command();
    // The same image by a shorter name, which nodes complete.
    let image = Image::Collector.reference().trim_start_matches("docker.io/");
    command.args(["--collector-image", image]);
    operated.start_as(&mut command);
    eventually("every collector is a new one", || {
        let now = operated.pods();
        !now.is_empty() && now.iter().all(|(_, uid, _)| before.iter().all(|(_, old, _)| old != uid))
    });
    operated.until_state("tracepipeline/backend", "Ready");
    let report = load.finish();
    assert!(report.items("acknowledged") > 0);
    sink.await_all(&report.acknowledged);
}

#[test]
fn collectors_that_cannot_start_are_told_of_while_the_others_go_on() {
    let Some(operated) = Operated::anywhere() else { return };
    let sink = Sink::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.until_pods(2);
    operated.until_state("tracepipeline/backend", "Ready");
    operated.apply(&telemetry("{image: registry.invalid/collector:1}"));
    let status = operated.until_state("tracepipeline/backend", "Degraded");
    let ready = Operated::condition(&status, "CollectorReady");
    assert_eq!((&ready["status"], &ready["reason"]), (&"False".into(), &"CollectorNotReady".into()), "{status}");
    let words = "the image registry.invalid/collector:1 cannot be pulled";
    assert!(ready["message"].as_str().unwrap().contains(words), "{status}");
    operated.until_delivered(&sink, &["--requests", "10"]);
    operated.apply(&telemetry("{}"));
    operated.until_state("tracepipeline/backend", "Ready");

    operated.apply(&telemetry("{resources: {requests: {cpu: '1000'}}}"));
    let status = operated.until_state("tracepipeline/backend", "Degraded");
    let ready = Operated::condition(&status, "CollectorReady");
    assert_eq!((&ready["status"], &ready["reason"]), (&"False".into(), &"CollectorNotReady".into()), "{status}");
    assert!(ready["message"].as_str().unwrap().contains("Insufficient cpu"), "{status}");
    operated.until_state("telemetry/default", "Degraded");
    operated.until_delivered(&sink, &["--requests", "10"]);
    operated.apply(&telemetry("{}"));
    operated.until_state("tracepipeline/backend", "Ready");
}
