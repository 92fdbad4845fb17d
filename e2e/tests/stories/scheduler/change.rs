//! A new configuration changes where the next pod goes, and the trace of that pod says why.

use kubewake_e2e::traces::Span;

use super::{CHANGE, FIRST, OURS, SECOND, Scene, shown};

#[test]
fn a_pod_shows_which_configuration_decided_its_node() {
    let Some(scene) = Scene::start() else { return };
    let kubectl = &scene.traced.kubectl;
    kubectl.ok("label node node-3 disk=ssd");
    let first = scene.configure(false, FIRST);
    // The emptiest node is the one without operator and scheduler, so that nothing but a label leads elsewhere.
    kubectl.ok("cordon node-1");
    scene.pod("one", "1", "");
    scene.node("one");
    let second = scene.configure(false, SECOND);
    assert_ne!(first, second);
    scene.pod("two", "1m", "");
    assert_eq!(scene.node("two"), "node-3");
    for (pod, revision) in [("one", &first), ("two", &second)] {
        let decided = kubectl.field(&format!("pod {pod}"), ".metadata.annotations.demo\\.kubewake\\.io/configuration");
        assert_eq!(&decided, revision);
    }

    let attempts = ["one", "two"].map(|pod| scene.attempt(pod, "scheduled"));
    let traces = scene.end();
    let expected = shown(1);
    traces.is(&attempts[1].id.trace, &expected);
    let without = expected.lines().filter(|line| !line.contains("plugin: NodeLabel")).collect::<Vec<_>>();
    traces.is(&attempts[0].id.trace, &without.join("\n"));
    // From the pod to the change of the configuration: by its link to the trace that begins with what somebody typed.
    let [of_first, of_second] = attempts.clone().map(|attempt| traces.spans().get(&attempt.links[0]).unwrap().clone());
    assert_eq!(of_first.attribute("scheduler.configuration.revision"), first);
    assert_eq!(of_second.attribute("scheduler.configuration.revision"), second);
    assert_eq!(of_second.attribute("scheduler.configuration.previous"), first);
    traces.span(CHANGE, |span| span.id.trace == of_second.id.trace);
    // And back: the first pod that a configuration decided.
    for (taken, attempt) in [(&of_first, &attempts[0]), (&of_second, &attempts[1])] {
        let is_it = |span: &Span| span.parent() == Some(taken.id.clone());
        assert_eq!(traces.span("firstPodScheduled", is_it).links, std::slice::from_ref(&attempt.id));
    }

    let told = traces.spans();
    let plugin = |name: &str| {
        let inside = told.in_trace(&attempts[1].id.trace);
        inside.filter(|span| span.name == format!("plugin: {name}")).last().unwrap().clone()
    };
    assert!(plugin("NodeUnschedulable").attribute("scheduler.plugin.rejected_nodes").contains("node-1"));
    let scores = plugin("NodeLabel");
    assert_eq!(scores.attribute("scheduler.plugin.weight"), "5");
    for part in ["node-2=0", "node-3=100"] {
        assert!(scores.attribute("scheduler.plugin.scores").contains(part), "{:?}", scores.attributes);
    }
    assert_eq!(attempts[1].attribute("scheduler.selected_node"), "node-3");
    assert_eq!(attempts[1].attribute("scheduler.profile"), "demo");
    let all = [&attempts[0], &attempts[1], &of_first, &of_second].map(|span| span.id.trace.as_str());
    traces.tell_only(&OURS, &all);
}
