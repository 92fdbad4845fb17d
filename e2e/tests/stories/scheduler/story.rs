//! From one change of the configuration to the pod that it decided: one trace.

use super::{FIRST, OURS, SECOND, Scene, shown};

#[test]
fn a_change_is_one_trace_until_a_pod_is_bound_by_it() {
    let Some(scene) = Scene::start() else { return };
    scene.traced.kubectl.run_ok("label node node-3 disk=ssd");
    scene.configure(true, FIRST);
    let revision = scene.configure(true, SECOND);
    assert_eq!(scene.field(".status.probed.revision"), revision);
    assert_eq!(scene.field(".status.probed.node"), "node-3");
    let traces = scene.end();
    let taken = traces
        .wait_for_span("takeConfiguration", |span| span.attribute("scheduler.configuration.revision") == revision);
    traces.assert_matches(&taken.id.trace, &shown(0));
    let first =
        traces.wait_for_span("takeConfiguration", |span| span.attribute("scheduler.configuration.previous").is_empty());
    traces.assert_only_in(&OURS, &[&first.id.trace, &taken.id.trace]);
}

#[test]
fn callers_that_the_api_server_does_not_trust_are_followed_by_links() {
    let Some(scene) = Scene::start_with(&[], &[]) else { return };
    scene.traced.kubectl.run_ok("label node node-3 disk=ssd");
    scene.configure(true, FIRST);
    let revision = scene.configure(true, SECOND);
    let traces = scene.end();
    let taken = traces
        .wait_for_span("takeConfiguration", |span| span.attribute("scheduler.configuration.revision") == revision);
    // The webhook believes the writer's own context more than the trace that the API server began, and links
    // that. And the API server asks nobody whether a request is worth a trace. It names a list by one object's
    // name as a request for that object.
    let mut expected = shown(0);
    for (of_friends, of_others) in [
        (
            "            stamp Pod [kubewake-webhook] server\n",
            "        stamp Pod [kubewake-webhook] server ~> HTTP POST\n",
        ),
        (
            "/pods [scheduler-operator] client\n      create",
            "/pods [scheduler-operator] client\n        GET /api/v1/namespaces/{:namespace}/pods/{:name} [apiserver] server\n      create",
        ),
    ] {
        assert!(expected.contains(of_friends), "{expected}");
        expected = expected.replace(of_friends, of_others);
    }
    traces.assert_matches(&taken.id.trace, &expected);
    let first =
        traces.wait_for_span("takeConfiguration", |span| span.attribute("scheduler.configuration.previous").is_empty());
    traces.assert_only_in(&OURS, &[&first.id.trace, &taken.id.trace]);
}

#[test]
fn a_pod_that_brings_the_context_of_the_change_is_in_its_trace() {
    let Some(scene) = Scene::start() else { return };
    scene.configure(false, FIRST);
    let context = scene.field(".metadata.annotations.tracing\\.k8s\\.io/traceparent");
    scene.pod("mine", "1m", &format!("tracing.k8s.io/traceparent: {context}"));
    scene.node("mine");
    let attempt = scene.attempt("mine", "scheduled");
    let traces = &scene.traced.traces;
    let parent = traces.wait_for("the parent of the attempt", |spans| spans.get(&attempt.parent_reference()?).cloned());
    assert_eq!((parent.name.as_str(), parent.traceparent()), ("stamp Scheduler", context));
    assert_eq!(traces.spans().get(&attempt.links[0]).unwrap().id.trace, attempt.id.trace);
    // Who is there needs not be found.
    assert!(traces.spans().with_name("firstPodScheduled").next().is_none());
    scene.end().assert_only_in(&OURS, &[&attempt.id.trace]);
}
