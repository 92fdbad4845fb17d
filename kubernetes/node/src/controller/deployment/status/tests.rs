use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::*;

const START: &str = "2026-01-01T00:00:00Z";

fn at(seconds: i64) -> Timestamp {
    START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

fn deployment(replicas: i32, status: Value) -> Deployment {
    let spec = json!({
        "replicas": replicas, "progressDeadlineSeconds": 60, "selector": {}, "template": {},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    });
    let object = json!({"metadata": {"name": "web", "generation": 2}, "spec": spec, "status": status});
    serde_json::from_value(object).unwrap()
}

fn set(wanted: i32, ready: i32) -> Arc<ReplicaSet> {
    let status = json!({
        "replicas": wanted, "readyReplicas": ready, "availableReplicas": ready, "terminatingReplicas": 1,
        "observedGeneration": 1,
    });
    let spec = json!({"replicas": wanted, "selector": {}});
    let object = json!({"metadata": {"name": "web-1"}, "spec": spec, "status": status});
    Arc::new(serde_json::from_value(object).unwrap())
}

fn looked_at(
    deployment: &Deployment,
    new: &Arc<ReplicaSet>,
    old: &[Arc<ReplicaSet>],
    now: Timestamp,
) -> DeploymentStatus {
    let sets = OwnedReplicaSets { new: Some(new), old };
    let mut status = count_replicas(deployment, &deployment.status.clone().unwrap_or_default(), sets, now);
    update_progress(deployment, &mut status, sets, now);
    status
}

fn progressing(status: &DeploymentStatus) -> (String, String) {
    let held = conditions::get_condition(status, PROGRESSING).unwrap();
    (held.status.clone(), held.reason.clone().unwrap())
}

fn is(status: &str, reason: &str) -> (String, String) {
    (status.to_owned(), reason.to_owned())
}

#[test]
fn pods_are_counted_over_all_sets() {
    let status = looked_at(&deployment(4, json!({})), &set(2, 1), &[set(3, 3), set(0, 0)], at(0));
    assert_eq!(status.replicas, Some(5));
    assert_eq!(status.updated_replicas, Some(2));
    assert_eq!(status.ready_replicas, Some(4));
    assert_eq!(status.available_replicas, Some(4));
    assert_eq!(status.unavailable_replicas, Some(1));
    assert_eq!(status.terminating_replicas, Some(3));
    assert_eq!(status.observed_generation, Some(2));
    let available = conditions::get_condition(&status, AVAILABLE).unwrap();
    assert_eq!((available.status.as_str(), available.reason.as_deref()), ("True", Some("MinimumReplicasAvailable")));
}

#[test]
fn too_few_are_not_available() {
    let status = looked_at(&deployment(4, json!({})), &set(4, 2), &[], at(0));
    let available = conditions::get_condition(&status, AVAILABLE).unwrap();
    assert_eq!((available.status.as_str(), available.reason.as_deref()), ("False", Some("MinimumReplicasUnavailable")));
}

#[test]
fn a_rollout_progresses_and_ends() {
    let mut deployment = deployment(2, json!({}));
    deployment.status = Some(looked_at(&deployment, &set(2, 1), &[set(1, 1)], at(0)));
    assert_eq!(progressing(deployment.status.as_ref().unwrap()), is("True", REPLICA_SET_UPDATED));
    let done = looked_at(&deployment, &set(2, 2), &[set(0, 0)], at(5));
    assert_eq!(progressing(&done), is("True", NEW_REPLICA_SET_AVAILABLE));
    let held = conditions::get_condition(&done, PROGRESSING).unwrap();
    assert_eq!(held.message.as_deref(), Some("ReplicaSet \"web-1\" has successfully progressed."));
    assert_eq!(held.last_transition_time, Some(Time(at(0))), "it was true before");
    assert_eq!(held.last_update_time, Some(Time(at(5))));
    assert_eq!(next_deadline_check(&deployment, &done, at(5)), None);
}

#[test]
fn a_rollout_that_does_not_move_runs_out_of_time() {
    let mut deployment = deployment(2, json!({}));
    deployment.status = Some(looked_at(&deployment, &set(2, 1), &[], at(0)));
    let waiting = looked_at(&deployment, &set(2, 1), &[], at(60));
    assert_eq!(progressing(&waiting), is("True", REPLICA_SET_UPDATED));
    assert_eq!(next_deadline_check(&deployment, &waiting, at(20)), Some(Duration::from_secs(40) + DEADLINE_MARGIN));
    let late = looked_at(&deployment, &set(2, 1), &[], at(61));
    assert_eq!(progressing(&late), is("False", PROGRESS_DEADLINE_EXCEEDED));
    assert_eq!(next_deadline_check(&deployment, &late, at(61)), None);
    deployment.status = Some(late);
    let better = looked_at(&deployment, &set(2, 2), &[], at(99));
    assert_eq!(progressing(&better), is("True", NEW_REPLICA_SET_AVAILABLE));
}

#[test]
fn a_pod_that_fails_later_is_no_rollout() {
    let mut deployment = deployment(2, json!({}));
    deployment.status = Some(looked_at(&deployment, &set(2, 2), &[], at(0)));
    let worse = looked_at(&deployment, &set(2, 1), &[], at(1000));
    assert_eq!(progressing(&worse), is("True", NEW_REPLICA_SET_AVAILABLE));
    assert_eq!(next_deadline_check(&deployment, &worse, at(1000)), None, "there is no deadline to wait for");
}

#[test]
fn without_a_deadline_nothing_is_said_of_progress() {
    let mut deployment = deployment(2, json!({}));
    deployment.spec.as_mut().unwrap().progress_deadline_seconds = Some(i32::MAX);
    let status = looked_at(&deployment, &set(2, 1), &[], at(0));
    assert!(conditions::get_condition(&status, PROGRESSING).is_none());
}

#[test]
fn the_failure_of_a_set_is_the_deployments() {
    let mut failing = set(2, 0);
    let condition = json!([{"type": REPLICA_FAILURE, "status": "True", "reason": "FailedCreate", "message": "no", "lastTransitionTime": START}]);
    Arc::get_mut(&mut failing).unwrap().status.as_mut().unwrap().conditions =
        serde_json::from_value(condition).unwrap();
    let mut deployment = deployment(2, json!({}));
    let status = looked_at(&deployment, &failing, &[], at(7));
    let failure = conditions::get_condition(&status, REPLICA_FAILURE).unwrap();
    assert_eq!((failure.reason.as_deref(), failure.message.as_deref()), (Some("FailedCreate"), Some("no")));
    assert_eq!(failure.last_update_time, Some(Time(at(0))));
    deployment.status = Some(status);
    assert!(conditions::get_condition(&looked_at(&deployment, &set(2, 2), &[], at(8)), REPLICA_FAILURE).is_none());
}
