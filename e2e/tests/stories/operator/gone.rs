//! The last pipeline takes everything along, whoever is there to see it.

use kubewake_e2e::{
    SinkProcess, free_address,
    operator::{OperatorCluster, telemetry, trace_pipeline},
};

/// Everything that there can be: whole traces wait, pods are asked for, values are kept.
fn everything(operated: &OperatorCluster, sink: &SinkProcess) {
    let tail = "sampling: {tail: {policies: [{name: all, alwaysSample: {}}]}}, input: {namespaces: {exclude: [none]}}";
    let headers = "headers: [{name: x, value: some}]";
    let pipeline = trace_pipeline("backend", sink.address())
        .replace("{output", &format!("{{{tail}, output"))
        .replace("endpoint:", &format!("{headers}, endpoint:"));
    operated.apply(&pipeline);
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let made = operated.owned_objects();
    for part in [
        "statefulset.apps/kubewake-sticky",
        "clusterrole.rbac.authorization.k8s.io/",
        "secret/kubewake-gateway",
        "pod/",
    ] {
        assert!(made.iter().any(|name| name.starts_with(part)), "no {part} in {made:?}");
    }
}

#[test]
fn the_last_pipeline_takes_everything_along() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    everything(&operated, &sink);
    operated.kubectl.run_ok("delete tracepipeline backend");
    operated.wait_until_cleaned_up();
}

#[test]
fn the_last_pipeline_takes_everything_along_also_while_no_operator_runs() {
    let Some(mut operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    everything(&operated, &sink);
    operated.kill_operator();
    operated.kubectl.run_ok("delete tracepipeline backend");
    operated.wait_until_cleaned_up();
    operated.start_operator();
    operated.apply(&trace_pipeline("next", sink.address()));
    operated.wait_for_state("tracepipeline/next", "Ready");
}

#[test]
fn the_last_pipeline_takes_everything_along_also_if_nothing_is_to_go_with_it() {
    let Some(mut operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    everything(&operated, &sink);
    operated.kubectl.run_ok("delete tracepipeline backend --cascade=orphan");
    operated.wait_until_cleaned_up();
    everything(&operated, &sink);
    operated.kill_operator();
    operated.kubectl.run_ok("delete tracepipeline backend --cascade=orphan");
    assert!(!operated.owned_objects().is_empty(), "nobody is there to remove it");
    operated.start_operator();
    operated.wait_until_cleaned_up();
}

#[test]
fn a_pipeline_that_is_made_again_is_not_judged_by_the_one_before() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    operated.apply(&telemetry("{slots: {traces: 2}}"));
    operated.apply(&trace_pipeline("other", sink.address()));
    operated.apply(&trace_pipeline("backend", free_address()));
    operated.wait_for_state("tracepipeline/other", "Ready");
    operated.wait_for_state("tracepipeline/backend", "Ready");
    let received = |operated: &OperatorCluster| -> u64 {
        let collectors = operated.collector_statuses().into_iter();
        collectors.map(|it| it["pipelines"]["traces/backend"]["received"].as_u64().unwrap()).sum()
    };
    let report = operated.send(&["--requests", "20", "--spans", "5"]);
    operated.wait_for_reason("tracepipeline/backend", "BackendUnreachable");
    assert_eq!(received(&operated), report.items("acknowledged"));

    operated.kubectl.run_ok("delete tracepipeline backend");
    operated.apply(&trace_pipeline("backend", sink.address()));
    let status = operated.wait_for_state("tracepipeline/backend", "Ready");
    assert_eq!(status["reason"], "NoData", "{status}");
    assert_eq!(received(&operated), 0);
    let said = operated.kubectl.field("tracepipeline backend", ".metadata.uid");
    assert!(operated.collector_statuses().iter().all(|it| it["pipelines"]["traces/backend"]["uid"] == said));
}
