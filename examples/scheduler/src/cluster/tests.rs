use serde_json::json;

use super::*;

fn node(name: &str, cpu: &str) -> Node {
    serde_json::from_value(json!({ "metadata": { "name": name }, "status": { "allocatable": { "cpu": cpu } } }))
        .unwrap()
}

fn pod(name: &str, uid: &str, node: Option<&str>, phase: &str) -> Pod {
    let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": "100m" } } }]);
    let pod = json!({
        "metadata": { "name": name, "namespace": "default", "uid": uid },
        "spec": { "schedulerName": "demo", "nodeName": node, "containers": containers },
        "status": { "phase": phase },
    });
    serde_json::from_value(pod).unwrap()
}

fn held(cluster: &ClusterModel) -> i64 {
    cluster.node_allocations().iter().map(|place| place.requested.get("cpu")).sum()
}

#[test]
fn a_pod_that_was_bound_just_now_holds_its_room() {
    let mut cluster = ClusterModel::default();
    assert!(cluster.update_node(node("one", "1")), "a node more is news");
    assert!(!cluster.update_node(node("one", "1")), "the same again is not");
    assert!(cluster.update_node(node("one", "2")));
    let waiting = pod("web", "1", None, "Pending");
    cluster.assume_pod(&waiting, "one");
    assert!(!cluster.update_pod(&waiting), "the watch is behind");
    assert!(cluster.is_assigned(&waiting) && held(&cluster) == 100);
    cluster.forget_pod(&waiting);
    assert_eq!(held(&cluster), 0);
    cluster.assume_pod(&waiting, "one");
    assert!(!cluster.update_pod(&pod("web", "1", Some("one"), "Running")));
    cluster.forget_pod(&waiting);
    assert_eq!(held(&cluster), 100, "what the watch told is so");
}

#[test]
fn who_ends_or_goes_or_comes_again_gives_up_its_room() {
    let mut cluster = ClusterModel::default();
    cluster.update_node(node("one", "1"));
    cluster.update_pod(&pod("web", "1", Some("one"), "Running"));
    assert!(cluster.update_pod(&pod("web", "1", Some("one"), "Succeeded")));
    cluster.update_pod(&pod("web", "2", Some("one"), "Running"));
    assert!(cluster.update_pod(&pod("web", "3", None, "Pending")), "another of the same name");
    assert_eq!(held(&cluster), 0);
    cluster.update_pod(&pod("web", "3", Some("one"), "Running"));
    assert!(cluster.remove_pod(&pod("web", "3", Some("one"), "Running")));
    cluster.remove_node("one");
    assert!(cluster.node_allocations().is_empty());
}

#[test]
fn only_pods_that_name_the_scheduler_and_have_no_node_wait_for_it() {
    assert!(is_pending_for(&pod("web", "1", None, "Pending"), "demo"));
    assert!(!is_pending_for(&pod("web", "1", None, "Pending"), "other"));
    assert!(!is_pending_for(&pod("web", "1", Some("one"), "Pending"), "demo"));
    assert!(!is_pending_for(&pod("web", "1", None, "Failed"), "demo"));
    let mut gated = pod("web", "1", None, "Pending");
    gated.spec.as_mut().unwrap().scheduling_gates = Some(vec![serde_json::from_value(json!({ "name": "x" })).unwrap()]);
    assert!(!is_pending_for(&gated, "demo"));
}
