use kube::runtime::{reflector, watcher::Event};
use serde_json::json;

use super::*;

fn pod(status: Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap()
}

fn waiting(reason: &str) -> Value {
    let container = json!({
        "name": "collector", "image": "example.com/c:2", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": reason}},
    });
    json!({"phase": "Pending", "containerStatuses": [container]})
}

#[test]
fn a_pod_that_does_not_start_says_why() {
    let said = |status| trouble(&pod(status), false).map(|trouble| (trouble.words, trouble.is_stuck));
    let stuck = |words: &str| Some((format!("the pod p does not start: {words}"), true));
    assert_eq!(said(json!({})), None);
    assert_eq!(said(waiting("ContainerCreating")), None, "that takes a moment");
    assert_eq!(said(waiting("ErrImagePull")), stuck("the image example.com/c:2 cannot be pulled"));
    assert_eq!(said(waiting("ImagePullBackOff")), said(waiting("ErrImagePull")), "in the same words");
    assert_eq!(said(waiting("CrashLoopBackOff")), stuck("CrashLoopBackOff"));
    let mut going = pod(waiting("CrashLoopBackOff"));
    going.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(trouble(&going, false), None);
}

/// A pod of the gateway that has no node, as the scheduler says.
fn without_node(name: &str, reason: &str) -> Pod {
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": "Insufficient cpu"});
    let mut pod = pod(json!({"phase": "Pending", "conditions": [condition]}));
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.labels = Some(names::selector(names::GATEWAY));
    pod
}

/// One that ends.
fn ending(name: &str) -> Pod {
    let mut pod = without_node(name, "");
    pod.status = None;
    pod.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    pod
}

fn store(pods: impl IntoIterator<Item = Pod>) -> Store<Pod> {
    let (reader, mut writer) = reflector::store();
    pods.into_iter().for_each(|pod| writer.apply_watcher_event(&Event::Apply(pod)));
    reader
}

fn among(pods: impl IntoIterator<Item = Pod>) -> Collectors {
    Collectors::example(2, 2).with(&store(pods))
}

#[test]
fn a_rollout_that_no_node_has_room_for_is_stuck() {
    let stuck = among([without_node("b", NO_ROOM), without_node("a", NO_ROOM)]);
    assert!(stuck.are_stuck() && stuck.work());
    let words = "2 of 2 collectors of kubewake-gateway are ready (the pod a has no node: Insufficient cpu)";
    assert_eq!(stuck.describe(), words, "always the same of several");
    let mixed = among([without_node("a", "SchedulingGated"), without_node("b", NO_ROOM)]);
    assert!(mixed.are_stuck() && mixed.describe().contains("the pod b"), "{}", mixed.describe());
}

#[test]
fn what_passes_in_a_rollout_is_not_stuck() {
    let mut fresh = without_node("a", NO_ROOM);
    fresh.status = Some(serde_json::from_value(json!({"phase": "Pending"})).unwrap());
    assert!(!among([fresh]).are_stuck(), "nobody has looked at it yet");
    let gated = among([without_node("a", "SchedulingGated")]);
    assert!(!gated.are_stuck() && gated.describe().contains("has no node"), "{}", gated.describe());
    let crowded = among([without_node("new", NO_ROOM), ending("old")]);
    assert!(!crowded.are_stuck() && crowded.describe().contains("has no node"), "{}", crowded.describe());
    let late = Collectors::example(2, 2).stuck().with(&store([without_node("new", NO_ROOM), ending("old")]));
    assert!(late.are_stuck(), "the Deployment has waited for too long");
}
