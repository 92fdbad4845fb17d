//! The operator is away while things happen.

use kubewake_e2e::{
    OperatorCluster, SinkProcess,
    operator::{OPERATOR_NAMESPACE, trace_pipeline},
    wait_until,
};

#[test]
fn what_happens_while_the_operator_is_away_is_done_when_it_comes_back() {
    let Some(mut operated) = OperatorCluster::start_anywhere() else { return };
    let first = SinkProcess::start();
    let second = SinkProcess::start();
    operated.apply(&trace_pipeline("one", first.address()));
    operated.wait_for_state("tracepipeline/one", "Ready");
    operated.apply(&trace_pipeline("two", second.address()));
    let status = operated.wait_for_state("tracepipeline/two", "Pending");
    assert_eq!(status["reason"], "Pending", "{status}");
    let table = operated.kubectl.run_ok("get tracep");
    let head = table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(head, ["NAME", "STATE", "READY", "REASON", "BACKEND", "AGE"]);

    operated.kill_operator();
    let (address, lock) =
        (operated.otlp(), format!("configmap kubewake-tracepipeline-lock --namespace {OPERATOR_NAMESPACE}"));
    operated.kubectl.run_ok("delete tracepipeline one");
    wait_until("the slot is free", || !operated.kubectl.exists(&lock));
    let report = operated.send(&["--requests", "2"]);
    first.wait_for_all(&report.acknowledged);
    operated.start_operator();
    operated.wait_for_state("tracepipeline/two", "Ready");
    assert_eq!(operated.otlp(), address, "it takes over what is there");
    let report = operated.send(&["--requests", "2"]);
    second.wait_for_all(&report.acknowledged);

    operated.stop_operator();
    operated.kubectl.run_ok("delete tracepipeline two");
    operated.wait_until_cleaned_up();
}

#[test]
fn a_new_operator_changes_nothing_that_is_as_it_should_be() {
    let Some(mut operated) = OperatorCluster::start() else { return };
    let sink = SinkProcess::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    operated.kubectl.run_ok("rollout status deployment/kubewake-gateway --namespace kubewake-system");
    operated.stop_operator();
    operated.start_operator();
    wait_until("the operator has built the layer", || operated.metric("kubewake_operator_layer_runs_total") > 0.0);
    wait_until("no reconcile is running", || operated.metric("kubewake_operator_reconciles_running") == 0.0);
    assert_eq!(operated.metric("kubewake_operator_writes_total"), 0.0);
}
