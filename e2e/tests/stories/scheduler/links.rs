//! An operator and a scheduler whose work is in traces of their own.

use kubewake_e2e::traces::Span;

use super::{FIRST, Scene, TRUSTED};

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
        let work: Vec<_> = spans.named(name).collect();
        assert!(!work.is_empty() && work.iter().all(|span| span.parent().is_none()), "{name}: {work:#?}");
    }
    let linked = |from: &Span, name: &str| {
        let found = from.links.iter().filter_map(|id| spans.get(id)).find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no {name} is linked: {from:#?}")).clone()
    };
    // From the pod to what somebody typed.
    linked(&attempt, "stamp Pod");
    let applied = linked(&linked(&attempt, "takeConfiguration"), "apply ConfigMap");
    let run = spans.in_trace(&applied.id.trace).find(|span| span.name == "reconcile Scheduler").unwrap().clone();
    let change = linked(&run, "stamp Scheduler");
    // How long it took is in the trace of the change, as one number.
    assert_eq!(traces.span("converge Scheduler", |_| true).id.trace, change.id.trace);
}
