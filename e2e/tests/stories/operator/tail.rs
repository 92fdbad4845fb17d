//! Collectors in which whole traces wait are there while a pipeline asks for them.

use kubewake_e2e::{
    Sink, eventually,
    operator::{NAMESPACE, Operated, telemetry, trace_pipeline},
};

const POLICIES: &str = "sampling: {tail: {decisionWait: 1s, policies: [{name: all, alwaysSample: {}}]}}";
/// Longer than all that these stories do, which end it; what is refused for a time is sent again.
const STEADY: &[&str] = &["--seconds", "600", "--rate", "500", "--spans", "10", "--traces", "2", "--retry"];

fn with_policies(pipeline: &str) -> String {
    pipeline.replace("{output", &format!("{{{POLICIES}, output"))
}

/// All that there is of the tier.
fn tier(operated: &Operated) -> String {
    let kinds = "statefulsets,configmaps,services,pods";
    operated
        .kubectl
        .ok(&format!("get {kinds} --namespace {NAMESPACE} -l app.kubernetes.io/name=kubewake-sticky -o name"))
}

fn until_the_tier_works(operated: &Operated) {
    let set = format!("statefulset kubewake-sticky --namespace {NAMESPACE}");
    eventually("both of the tier work", || {
        operated.kubectl.exists(&set) && operated.kubectl.field(&set, ".status.readyReplicas") == "2"
    });
}

/// Waits until traces of the pipeline were decided about and delivered.
fn until_decided(operated: &Operated, pipeline: &str) {
    eventually("whole traces come from the tier", || {
        operated.collectors().iter().any(|it| {
            it["samplers"].as_object().is_some_and(|all| !all.is_empty())
                && it["pipelines"][pipeline]["delivered"].as_u64() > Some(0)
        })
    });
}

#[test]
fn tail_policies_bring_the_sticky_tier_and_take_it_away_under_load() {
    let Some(operated) = Operated::anywhere() else { return };
    let sink = Sink::start();
    let plain = trace_pipeline("backend", sink.address());
    operated.apply(&plain);
    operated.until_pods(2);
    assert_eq!(tier(&operated), "");
    let gateways = operated.pods();
    let load = operated.sending(STEADY);
    sink.await_items(100);

    operated.apply(&with_policies(&plain));
    operated.until_state("tracepipeline/backend", "Ready");
    until_the_tier_works(&operated);
    until_decided(&operated, "traces/backend");
    operated.apply(&plain);
    eventually("the tier is gone", || tier(&operated).is_empty());
    let after = operated.send(&["--requests", "10", "--retry"]);
    sink.await_all(&after.acknowledged);

    let report = load.end();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.await_all(&report.acknowledged);
    assert_eq!(operated.pods(), gateways, "those that receive are the same");
}

#[test]
fn tail_policies_of_one_pipeline_cost_neither_it_nor_another_a_span() {
    let Some(operated) = Operated::anywhere() else { return };
    let (kept, decided) = (Sink::start(), Sink::start());
    operated.apply(&telemetry("{slots: {traces: 2}}"));
    let plain = trace_pipeline("decided", decided.address());
    for pipeline in [&trace_pipeline("kept", kept.address()), &plain] {
        operated.apply(pipeline);
    }
    operated.until_pods(2);
    for name in ["kept", "decided"] {
        operated.until_state(&format!("tracepipeline/{name}"), "Ready");
    }
    let load = operated.sending(STEADY);
    kept.await_items(100);
    decided.await_items(100);

    // Senders are told OK as soon as one of the two has taken it, and do not send it again.
    operated.apply(&with_policies(&plain));
    until_the_tier_works(&operated);
    until_decided(&operated, "traces/decided");
    let status = operated.until_state("tracepipeline/decided", "Ready");
    assert_eq!(Operated::condition(&status, "Delivering")["status"], "True", "{status}");
    operated.apply(&plain);
    eventually("the tier is gone", || tier(&operated).is_empty());
    let after = operated.send(&["--requests", "10", "--retry"]);
    decided.await_all(&after.acknowledged);

    let report = load.end();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    kept.await_all(&report.acknowledged);
    decided.await_all(&report.acknowledged);
    for name in ["kept", "decided"] {
        let status = operated.until_state(&format!("tracepipeline/{name}"), "Ready");
        assert_ne!(Operated::condition(&status, "Delivering")["reason"], "DataDropped", "{status}");
    }
}

#[test]
fn tail_policies_removed_while_the_operator_restarts_cost_no_span() {
    let Some(mut operated) = Operated::start() else { return };
    let sink = Sink::start();
    let plain = trace_pipeline("backend", sink.address());
    operated.apply(&with_policies(&plain));
    operated.until_state("tracepipeline/backend", "Ready");
    until_the_tier_works(&operated);
    let load = operated.sending(STEADY);
    until_decided(&operated, "traces/backend");

    operated.kill_operator();
    operated.apply(&plain);
    operated.start_operator();
    eventually("the tier is gone", || tier(&operated).is_empty());
    let after = operated.send(&["--requests", "10", "--retry"]);
    sink.await_all(&after.acknowledged);

    let report = load.end();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.await_all(&report.acknowledged);
    let status = operated.until_state("tracepipeline/backend", "Ready");
    assert_ne!(Operated::condition(&status, "Delivering")["reason"], "DataDropped", "{status}");
}
