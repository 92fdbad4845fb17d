//! A configuration that is no good is refused, and the scheduler goes on with the old one.

use kubewake_e2e::wait_until;

use super::{FIRST, OURS, SCHEDULER, Scene};

#[test]
fn an_unknown_plugin_is_refused_with_the_known_ones() {
    let Some(scene) = Scene::start() else { return };
    let kubectl = &scene.traced.kubectl;
    let good = scene.configure(false, FIRST);
    scene.apply(false, "  - {name: Luck, weight: 3}\n");
    kubectl.run_ok(&format!("wait --for=condition=Accepted=false {SCHEDULER} --timeout=60s"));
    let message = |kind: &str| scene.field(&format!(".status.conditions[?(@.type==\"{kind}\")].message"));
    assert_eq!(
        message("Accepted"),
        "spec.scores[0].name: unknown score plugin \"Luck\"; known plugins are LeastAllocated, MostAllocated, BalancedAllocation, \
         NodeAffinity, TaintToleration, NodeLabel"
    );
    assert_eq!(message("Ready"), format!("the scheduler continues with revision {good}"));
    scene.pod("still", "1m", "");
    scene.node("still");
    let attempt = scene.attempt("still", "scheduled");
    assert_eq!(attempt.attribute("scheduler.configuration.revision"), good);

    let traces = scene.end();
    let changes = traces.spans();
    let changes: Vec<&str> = changes.with_name("stamp Scheduler").map(|span| span.id.trace.as_str()).collect();
    let [first, second] = changes.as_slice() else { panic!("{changes:?}") };
    traces.assert_matches(
        second,
        "
        PATCH /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/schedulers/{:name} [apiserver] server
          stamp Scheduler [kubewake-webhook] server ~> stamp Scheduler
            reconcile Scheduler [scheduler-operator] consumer error ~> stamp Scheduler
              status Scheduler [scheduler-operator] internal
                PATCH /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/schedulers/{:name}/status [scheduler-operator] client
                  PATCH /apis/demo.kubewake.io/v1alpha1/namespaces/{:namespace}/schedulers/{:name}/status [apiserver] server
        ",
    );
    traces.assert_only_in(&OURS, &[first, second, &attempt.id.trace]);
    let failed = traces.wait_for_span("reconcile Scheduler", |span| span.error.is_some());
    assert!(failed.error.unwrap().contains("unknown score plugin \"Luck\""));
}

#[test]
fn what_somebody_writes_past_the_operator_is_put_back_and_never_decides() {
    let Some(scene) = Scene::start() else { return };
    let kubectl = &scene.traced.kubectl;
    let good = scene.configure(false, FIRST);
    let config_map = "configmap demo-configuration --namespace scheduler-system";
    let before = kubectl.field(config_map, ".data");
    kubectl
        .run_ok(&format!("patch {config_map} --type=merge --patch {{\"data\":{{\"configuration.json\":\"{{}}\"}}}}"));
    wait_until("the operator restores the ConfigMap", || kubectl.field(config_map, ".data") == before);
    wait_until("the scheduler reports no refused configuration", || scene.field(".status.running.refused").is_empty());
    assert_eq!(scene.field(".status.running.revision"), good);
    scene.pod("still", "1m", "");
    scene.node("still");
}
