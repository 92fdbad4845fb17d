//! A new configuration changes where the next pod goes, and the trace of that pod says why.

use kubewake_e2e::{traces::ExportedSpan, wait_until};

use super::{CHANGE, FIRST, OURS, SECOND, Scene, shown};

#[test]
fn a_pod_shows_which_configuration_decided_its_node() {
    let Some(scene) = Scene::start() else { return };
    let kubectl = &scene.traced.kubectl;
    kubectl.run_ok("label node node-3 disk=ssd");
    let first = scene.configure(false, FIRST);
    // The emptiest node is the one without operator and scheduler, so that nothing but a label leads elsewhere.
    kubectl.run_ok("cordon node-1");
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
    // Without a trace at hand, the pod and its events lead to it.
    let bound = kubectl.field("pod two", ".metadata.annotations.tracing\\.k8s\\.io/traceparent");
    let uid = kubectl.field("pod two", ".metadata.uid");
    let named = "{.items[?(@.reason==\"Scheduled\")].metadata.annotations.trail\\.kubewake\\.io/trace-id}";
    wait_until("an event names the trace", || {
        kubectl.run_ok(&format!("get events --field-selector involvedObject.name=two -o jsonpath={named}"))
            == attempts[1].id.trace
    });
    let namespace = kubectl.namespace().to_owned();
    let traces = scene.end();
    let bind = traces.wait_for_span("bind", |span| span.traceparent() == bound);
    assert_eq!(bind.id.trace, attempts[1].id.trace);
    let expected = shown(1);
    traces.assert_matches(&attempts[1].id.trace, &expected);
    let without = expected.lines().filter(|line| !line.contains("plugin: NodeLabel")).collect::<Vec<_>>();
    traces.assert_matches(&attempts[0].id.trace, &without.join("\n"));
    // From the pod to the change of the configuration: by its link to the trace that begins with what somebody typed.
    let [of_first, of_second] = attempts.clone().map(|attempt| traces.spans().get(&attempt.links[0]).unwrap().clone());
    assert_eq!(of_first.attribute("scheduler.configuration.revision"), first);
    assert_eq!(of_second.attribute("scheduler.configuration.revision"), second);
    assert_eq!(of_second.attribute("scheduler.configuration.previous"), first);
    traces.wait_for_span(CHANGE, |span| span.id.trace == of_second.id.trace);
    // And back: the first pod that a configuration decided.
    for (taken, attempt) in [(&of_first, &attempts[0]), (&of_second, &attempts[1])] {
        let is_it = |span: &ExportedSpan| span.parent_reference() == Some(taken.id.clone());
        assert_eq!(traces.wait_for_span("firstPodScheduled", is_it).links, std::slice::from_ref(&attempt.id));
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
    for (key, value) in [
        ("k8s.namespace.name", &*namespace),
        ("k8s.pod.name", "two"),
        ("k8s.pod.uid", &*uid),
        ("scheduler.profile", "demo"),
        ("scheduler.result", "scheduled"),
        ("scheduler.selected_node", "node-3"),
        ("scheduler.configuration.revision", &*second),
    ] {
        assert_eq!(attempts[1].attribute(key), value, "{key}");
    }
    for key in ["scheduler.attempt", "scheduler.queue_wait_ms"] {
        assert!(attempts[1].attribute(key).parse::<u64>().is_ok(), "{key}");
    }
    speaks_as_the_kep_does(told.in_trace(&attempts[1].id.trace));
    let all = [&attempts[0], &attempts[1], &of_first, &of_second].map(|span| span.id.trace.as_str());
    traces.assert_only_in(&OURS, &all);
}

/// The attributes of cycles, extension points and plugins, as KEP-5927 names them.
fn speaks_as_the_kep_does<'a>(spans: impl Iterator<Item = &'a ExportedSpan>) {
    let spans: Vec<&ExportedSpan> = spans.collect();
    let named = |name: &str| *spans.iter().find(|span| span.name == name).unwrap();
    for (cycle, phase) in [("schedulingCycle", "scheduling"), ("bindingCycle", "binding")] {
        assert_eq!(named(cycle).attribute("scheduler.phase"), phase);
    }
    // One of the three nodes is cordoned.
    let filter = named("filter");
    assert_eq!((filter.attribute("scheduler.nodes"), filter.attribute("scheduler.feasible_nodes")), ("3", "2"));
    for point in ["preFilter", "filter", "score", "bind"] {
        assert_eq!(named(point).attribute("scheduler.plugin.extension_point"), point);
    }
    let plugins: Vec<_> = spans.iter().filter_map(|span| Some((span, span.name.strip_prefix("plugin: ")?))).collect();
    assert_eq!(plugins.len(), 7);
    for (span, name) in plugins {
        assert_eq!(span.attribute("scheduler.plugin.name"), name);
        let point = spans.iter().find(|point| Some(&point.id.span) == span.parent.as_ref()).unwrap();
        assert_eq!(span.attribute("scheduler.plugin.extension_point"), point.name);
        let result = if point.name == "score" { "scheduler.plugin.scores" } else { "scheduler.plugin.rejected_nodes" };
        assert!(point.name == "preFilter" || span.attributes.contains_key(result), "{span:?}");
    }
}
