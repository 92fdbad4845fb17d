use kube::runtime::{reflector, watcher::Event};
use serde_json::json;

use super::*;
use crate::{objects::object_cache::ObjectCacheWriter, runtime::resync_trigger::ResyncTrigger};

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
    let said = |status| {
        startup_problem(&pod(status), false, ImageSource::Telemetry).map(|trouble| (trouble.message, trouble.is_stuck))
    };
    let stuck = |words: &str| Some((format!("the pod p failed to start: {words}"), true));
    assert_eq!(said(json!({})), None);
    assert_eq!(said(waiting("ContainerCreating")), None, "that takes a moment");
    assert_eq!(
        said(waiting("ErrImagePull")),
        stuck("the image example.com/c:2 cannot be pulled; check spec.image of the Telemetry")
    );
    let by_operator = startup_problem(&pod(waiting("ErrImagePull")), false, ImageSource::Operator).unwrap();
    assert!(by_operator.message.contains("check --collector-image of the operator"), "{by_operator:?}");
    assert_eq!(said(waiting("ImagePullBackOff")), said(waiting("ErrImagePull")), "in the same words");
    assert_eq!(said(waiting("CrashLoopBackOff")), stuck("CrashLoopBackOff"));
    let mut going = pod(waiting("CrashLoopBackOff"));
    going.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(startup_problem(&going, false, ImageSource::Telemetry), None);
}

/// A pod of the gateway that the scheduler has not placed, for this reason.
fn without_node(name: &str, reason: &str) -> Pod {
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": reason, "message": "Insufficient cpu"});
    let mut pod = pod(json!({"phase": "Pending", "conditions": [condition]}));
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.labels = Some(names::selector_labels(names::GATEWAY));
    pod
}

fn ending(name: &str) -> Pod {
    let mut pod = without_node(name, "");
    pod.status = None;
    pod.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    pod
}

fn store(pods: impl IntoIterator<Item = Pod>) -> CollectorPods {
    let (reader, mut writer) = reflector::store();
    pods.into_iter().for_each(|pod| writer.apply_watcher_event(&Event::Apply(pod)));
    CollectorPods::new(reader, reflector::store().0)
}

fn among(pods: impl IntoIterator<Item = Pod>) -> CollectorReadiness {
    CollectorReadiness::example(2, 2).with_pods(&store(pods), &CollectorSettings::new("here"))
}

#[test]
fn init_container_that_fails_is_named_although_the_others_only_wait_for_it() {
    let mut status = waiting("PodInitializing");
    status["initContainerStatuses"] = waiting("CrashLoopBackOff")["containerStatuses"].clone();
    let found = startup_problem(&pod(status), false, ImageSource::Telemetry).unwrap();
    assert_eq!(found.message, "the pod p failed to start: CrashLoopBackOff");
}

#[test]
fn daemon_set_has_as_many_collectors_as_its_status_says() {
    let agents = ObjectCacheWriter::new([], ResyncTrigger::default());
    let live = json!({
        "kind": "DaemonSet", "metadata": {"name": names::AGENT, "resourceVersion": "1"},
        "status": {"numberReady": 3, "desiredNumberScheduled": 5},
    });
    agents.record_response(ObjectKind::DaemonSet, &live);
    let objects = ObjectCacheWriter::new([], ResyncTrigger::default());
    let readiness = CollectorReadiness::from_caches(&objects, &agents, [CollectorTier::Agent]);
    assert_eq!(readiness.to_string(), "3/5");
    assert_eq!(readiness.describe(), "3 of 5 collectors of kubewake-agent are ready");
    assert!(readiness.exist() && readiness.are_serving());
    let both = CollectorReadiness::from_caches(&objects, &agents, [CollectorTier::Gateway, CollectorTier::Agent]);
    assert!(!both.exist() && !both.are_serving(), "the gateway does not exist");
}

#[test]
fn a_rollout_that_no_node_has_room_for_is_stuck() {
    let stuck = among([without_node("b", UNSCHEDULABLE_REASON), without_node("a", UNSCHEDULABLE_REASON)]);
    assert!(stuck.are_stuck() && stuck.are_serving());
    let words = "2 of 2 collectors of kubewake-gateway are ready (the pod a is not scheduled: Insufficient cpu)";
    assert_eq!(stuck.describe(), words, "always the same of several");
    let mixed = among([without_node("a", "SchedulingGated"), without_node("b", UNSCHEDULABLE_REASON)]);
    assert!(mixed.are_stuck() && mixed.describe().contains("the pod b"), "{}", mixed.describe());
}

#[test]
fn what_passes_in_a_rollout_is_not_stuck() {
    let mut fresh = without_node("a", UNSCHEDULABLE_REASON);
    fresh.status = Some(serde_json::from_value(json!({"phase": "Pending"})).unwrap());
    assert!(!among([fresh]).are_stuck(), "nobody has looked at it yet");
    let gated = among([without_node("a", "SchedulingGated")]);
    assert!(!gated.are_stuck() && gated.describe().contains("is not scheduled"), "{}", gated.describe());
    let crowded = among([without_node("new", UNSCHEDULABLE_REASON), ending("old")]);
    assert!(!crowded.are_stuck() && crowded.describe().contains("is not scheduled"), "{}", crowded.describe());
    let late = CollectorReadiness::example(2, 2)
        .with_stuck_collector()
        .with_pods(&store([without_node("new", UNSCHEDULABLE_REASON), ending("old")]), &CollectorSettings::new("here"));
    assert!(late.are_stuck(), "the Deployment has waited for too long");
}
