use jiff::Timestamp;
use k8s_openapi::api::{
    apps::v1::{DaemonSet, DaemonSetStatus},
    core::v1::Node,
};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::*;
use crate::controller::revision;

const NEW: &str = "new";
const OLD: &str = "old";

#[derive(Clone, Copy, PartialEq)]
enum Is {
    Well,
    Sick,
    Going,
    Failed,
}

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

fn node(name: &str, spec: Value) -> Arc<Node> {
    Arc::new(
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"name": name}}, "spec": spec})).unwrap(),
    )
}

fn nodes(names: &[&str]) -> Vec<Arc<Node>> {
    names.iter().map(|name| node(name, json!({}))).collect()
}

fn pod(node: &str, revision: &str, is: Is) -> Arc<Pod> {
    let ready = if matches!(is, Is::Well | Is::Going) { "True" } else { "False" };
    let mut pod = json!({
        "metadata": {
            "name": format!("{node}-{revision}"),
            "labels": {(revision::POD_REVISION_HASH_LABEL): revision},
            "creationTimestamp": if revision == OLD { "2026-01-01T00:00:00Z" } else { "2026-01-01T00:00:10Z" },
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {
            "phase": if is == Is::Failed { "Failed" } else { "Running" },
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    });
    if is == Is::Going {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z".into();
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn set(rolling: Value, pod: Value) -> DaemonSet {
    let mut spec = json!({"containers": []});
    spec.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
    let set = json!({
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {},
            "template": {"spec": spec},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
        },
    });
    serde_json::from_value(set).unwrap()
}

fn unavailable(max: impl Into<Value>) -> DaemonSet {
    set(json!({"maxUnavailable": max.into(), "maxSurge": 0}), json!({}))
}

fn surge(max: impl Into<Value>) -> DaemonSet {
    set(json!({"maxUnavailable": 0, "maxSurge": max.into()}), json!({}))
}

/// The plan as text.
fn steps(set: &DaemonSet, nodes: &[Arc<Node>], pods: &[Arc<Pod>]) -> Vec<String> {
    let plan = DaemonSetSnapshot::new(set, NEW, nodes, pods, now()).unwrap().plan();
    let made = plan.create.iter().map(|node| format!("make {node}"));
    let deleted = plan.delete.iter().map(|pod| format!("delete {}", pod.name_any()));
    let ended = plan.ended.iter().map(|pod| format!("ended {}", pod.name_any()));
    made.chain(deleted).chain(ended).collect()
}

#[test]
fn every_node_gets_one_pod() {
    let set = unavailable(1);
    let nodes = nodes(&["a", "b"]);
    assert_eq!(steps(&set, &nodes, &[]), ["make a", "make b"]);
    assert_eq!(steps(&set, &nodes, &[pod("a", NEW, Is::Sick)]), ["make b"]);
    let both = [pod("a", NEW, Is::Sick), pod("a", OLD, Is::Well), pod("b", NEW, Is::Going)];
    assert_eq!(
        steps(&set, &nodes, &both),
        ["delete a-new"],
        "the oldest stays, and one that goes is not replaced before"
    );
    assert_eq!(steps(&set, &nodes, &[pod("a", NEW, Is::Failed), pod("b", NEW, Is::Well)]), ["ended a-new"]);
}

#[test]
fn only_nodes_that_fit_get_one() {
    let taint = |effect: &str| json!({"taints": [{"key": "k", "effect": effect}]});
    let nodes = [
        node("a", json!({})),
        node("b", taint("NoSchedule")),
        node("c", taint("NoExecute")),
        node(
            "d",
            json!({"taints": [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}], "unschedulable": true}),
        ),
    ];
    let all = unavailable(1);
    assert_eq!(steps(&all, &nodes, &[]), ["make a", "make d"]);
    let everywhere = ["a", "b", "c", "d"].map(|node| pod(node, NEW, Is::Well));
    assert_eq!(steps(&all, &nodes, &everywhere), ["delete c-new"], "a taint of NoSchedule drives nobody away");
    let selects = set(json!({}), json!({"nodeSelector": {"name": "a"}}));
    assert_eq!(steps(&selects, &nodes, &everywhere), ["delete b-new", "delete c-new", "delete d-new"]);
    let tolerates = set(json!({}), json!({"tolerations": [{"operator": "Exists"}]}));
    assert_eq!(steps(&tolerates, &nodes, &[]), ["make a", "make b", "make c", "make d"]);
    assert_eq!(steps(&set(json!({}), json!({"nodeName": "a"})), &nodes, &[]), ["make a"]);
}

#[test]
fn a_pod_that_waits_for_a_node_that_is_gone_goes() {
    let mut waiting = crate::controller::daemonset::pod::new_pod(&unavailable(1), NEW, "gone").unwrap();
    waiting.metadata.name = Some("waiting".to_owned());
    assert_eq!(steps(&unavailable(1), &[], &[Arc::new(waiting)]), ["delete waiting"]);
    assert_eq!(
        steps(&unavailable(1), &[], &[pod("gone", NEW, Is::Well)]),
        [""; 0],
        "others find those that have a node"
    );
}

#[test]
fn an_update_deletes_as_many_as_may_be_unavailable() {
    let set = unavailable("50%");
    let nodes = nodes(&["a", "b", "c", "d"]);
    let old = ["a", "b", "c", "d"].map(|node| pod(node, OLD, Is::Well));
    assert_eq!(steps(&set, &nodes, &old), ["delete a-old", "delete b-old"]);
    let mut some = old.clone();
    some[3] = pod("d", OLD, Is::Sick);
    assert_eq!(steps(&set, &nodes, &some), ["delete d-old", "delete a-old"]);
    some[3] = pod("d", NEW, Is::Sick);
    assert_eq!(steps(&set, &nodes, &some), ["delete a-old"]);
    some[2] = pod("c", OLD, Is::Going);
    assert_eq!(steps(&set, &nodes, &some), [""; 0]);
}

#[test]
fn a_surge_makes_the_new_one_first() {
    let set = surge(1);
    let nodes = nodes(&["a", "b"]);
    let mut pods = vec![pod("a", OLD, Is::Well), pod("b", OLD, Is::Well)];
    assert_eq!(steps(&set, &nodes, &pods), ["make a"]);
    pods.push(pod("a", NEW, Is::Sick));
    assert_eq!(steps(&set, &nodes, &pods), [""; 0]);
    pods[2] = pod("a", NEW, Is::Well);
    assert_eq!(steps(&set, &nodes, &pods), ["delete a-old"]);
    pods[0] = pod("a", OLD, Is::Going);
    assert_eq!(steps(&set, &nodes, &pods), ["make b"]);
    pods[1] = pod("b", OLD, Is::Sick);
    pods[2] = pod("a", NEW, Is::Sick);
    assert_eq!(steps(&set, &nodes, &pods), ["make b"], "what is unavailable anyway is replaced");
    pods.push(pod("b", NEW, Is::Sick));
    assert_eq!(steps(&set, &nodes, &pods), ["delete b-old"]);
}

#[test]
fn on_delete_nothing_is_updated() {
    let mut set = unavailable(1);
    set.spec.as_mut().unwrap().update_strategy.as_mut().unwrap().type_ = Some("OnDelete".to_owned());
    assert_eq!(steps(&set, &nodes(&["a"]), &[pod("a", OLD, Is::Well)]), [""; 0]);
}

#[test]
fn the_status_counts_nodes() {
    let mut nodes = nodes(&["a", "b", "c"]);
    nodes.push(node("d", json!({"taints": [{"key": "k", "effect": "NoSchedule"}]})));
    let pods = [pod("a", NEW, Is::Well), pod("b", OLD, Is::Sick), pod("d", NEW, Is::Well)];
    let set = unavailable(1);
    let status = DaemonSetSnapshot::new(&set, NEW, &nodes, &pods, now()).unwrap().status(DaemonSetStatus::default());
    let expected = DaemonSetStatus {
        desired_number_scheduled: 3,
        current_number_scheduled: 2,
        number_misscheduled: 1,
        number_ready: 1,
        updated_number_scheduled: Some(1),
        number_available: Some(1),
        number_unavailable: Some(2),
        ..DaemonSetStatus::default()
    };
    assert_eq!(status, expected);
}
