//! Annotations and conditions as clusters have them.

use serde_json::json;

use super::*;

const CONTEXT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn meta(annotations: Value) -> ObjectMeta {
    let made = "2026-11-16T12:00:00Z";
    serde_json::from_value(json!({ "creationTimestamp": made, "generation": 2, "annotations": annotations })).unwrap()
}

#[test]
fn a_pod_took_from_its_making_until_it_was_ready() {
    let ready = |status| json!({"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": "2026-11-16T12:00:03Z"}]});
    let pod = meta(json!({ TRACEPARENT_ANNOTATION: CONTEXT }));
    let found = read_stamp("Pod", &pod, Some(&ready("True"))).unwrap();
    assert_eq!((found.duration, found.state, found.generation), (Some(3_000_000_000), ConvergencePhase::Converged, 2));
    assert_eq!(found.trace.unwrap().to_string(), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(found.span, Some(0xb7ad_6b71_6920_3331));
    let waiting = read_stamp("Pod", &pod, Some(&ready("False"))).unwrap();
    assert_eq!((waiting.duration, waiting.state), (None, ConvergencePhase::Converging));
    assert_eq!(
        read_stamp("Pod", &pod, None).unwrap().state,
        ConvergencePhase::Unknown,
        "nothing is known of how it fares"
    );
}

#[test]
fn a_pod_that_has_ended_is_not_on_its_way() {
    let ended = |phase: &str| {
        let container = |end: &str| json!({"restartCount": 0, "state": {"terminated": {"finishedAt": end}}});
        json!({"phase": phase, "containerStatuses": [container("2026-11-16T12:00:07Z"), container("2026-11-16T12:00:05Z")],
            "conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted", "lastTransitionTime": "2026-11-16T12:00:08Z"}]})
    };
    let pod = meta(json!({ TRACEPARENT_ANNOTATION: CONTEXT }));
    let told = |phase| read_stamp("Pod", &pod, Some(&ended(phase))).map(|it| (it.state, it.duration)).unwrap();
    assert_eq!(told("Succeeded"), (ConvergencePhase::Converged, Some(7_000_000_000)));
    assert_eq!(told("Failed"), (ConvergencePhase::Failed, None));
}

#[test]
fn when_a_pod_became_ready_again_is_not_how_long_it_took() {
    let ready = |at: &str, started: &str, restarts: u32| {
        let container = json!({"restartCount": restarts, "state": {"running": {"startedAt": started}}});
        let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": at});
        json!({"phase": "Running", "containerStatuses": [container], "conditions": [condition]})
    };
    let pod = meta(json!({ TRACEPARENT_ANNOTATION: CONTEXT }));
    let told = |status: Value| read_stamp("Pod", &pod, Some(&status)).map(|it| (it.state, it.duration)).unwrap();
    let soon = "2026-11-16T12:30:05Z";
    assert_eq!(
        told(ready(soon, "2026-11-16T12:30:00Z", 0)),
        (ConvergencePhase::Converged, Some(1_805_000_000_000)),
        "it waited"
    );
    assert_eq!(told(ready(soon, "2026-11-16T12:30:00Z", 1)), (ConvergencePhase::Converged, None), "it was restarted");
    assert_eq!(
        told(ready("2026-11-19T12:00:00Z", "2026-11-16T12:00:01Z", 0)),
        (ConvergencePhase::Converged, None),
        "days after"
    );
}

#[test]
fn a_deployment_took_from_its_change_until_it_was_rolled_out() {
    let status = |seen: i64| {
        json!({"observedGeneration": seen, "conditions": [
            {"type": "Available", "status": "True", "lastTransitionTime": "2026-11-16T12:00:01Z"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastUpdateTime": "2026-11-16T13:00:05Z"}]})
    };
    let changed = |generation: &str| {
        meta(
            json!({ TRACEPARENT_ANNOTATION: CONTEXT, CHANGED_ANNOTATION: "2026-11-16T13:00:00.5Z", GENERATION_ANNOTATION: generation }),
        )
    };
    assert_eq!(read_stamp("Deployment", &changed("2"), Some(&status(2))).unwrap().duration, Some(4_500_000_000));
    let unseen = read_stamp("Deployment", &changed("2"), Some(&status(1))).unwrap();
    assert_eq!((unseen.duration, unseen.state), (None, ConvergencePhase::Converging));
    let earlier = read_stamp("Deployment", &changed("1"), Some(&status(2))).unwrap();
    assert_eq!((earlier.generation, earlier.duration, earlier.state), (1, None, ConvergencePhase::Unknown));
}

#[test]
fn a_deployment_that_was_only_scaled_has_converged_when_its_pods_are_there() {
    let status = |available: i64, missing: Option<i64>| {
        json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": available, "unavailableReplicas": missing,
            "conditions": [{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "lastUpdateTime": "2026-11-16T12:00:05Z"}]})
    };
    let scaled = meta(
        json!({ TRACEPARENT_ANNOTATION: CONTEXT, CHANGED_ANNOTATION: "2026-11-16T13:00:00Z", GENERATION_ANNOTATION: "2" }),
    );
    let state =
        |status: Value| read_stamp("Deployment", &scaled, Some(&status)).map(|it| (it.duration, it.state)).unwrap();
    assert_eq!(state(status(1, Some(2))), (None, ConvergencePhase::Converging));
    assert_eq!(
        state(status(3, None)),
        (None, ConvergencePhase::Converged),
        "the time of the last rollout is not its own"
    );
}

#[test]
fn what_is_no_context_names_no_trace() {
    let zero = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
    for bad in
        ["", "00", "00-0af7-b7ad6b7169203331-01", zero, "00-0af7651916cd43dd8448eb211c80319c-+7ad6b7169203331-01"]
    {
        assert_eq!(read_stamp("Pod", &meta(json!({ TRACEPARENT_ANNOTATION: bad })), None), None, "{bad}");
    }
    assert_eq!(read_stamp("Pod", &meta(json!({})), None), None);
}

#[test]
fn a_time_that_no_clock_shows_is_none() {
    for changed in ["2600-01-01T00:00:00Z", "9999-12-30T00:00:00Z", "1969-12-31T00:00:00Z"] {
        assert_eq!(
            read_stamp("Head", &meta(json!({ TRACEPARENT_ANNOTATION: CONTEXT, CHANGED_ANNOTATION: changed })), None),
            None,
            "{changed}"
        );
    }
}
