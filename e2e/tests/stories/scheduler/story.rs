//! From one change of the configuration to the pod that it decided: one trace.

use super::{FIRST, OURS, SECOND, Scene};

/// The context of somebody who does several things that belong together.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[test]
fn a_change_is_one_trace_until_a_pod_is_bound_by_it() {
    let Some(scene) = Scene::start() else { return };
    scene.traced.kubectl.ok("label node node-3 disk=ssd");
    scene.configure(true, FIRST);
    let revision = scene.configure(true, SECOND);
    assert_eq!(scene.field(".status.probed.revision"), revision);
    assert_eq!(scene.field(".status.probed.node"), "node-3");
    let traces = &scene.traced.traces;
    let taken = traces.span("takeConfiguration", |span| span.attribute("scheduler.configuration.revision") == revision);
    traces.becomes(&taken.id.trace, include_str!("story.txt"));
}
