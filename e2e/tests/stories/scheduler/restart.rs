//! The scheduler is killed, and another takes its place.

use kubewake_e2e::wait_until;

use super::{FIRST, OURS, SECOND, Scene};

#[test]
fn a_new_scheduler_goes_on_with_the_same_configuration() {
    let Some(scene) = Scene::start() else { return };
    let kubectl = &scene.traced.kubectl;
    kubectl.run_ok("label node node-3 disk=ssd");
    let first = scene.configure(false, FIRST);
    let revision = scene.configure(false, SECOND);
    let before = scene.field(".status.running.pod");
    // At once, and without a word.
    kubectl.run_ok(&format!("delete pod {before} --namespace scheduler-system --grace-period=0 --force"));
    scene.pod("waiting", "1m", "");
    assert_eq!(scene.node("waiting"), "node-3");
    wait_until("the new scheduler reports its pod", || {
        ![String::new(), before.clone()].contains(&scene.field(".status.running.pod"))
    });
    assert_eq!(scene.field(".status.running.revision"), revision);

    let attempt = scene.attempt("waiting", "scheduled");
    let traces = &scene.traced.traces;
    let taken =
        traces.wait_for("the span takeConfiguration of the scheduler", |spans| spans.get(&attempt.links[0]).cloned());
    assert_eq!(
        (taken.name.as_str(), taken.attribute("scheduler.configuration.revision")),
        ("takeConfiguration", &*revision)
    );
    // Both took it in the trace of the one change.
    let all = traces.spans();
    let same = all.with_name("takeConfiguration").filter(|span| span.id.trace == taken.id.trace).count();
    assert_eq!(same, 2, "{}", traces.show(&taken.id.trace));
    assert_ne!(attempt.id.trace, taken.id.trace);
    let traces = scene.end();
    let first =
        traces.wait_for_span("takeConfiguration", |span| span.attribute("scheduler.configuration.revision") == first);
    traces.assert_only_in(&OURS, &[&first.id.trace, &taken.id.trace, &attempt.id.trace]);
}
