//! The operator is away while things happen.

use kubewake_e2e::{
    Operated, Sink, eventually,
    operator::{NAMESPACE, trace_pipeline},
};

#[test]
fn what_happens_while_the_operator_is_away_is_done_when_it_comes_back() {
    let Some(mut operated) = Operated::anywhere() else { return };
    let (first, second) = (Sink::start(), Sink::start());
    operated.apply(&trace_pipeline("one", first.address()));
    operated.until_state("tracepipeline/one", "Ready");
    operated.apply(&trace_pipeline("two", second.address()));
    let status = operated.until_state("tracepipeline/two", "Pending");
    assert_eq!(status["reason"], "Pending", "{status}");
    let table = operated.kubectl.ok("get tracep");
    let head = table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(head, ["NAME", "STATE", "READY", "REASON", "BACKEND", "AGE"]);

    operated.kill_operator();
    let (address, lock) = (operated.otlp(), format!("configmap kubewake-tracepipeline-lock --namespace {NAMESPACE}"));
    operated.kubectl.ok("delete tracepipeline one");
    eventually("the slot is free", || !operated.kubectl.exists(&lock));
    let report = operated.send(&["--requests", "2"]);
    first.await_all(&report.acknowledged);
    operated.start_operator();
    operated.until_state("tracepipeline/two", "Ready");
    assert_eq!(operated.otlp(), address, "it takes over what is there");
    let report = operated.send(&["--requests", "2"]);
    second.await_all(&report.acknowledged);

    operated.stop_operator();
    operated.kubectl.ok("delete tracepipeline two");
    operated.until_nothing_is_left();
}

#[test]
fn a_new_operator_changes_nothing_that_is_as_it_should_be() {
    let Some(mut operated) = Operated::start() else { return };
    let sink = Sink::start();
    operated.apply(&trace_pipeline("backend", sink.address()));
    operated.until_state("tracepipeline/backend", "Ready");
    operated.kubectl.ok("rollout status deployment/kubewake-gateway --namespace kubewake-system");
    operated.stop_operator();
    operated.start_operator();
    eventually("it has looked at everything", || operated.figure("kubewake_operator_layer_runs_total") > 0.0);
    eventually("it is done", || operated.figure("kubewake_operator_reconciles_running") == 0.0);
    assert_eq!(operated.figure("kubewake_operator_writes_total"), 0.0);
}
