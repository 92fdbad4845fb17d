use serde_json::{Value, json};

use super::*;
use crate::key::NamespacedKey;

fn node(name: &str, cpu: &str, mut more: Value) -> Arc<Node> {
    more["metadata"]["name"] = name.into();
    more["status"] = json!({ "allocatable": { "cpu": cpu, "memory": "1Gi", "pods": "3" } });
    Arc::new(serde_json::from_value(more).unwrap())
}

fn pod(name: &str, cpu: &str, mut spec: Value) -> Arc<Pod> {
    spec["containers"] = json!([{ "name": "c", "resources": { "requests": { "cpu": cpu } } }]);
    let owner = json!({ "apiVersion": "v1", "kind": "K", "name": "o", "uid": "o", "controller": true });
    let metadata = json!({ "name": name, "uid": name, "ownerReferences": [owner] });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec })).unwrap())
}

fn filled(on: &[(&str, &str)]) -> SchedulerCache {
    let mut ledger = SchedulerCache::default();
    for (index, (node, cpu)) in on.iter().enumerate() {
        let name = format!("old-{index}");
        ledger.assume_pod(NamespacedKey::new("", &name), &pod(&name, cpu, json!({})), node);
    }
    ledger
}

fn placed(pod: &Pod, nodes: &[Arc<Node>], ledger: &SchedulerCache) -> Result<String, String> {
    select_node(pod, &NodeInfo::snapshot(nodes, ledger), &[]).map_err(|why| why.to_string())
}

#[test]
fn room_is_what_pods_do_not_hold() {
    let nodes = [node("one", "1", json!({})), node("two", "2", json!({}))];
    let ledger = filled(&[("one", "500m"), ("two", "1500m")]);
    assert_eq!(placed(&pod("p", "500m", json!({})), &nodes[..1], &ledger), Ok("one".into()));
    let why = "0/2 nodes are available: 2 Insufficient cpu.".to_owned();
    assert_eq!(placed(&pod("p", "501m", json!({})), &nodes, &ledger), Err(why));
}

#[test]
fn every_reason_is_told_with_the_number_of_nodes() {
    let nodes = [
        node("cordoned", "1", json!({ "spec": { "unschedulable": true } })),
        node("tainted", "1", json!({ "spec": { "taints": [{ "key": "k", "effect": "NoExecute" }] } })),
        node("full", "1", json!({ "metadata": { "labels": { "disk": "ssd" } } })),
        node("other", "1", json!({})),
        node("another", "1", json!({})),
    ];
    let ledger = filled(&[("full", "1"), ("full", "0"), ("full", "0")]);
    let asked = pod("p", "1", json!({ "nodeSelector": { "disk": "ssd" } }));
    let why = "0/5 nodes are available: 1 Insufficient cpu, 1 Too many pods, 1 node(s) had untolerated taint(s), \
               1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector.";
    assert_eq!(placed(&asked, &nodes, &ledger), Err(why.to_owned()));
    assert_eq!(placed(&asked, &[], &ledger), Err("no nodes available to schedule pods".to_owned()));
}

#[test]
fn a_pod_that_names_its_node_gets_no_other() {
    let name = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["two"] }] });
    let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [name] } });
    let asked = pod("p", "1", json!({ "affinity": { "nodeAffinity": required } }));
    let nodes = [node("one", "1", json!({})), node("two", "1", json!({}))];
    assert_eq!(placed(&asked, &nodes, &SchedulerCache::default()), Ok("two".into()));
    let why = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity].";
    assert_eq!(placed(&asked, &nodes, &filled(&[("two", "1")])), Err(why.into()));
}

#[test]
fn pods_of_one_owner_are_spread() {
    let nodes = [node("one", "4", json!({})), node("two", "4", json!({}))];
    let mut ledger = SchedulerCache::default();
    let mut seen = Vec::new();
    for index in 0..4 {
        let name = format!("p{index}");
        let pod = pod(&format!("p{index}"), "0", json!({}));
        let node = placed(&pod, &nodes, &ledger).unwrap();
        ledger.assume_pod(NamespacedKey::new("", name), &pod, &node);
        seen.push(node);
    }
    assert_eq!(seen, ["one", "two", "one", "two"]);
}

#[test]
fn the_emptier_the_preferred_and_the_untainted_node_is_better() {
    let tainted = json!({ "spec": { "taints": [{ "key": "k", "effect": "PreferNoSchedule" }] } });
    let nodes = [node("small", "1", json!({})), node("large", "4", json!({})), node("tainted", "64", tainted)];
    let best = |spec| placed(&pod("p", "500m", spec), &nodes, &SchedulerCache::default());
    assert_eq!(best(json!({})), Ok("large".into()));
    let wanted = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["small"] }] });
    let preferred = json!([{ "weight": 1, "preference": wanted }]);
    let affinity = json!({ "preferredDuringSchedulingIgnoredDuringExecution": preferred });
    assert_eq!(best(json!({ "affinity": { "nodeAffinity": affinity } })), Ok("small".into()));
}
