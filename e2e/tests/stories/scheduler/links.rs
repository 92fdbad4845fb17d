//! An operator and a scheduler whose work is in traces of their own.

use kubewake_e2e::traces::ExportedSpan;

use super::{FIRST, OURS, Scene, TRUSTED, shown, whole};

/// What a run of the operator does.
const RUN: &str = "
  apply Deployment [scheduler-operator] producer
    PATCH APPS/deployments/{:name} [scheduler-operator] client
      PATCH APPS/deployments/{:name} [apiserver] server
  apply ConfigMap [scheduler-operator] producer
    PATCH CORE/configmaps/{:name} [scheduler-operator] client
      PATCH CORE/configmaps/{:name} [apiserver] server
  status Scheduler [scheduler-operator] internal
    PATCH DEMO/schedulers/{:name}/status [scheduler-operator] client
      PATCH DEMO/schedulers/{:name}/status [apiserver] server
";

/// What the scheduler does with its configuration.
const TAKE: &str = "
takeConfiguration [demo-scheduler] consumer ~> apply ConfigMap
  PATCH DEMO/schedulers/{:name}/status [demo-scheduler] client
    PATCH DEMO/schedulers/{:name}/status [apiserver] server
  firstPodScheduled [demo-scheduler] internal ~> SchedulePod
";

/// Everything that is done, each piece with a root of its own.
fn pieces() -> String {
    let led_to_it = ["", " ~> apply ConfigMap", " ~> apply Deployment", " ~> apply ConfigMap ~> apply Deployment"];
    let runs =
        led_to_it.map(|by| format!("reconcile Scheduler [scheduler-operator] consumer{by} ~> stamp Scheduler{RUN}"));
    let of_pod = shown(1);
    let attempt = "SchedulePod [demo-scheduler] consumer ~> stamp Pod ~> takeConfiguration";
    let inside =
        of_pod.lines().skip_while(|line| !line.contains("SchedulePod")).skip(1).filter_map(|line| line.get(4..));
    whole(&format!("{}{TAKE}{attempt}\n{}", runs.join("\n"), inside.collect::<Vec<_>>().join("\n")))
}

#[test]
fn with_links_each_piece_of_work_is_a_trace_that_leads_back_to_the_change() {
    let Some(scene) = Scene::start_with(&TRUSTED, &["--mode=links"]) else { return };
    scene.configure(false, FIRST);
    scene.pod("one", "1m", "");
    scene.node("one");
    let attempt = scene.attempt("one", "scheduled");
    let traces = scene.end();
    let spans = traces.spans();
    for name in ["reconcile Scheduler", "takeConfiguration", "SchedulePod"] {
        let work: Vec<_> = spans.with_name(name).collect();
        assert!(!work.is_empty() && work.iter().all(|span| span.parent_reference().is_none()), "{name}: {work:#?}");
    }
    let linked = |from: &ExportedSpan, name: &str| {
        let found = from.links.iter().filter_map(|id| spans.get(id)).find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no {name} is linked: {from:#?}")).clone()
    };
    // From the pod to what somebody typed.
    linked(&attempt, "stamp Pod");
    let applied = linked(&linked(&attempt, "takeConfiguration"), "apply ConfigMap");
    let run = spans.in_trace(&applied.id.trace).find(|span| span.name == "reconcile Scheduler").unwrap().clone();
    let change = linked(&run, "stamp Scheduler");
    // How long it took is in the trace of the change, as one number.
    assert_eq!(traces.wait_for_span("converge Scheduler", |_| true).id.trace, change.id.trace);
    let all: usize = OURS.iter().map(|service| traces.assert_all_match(service, &[&change.id.trace], &pieces())).sum();
    assert!(all >= 4, "two runs, a configuration and a pod");
}
