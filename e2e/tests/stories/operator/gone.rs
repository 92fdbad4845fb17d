//! The last pipeline takes everything along, whoever is there to see it.

use kubewake_e2e::{
    Sink,
    operator::{Operated, trace_pipeline},
};

/// Everything that there can be: whole traces wait, pods are asked for, values are kept.
fn everything(operated: &Operated, sink: &Sink) {
    let tail = "sampling: {tail: {policies: [{name: all, alwaysSample: {}}]}}, input: {namespaces: {exclude: [none]}}";
    let headers = "headers: [{name: x, value: some}]";
    let pipeline = trace_pipeline("backend", sink.address())
        .replace("{output", &format!("{{{tail}, output"))
        .replace("endpoint:", &format!("{headers}, endpoint:"));
    operated.apply(&pipeline);
    operated.until_state("tracepipeline/backend", "Ready");
    let made = operated.made();
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
    let Some(operated) = Operated::anywhere() else { return };
    let sink = Sink::start();
    everything(&operated, &sink);
    operated.kubectl.ok("delete tracepipeline backend");
    operated.until_nothing_is_left();
}

#[test]
fn the_last_pipeline_takes_everything_along_also_while_no_operator_runs() {
    let Some(mut operated) = Operated::anywhere() else { return };
    let sink = Sink::start();
    everything(&operated, &sink);
    operated.kill_operator();
    operated.kubectl.ok("delete tracepipeline backend");
    operated.until_nothing_is_left();
    operated.start_operator();
    operated.apply(&trace_pipeline("next", sink.address()));
    operated.until_state("tracepipeline/next", "Ready");
}
