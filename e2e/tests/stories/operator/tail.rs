//! Collectors in which whole traces wait are there while a pipeline asks for them.

use kubewake_e2e::{
    Load, Sink, eventually,
    operator::{NAMESPACE, Operated, trace_pipeline},
};

#[test]
fn tail_policies_bring_the_sticky_tier_and_take_it_away_under_load() {
    let Some(operated) = Operated::start() else { return };
    let sink = Sink::start();
    let plain = trace_pipeline("backend", sink.address());
    let policies = "sampling: {tail: {decisionWait: 1s, policies: [{name: all, alwaysSample: {}}]}}";
    operated.apply(&plain);
    operated.until_pods(2);
    let sticky = || {
        operated.kubectl.ok(&format!("get statefulsets,configmaps,services,pods --namespace {NAMESPACE} -l app.kubernetes.io/name=kubewake-sticky -o name"))
    };
    assert_eq!(sticky(), "");
    let gateways = operated.pods();
    let load = Load::start(
        "grpc",
        operated.otlp(),
        &["--seconds", "25", "--rate", "500", "--spans", "10", "--traces", "2", "--retry"],
    );
    sink.await_items(100);

    operated.apply(&plain.replace("{output", &format!("{{{policies}, output")));
    operated.until_state("tracepipeline/backend", "Ready");
    eventually("both of the tier work", || {
        operated.kubectl.field(&format!("statefulset kubewake-sticky --namespace {NAMESPACE}"), ".status.readyReplicas")
            == "2"
    });
    eventually("whole traces come from the tier", || {
        operated.collectors().iter().any(|it| {
            it["samplers"].as_object().is_some_and(|all| !all.is_empty())
                && it["pipelines"]["traces/backend"]["delivered"].as_u64() > Some(0)
        })
    });
    operated.apply(&plain);
    eventually("the tier is gone", || sticky().is_empty());
    sink.await_items(sink.items() + 100);

    let report = load.finish();
    assert_eq!((report.items("refused"), report.items("failed")), (0, 0), "{report:?}");
    sink.await_all(&report.acknowledged);
    assert_eq!(operated.pods(), gateways, "those that receive are the same");
}
