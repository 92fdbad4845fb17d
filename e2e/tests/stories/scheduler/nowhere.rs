//! A pod that fits nowhere says so, and gets a node when one allows it.

use kubewake_e2e::wait_until;

use super::{FIRST, OURS, Scene};

#[test]
fn a_pod_that_fits_nowhere_says_why_and_waits_for_a_node() {
    let Some(scene) = Scene::start() else { return };
    let kubectl = &scene.traced.kubectl;
    scene.configure(false, FIRST);
    kubectl.run_ok("taint nodes --all dedicated=nobody:NoSchedule");
    scene.pod("lonely", "1m", "");
    kubectl.run_ok("wait --for=condition=PodScheduled=false pod/lonely --timeout=60s");
    let why = "0/3 nodes are available: 3 node(s) had untolerated taint {dedicated: nobody}.";
    let message = kubectl.field("pod lonely", ".status.conditions[?(@.type==\"PodScheduled\")].message");
    assert_eq!(message, why);
    wait_until("an Event has the message", || kubectl.run_ok("get events").contains(why));
    let refused = scene.attempt("lonely", "unschedulable");
    assert_eq!(refused.error.as_deref(), Some(why));

    // It is tried again, but what it says is nothing new.
    kubectl.run_ok("label node node-1 colour=red");
    kubectl.run_ok("taint node node-2 dedicated-");
    assert_eq!(scene.node("lonely"), "node-2");
    let scheduled = scene.attempt("lonely", "scheduled");
    assert_eq!(scheduled.id.trace, refused.id.trace);
    let traces = scene.end();
    traces.assert_matches(
        &scheduled.id.trace,
        "
        POST /api/v1/namespaces/{:namespace}/pods [apiserver] server
          stamp Pod [kubewake-webhook] server
            SchedulePod [demo-scheduler] consumer error ~> takeConfiguration x1
              schedulingCycle [demo-scheduler] internal
                preFilter [demo-scheduler] internal
                  plugin: NodeResourcesFit [demo-scheduler] internal
                filter [demo-scheduler] internal
                  plugin: NodeUnschedulable [demo-scheduler] internal
                  plugin: TaintToleration [demo-scheduler] internal
              PATCH /api/v1/namespaces/{:namespace}/pods/{:name}/status [demo-scheduler] client
                PATCH /api/v1/namespaces/{:namespace}/pods/{:name}/status [apiserver] server
              POST /apis/events.k8s.io/v1/namespaces/{:namespace}/events [demo-scheduler] client
                POST /apis/events.k8s.io/v1/namespaces/{:namespace}/events [apiserver] server
            SchedulePod [demo-scheduler] consumer ~> takeConfiguration x1
              schedulingCycle [demo-scheduler] internal
                preFilter [demo-scheduler] internal
                  plugin: NodeResourcesFit [demo-scheduler] internal
                filter [demo-scheduler] internal
                  plugin: NodeUnschedulable [demo-scheduler] internal
                  plugin: TaintToleration [demo-scheduler] internal
                  plugin: NodeAffinity [demo-scheduler] internal
                  plugin: NodeResourcesFit [demo-scheduler] internal
                score [demo-scheduler] internal
                  plugin: LeastAllocated [demo-scheduler] internal
              bindingCycle [demo-scheduler] internal
                bind [demo-scheduler] internal
                  POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding [demo-scheduler] client
                    POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding [apiserver] server
              POST /apis/events.k8s.io/v1/namespaces/{:namespace}/events [demo-scheduler] client
                POST /apis/events.k8s.io/v1/namespaces/{:namespace}/events [apiserver] server
        ",
    );
    let taken = traces.wait_for_span("takeConfiguration", |_| true).id.trace;
    traces.assert_only_in(&OURS, &[&taken, &scheduled.id.trace]);
}
