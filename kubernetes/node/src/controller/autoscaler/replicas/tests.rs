use serde_json::{Value, json};

use super::*;

const WINDOW: Duration = Duration::from_secs(10);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn rules() -> CalculationRules {
    CalculationRules {
        tolerated_ratios: (0.9, 1.1),
        cpu_initialization: Duration::from_secs(300),
        readiness_delay: Duration::from_secs(30),
        now: at(1000),
    }
}

/// A pod that started long ago and has been ready since.
fn pod(request: &str) -> Value {
    let container = json!({ "name": "c", "resources": { "requests": { "cpu": request, "memory": "1000" } } });
    let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": at(1) });
    json!({
        "metadata": { "name": "p" },
        "spec": { "containers": [container] },
        "status": { "phase": "Running", "startTime": at(0), "conditions": [ready] },
    })
}

fn with(mut pod: Value, path: &str, value: Value) -> Value {
    *pod.pointer_mut(path).unwrap() = value;
    pod
}

fn unready(started: i64, since: i64) -> Value {
    let pod = with(pod("100m"), "/status/startTime", json!(at(started)));
    let ready = json!({ "type": "Ready", "status": "False", "lastTransitionTime": at(since) });
    with(pod, "/status/conditions/0", ready)
}

fn ask(goal: UsageTarget, pods: &[(Value, Option<i64>)], current: i32) -> Result<ReplicaProposal, String> {
    ask_of(&ResourceMetric { resource: CPU_RESOURCE, container: None, target: goal }, pods, current)
}

fn ask_of(metric: &ResourceMetric<'_>, pods: &[(Value, Option<i64>)], current: i32) -> Result<ReplicaProposal, String> {
    let pods: Vec<(Pod, Option<i64>)> =
        pods.iter().map(|(pod, used)| (serde_json::from_value(pod.clone()).unwrap(), *used)).collect();
    let seen: Vec<PodMeasurement<'_>> =
        pods.iter().map(|(pod, used)| PodMeasurement { pod, used: used.map(|used| (used, WINDOW)) }).collect();
    propose_replicas(metric, &rules(), &seen, current)
}

/// Pods that request 100m and use these amounts.
fn using(used: &[i64]) -> Vec<(Value, Option<i64>)> {
    used.iter().map(|used| (pod("100m"), Some(*used))).collect()
}

#[test]
fn replicas_follow_the_ratio_of_use_to_goal() {
    let half = UsageTarget::Utilization(50);
    let got = ask(half, &using(&[100, 90, 80]), 3).unwrap();
    assert_eq!(got, ReplicaProposal { replicas: 6, utilization: Some(90), average: 90 });
    assert_eq!(ask(half, &using(&[10, 20, 30]), 3).unwrap().replicas, 2);
    let got = ask(UsageTarget::Value(45), &using(&[100, 90, 80]), 3).unwrap();
    assert_eq!(got, ReplicaProposal { replicas: 6, utilization: None, average: 90 });
}

#[test]
fn small_differences_change_nothing() {
    for used in [45, 50, 55] {
        assert_eq!(ask(UsageTarget::Utilization(50), &using(&[used, used]), 2).unwrap().replicas, 2, "{used}");
    }
    assert_eq!(ask(UsageTarget::Utilization(50), &using(&[56, 56]), 2).unwrap().replicas, 3);
}

#[test]
fn a_pod_without_measurement_never_makes_the_change_larger() {
    let mut pods = using(&[100, 100]);
    pods.push((pod("100m"), None));
    // 200 of 300 with nothing for the third: 66 %, not 100 %.
    assert_eq!(ask(UsageTarget::Utilization(50), &pods, 3).unwrap().replicas, 4);
    let mut pods = using(&[10, 10]);
    pods.push((pod("100m"), None));
    // The third counts as 100 %: 40 % in all.
    assert_eq!(ask(UsageTarget::Utilization(60), &pods, 3).unwrap().replicas, 2);
    assert_eq!(ask(UsageTarget::Utilization(30), &pods, 3).unwrap().replicas, 3, "it would turn the other way");
    assert_eq!(ask(UsageTarget::Value(60), &pods, 3).unwrap().replicas, 2);
}

#[test]
fn pods_that_are_not_ready_yet_count_only_against_more() {
    let starting = (unready(990, 990), Some(400));
    let mut pods = using(&[100]);
    pods.push(starting.clone());
    assert_eq!(ask(UsageTarget::Utilization(50), &pods, 2).unwrap().replicas, 2, "100 of 200 is the goal");
    let mut pods = using(&[10]);
    pods.push(starting);
    assert_eq!(ask(UsageTarget::Utilization(50), &pods, 2).unwrap().replicas, 1);
}

#[test]
fn readiness_is_judged_by_age() {
    let is_unready = |pod: Value| is_unready(&serde_json::from_value(pod).unwrap(), WINDOW, &rules());
    assert!(!is_unready(pod("1")));
    assert!(is_unready(unready(900, 950)), "young and not ready");
    assert!(is_unready(unready(0, 20)), "never was ready");
    assert!(!is_unready(unready(0, 900)), "was ready for long");
    let young = |since| {
        let ready = json!({ "type": "Ready", "status": "True", "lastTransitionTime": at(since) });
        with(with(pod("1"), "/status/startTime", json!(at(900))), "/status/conditions/0", ready)
    };
    assert!(is_unready(young(995)), "what was measured is from before it was ready");
    assert!(!is_unready(young(985)));
    assert!(is_unready(with(pod("1"), "/status/conditions", json!([]))));
}

#[test]
fn pods_on_their_way_out_do_not_count() {
    let mut pods = using(&[100]);
    pods.push((with(pod("100m"), "/status/phase", json!("Failed")), Some(0)));
    let mut going = pod("100m");
    going["metadata"]["deletionTimestamp"] = json!(at(1000));
    pods.push((going, Some(0)));
    assert_eq!(ask(UsageTarget::Utilization(50), &pods, 1).unwrap().replicas, 2);
}

#[test]
fn what_cannot_be_told_is_said() {
    let goal = UsageTarget::Utilization(50);
    let none = "unable to get metrics for resource cpu: no metrics returned from resource metrics API";
    assert_eq!(ask(goal, &[], 1).unwrap_err(), none);
    assert_eq!(ask(goal, &[(pod("1"), None)], 1).unwrap_err(), none);
    let unready = "did not receive metrics for targeted pods (pods might be unready)";
    assert_eq!(ask(goal, &[(self::unready(990, 990), Some(1))], 1).unwrap_err(), unready);
    let bare = with(pod("1"), "/spec/containers/0/resources", json!({}));
    let missing = "missing request for cpu in container c of Pod p";
    assert_eq!(ask(goal, &[(bare.clone(), Some(1))], 1).unwrap_err(), missing);
    assert_eq!(ask(UsageTarget::Value(1000), &[(bare, Some(1000))], 1).unwrap().replicas, 1);
    let other = ResourceMetric { resource: CPU_RESOURCE, container: Some("d"), target: goal };
    assert_eq!(ask_of(&other, &[(pod("1"), Some(1))], 1).unwrap_err(), "container d not found in Pod p");
    assert_eq!(ask(goal, &[(pod("0"), Some(1))], 1).unwrap_err(), "no metrics returned matched known pods");
}

#[test]
fn memory_counts_as_soon_as_it_is_known() {
    let metric = ResourceMetric { resource: "memory", container: Some("c"), target: UsageTarget::Utilization(50) };
    let got = ask_of(&metric, &[(unready(990, 990), Some(1_000_000))], 1).unwrap();
    assert_eq!(got, ReplicaProposal { replicas: 2, utilization: Some(100), average: 1_000_000 });
}
