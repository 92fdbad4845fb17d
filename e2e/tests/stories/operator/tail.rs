//! Collectors in which whole traces wait are there while a pipeline asks for them.

use kubewake_e2e::{
    SinkProcess,
    operator::{OPERATOR_NAMESPACE, OperatorCluster, telemetry, trace_pipeline},
    wait_until,
};

const POLICIES: &str = "sampling: {tail: {decisionWait: 1s, policies: [{name: all, alwaysSample: {}}]}}";
/// Longer than all that these stories do, which end it; what is refused for a time is sent again.
const STEADY: &[&str] = &["--seconds", "600", "--rate", "500", "--spans", "10", "--traces", "2", "--retry"];

fn with_policies(pipeline: &str) -> String {
    pipeline.replace("{output", &format!("{{{POLICIES}, output"))
}

/// All that there is of the tier.
fn tier(operated: &OperatorCluster) -> String {
    let kinds = "statefulsets,configmaps,services,pods";
    operated.kubectl.run_ok(&format!(
        "get {kinds} --namespace {OPERATOR_NAMESPACE} -l app.kubernetes.io/name=kubewake-sticky -o name"
    ))
}

fn until_the_tier_works(operated: &OperatorCluster) {
    let set = format!("statefulset kubewake-sticky --namespace {OPERATOR_NAMESPACE}");
    wait_until("both collectors of the sticky tier are ready", || {
        operated.kubectl.exists(&set) && operated.kubectl.field(&set, ".status.readyReplicas") == "2"
    });
}

/// Waits until traces of the pipeline were decided about and delivered.
fn until_decided(operated: &OperatorCluster, pipeline: &str) {
    wait_until("whole traces come from the tier", || {
        operated.collector_statuses().iter().any(|it| {
            it["samplers"].as_object().is_some_and(|all| !all.is_empty())
                && it["pipelines"][pipeline]["delivered"].as_u64() > Some(0)
        })
    });
}

#[test]
fn tail_policies_bring_the_sticky_tier_and_take_it_away_under_load() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    let plain = trace_pipeline("backend", sink.address());
    operated.apply(&plain);
    operated.wait_for_pods(2);
    assert_eq!(tier(&operated), "");
    let gateways = operated.pods();
    let load = operated.start_sending(STEADY);
    sink.wait_for_items(100);

    operated.apply(&with_policies(&plain));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    until_the_tier_works(&operated);
    until_decided(&operated, "traces/backend");
    operated.apply(&plain);
    wait_until("the tier is gone", || tier(&operated).is_empty());
    let after = operated.send(&["--requests", "10", "--retry"]);
    sink.wait_for_all(&after.acknowledged);

    let report = load.stop_early();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    assert_eq!(operated.pods(), gateways, "those that receive are the same");
}

#[test]
fn tail_policies_of_one_pipeline_cost_neither_it_nor_another_a_span() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let kept = SinkProcess::start();
    let decided = SinkProcess::start();
    operated.apply(&telemetry("{slots: {traces: 2}}"));
    let plain = trace_pipeline("decided", decided.address());
    for pipeline in [&trace_pipeline("kept", kept.address()), &plain] {
        operated.apply(pipeline);
    }
    operated.wait_for_pods(2);
    for name in ["kept", "decided"] {
        operated.wait_for_state(&format!("tracepipeline/{name}"), "Ready");
    }
    let load = operated.start_sending(STEADY);
    kept.wait_for_items(100);
    decided.wait_for_items(100);

    // Senders are told OK as soon as one of the two has taken it, and do not send it again.
    operated.apply(&with_policies(&plain));
    until_the_tier_works(&operated);
    until_decided(&operated, "traces/decided");
    let status = operated.wait_for_state("tracepipeline/decided", "Ready");
    assert_eq!(OperatorCluster::condition(&status, "Delivering")["status"], "True", "{status}");
    operated.apply(&plain);
    wait_until("the tier is gone", || tier(&operated).is_empty());
    let after = operated.send(&["--requests", "10", "--retry"]);
    decided.wait_for_all(&after.acknowledged);

    let report = load.stop_early();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    kept.wait_for_all(&report.acknowledged);
    decided.wait_for_all(&report.acknowledged);
    for name in ["kept", "decided"] {
        let status = operated.wait_for_state(&format!("tracepipeline/{name}"), "Ready");
        assert_ne!(OperatorCluster::condition(&status, "Delivering")["reason"], "DataDropped", "{status}");
    }
}

#[test]
fn tail_policies_removed_while_the_operator_restarts_cost_no_span() {
    let Some(mut operated) = OperatorCluster::start() else { return };
    let sink = SinkProcess::start();
    let plain = trace_pipeline("backend", sink.address());
    operated.apply(&with_policies(&plain));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    until_the_tier_works(&operated);
    let load = operated.start_sending(STEADY);
    until_decided(&operated, "traces/backend");

    operated.kill_operator();
    operated.apply(&plain);
    operated.start_operator();
    wait_until("the tier is gone", || tier(&operated).is_empty());
    let after = operated.send(&["--requests", "10", "--retry"]);
    sink.wait_for_all(&after.acknowledged);

    let report = load.stop_early();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.wait_for_all(&report.acknowledged);
    let status = operated.wait_for_state("tracepipeline/backend", "Ready");
    assert_ne!(OperatorCluster::condition(&status, "Delivering")["reason"], "DataDropped", "{status}");
}

#[test]
fn deletion_of_the_last_tail_sampled_pipeline_costs_no_acknowledged_span() {
    let Some(operated) = OperatorCluster::start_anywhere() else { return };
    let sink = SinkProcess::start();
    operated.apply(&with_policies(&trace_pipeline("backend", sink.address())));
    operated.wait_for_state("tracepipeline/backend", "Ready");
    until_the_tier_works(&operated);
    let load = operated.start_sending(STEADY);
    until_decided(&operated, "traces/backend");

    operated.kubectl.run_ok("delete tracepipeline backend");
    // Senders that are connected are served until the gateways stop.
    let gateways =
        format!("get pods --namespace {OPERATOR_NAMESPACE} -l app.kubernetes.io/name=kubewake-gateway -o name");
    wait_until("the gateways are gone", || operated.kubectl.run_ok(&gateways).is_empty());
    let report = load.stop_early();
    sink.wait_for_all(&report.acknowledged);
    operated.wait_until_cleaned_up();
}
