use serde_json::{Value, json};

use super::*;

fn node() -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": "one", "labels": { "disk": "ssd", "size": "8" } },
        "spec": { "taints": [{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }] },
    }))
    .unwrap()
}

fn spec(mut spec: Value) -> PodSpec {
    spec["containers"] = json!([]);
    serde_json::from_value(spec).unwrap()
}

fn required(terms: Value) -> PodSpec {
    let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
    spec(json!({ "affinity": { "nodeAffinity": required } }))
}

fn wants(key: &str, operator: &str, values: &[&str]) -> bool {
    let wanted = json!({ "key": key, "operator": operator, "values": values });
    matches_node_affinity(&required(json!([{ "matchExpressions": [wanted] }])), &node())
}

#[test]
fn labels_are_compared_as_each_operator_says() {
    assert!(wants("disk", "In", &["hdd", "ssd"]) && !wants("disk", "In", &["hdd"]) && !wants("colour", "In", &["red"]));
    assert!(
        wants("disk", "NotIn", &["hdd"]) && !wants("disk", "NotIn", &["ssd"]) && wants("colour", "NotIn", &["red"])
    );
    assert!(wants("disk", "Exists", &[]) && !wants("colour", "Exists", &[]));
    assert!(wants("colour", "DoesNotExist", &[]) && !wants("disk", "DoesNotExist", &[]));
    assert!(wants("size", "Gt", &["7"]) && !wants("size", "Gt", &["8"]) && wants("size", "Lt", &["9"]));
    assert!(!wants("disk", "Gt", &["1"]) && !wants("colour", "Lt", &["1"]));
}

#[test]
fn one_term_is_enough_and_an_empty_one_selects_nothing() {
    let hdd = json!({ "matchExpressions": [{ "key": "disk", "operator": "In", "values": ["hdd"] }] });
    let name = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["one"] }] });
    assert!(matches_node_affinity(&required(json!([hdd, name])), &node()));
    assert!(!matches_node_affinity(&required(json!([hdd])), &node()));
    assert!(!matches_node_affinity(&required(json!([{}])), &node()));
    assert!(!matches_node_affinity(&required(json!([])), &node()));
    assert_eq!(named_nodes(&required(json!([name]))), Some(BTreeSet::from(["one"])));
    assert_eq!(named_nodes(&required(json!([hdd, name]))), None);
    assert_eq!(named_nodes(&spec(json!({}))), None);
}

#[test]
fn the_node_selector_holds_as_a_whole() {
    assert!(matches_node_affinity(&spec(json!({ "nodeSelector": { "disk": "ssd", "size": "8" } })), &node()));
    assert!(!matches_node_affinity(&spec(json!({ "nodeSelector": { "disk": "ssd", "size": "9" } })), &node()));
}

#[test]
fn taints_keep_away_who_does_not_tolerate_them() {
    let stays_away = |tolerations: Value| {
        let spec = spec(json!({ "tolerations": tolerations }));
        untolerated(&spec, &node(), &["NoSchedule"]).count() == 1
    };
    assert!(stays_away(json!([])));
    assert!(stays_away(json!([{ "key": "gpu", "value": "no" }])));
    assert!(stays_away(json!([{ "key": "gpu", "operator": "Exists", "effect": "NoExecute" }])));
    assert!(!stays_away(json!([{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }])));
    assert!(!stays_away(json!([{ "key": "gpu", "operator": "Exists" }])));
    assert!(!stays_away(json!([{ "operator": "Exists" }])));
    assert_eq!(untolerated(&spec(json!({})), &node(), &["NoExecute"]).count(), 0);
}

#[test]
fn a_cordoned_node_takes_only_who_tolerates_it() {
    let mut node = node();
    node.spec.as_mut().unwrap().unschedulable = Some(true);
    assert!(is_cordoned(&spec(json!({})), &node));
    assert!(!is_cordoned(
        &spec(json!({ "tolerations": [{ "key": UNSCHEDULABLE_TAINT, "operator": "Exists" }] })),
        &node
    ));
}

#[test]
fn preferences_add_up() {
    let prefers = |key, weight| {
        let wanted = json!({ "matchExpressions": [{ "key": key, "operator": "Exists" }] });
        json!({ "weight": weight, "preference": wanted })
    };
    let terms = json!([prefers("disk", 3), prefers("colour", 50), prefers("size", 4)]);
    let preferred = json!({ "preferredDuringSchedulingIgnoredDuringExecution": terms });
    assert_eq!(node_affinity_score(&spec(json!({ "affinity": { "nodeAffinity": preferred } })), &node()), 7);
}

#[test]
fn the_shortest_toleration_says_how_long_a_pod_may_stay() {
    let mut node = node();
    let stay =
        |node: &Node, tolerations: Value| remaining_toleration(&spec(json!({ "tolerations": tolerations })), node);
    assert_eq!(stay(&node, json!([])), None);
    let taints = json!([{ "key": "a", "effect": "NoExecute" }, { "key": "b", "effect": "NoExecute" }]);
    node.spec.as_mut().unwrap().taints = serde_json::from_value(taints).unwrap();
    let tolerate = |key: &str, seconds: Option<i64>| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds });
    assert_eq!(stay(&node, json!([tolerate("a", None)])), Some(Duration::ZERO));
    assert_eq!(stay(&node, json!([tolerate("a", None), tolerate("b", None)])), None);
    assert_eq!(stay(&node, json!([tolerate("a", None), tolerate("b", Some(7))])), Some(Duration::from_secs(7)));
    assert_eq!(stay(&node, json!([tolerate("a", Some(3)), tolerate("b", Some(7))])), Some(Duration::from_secs(3)));
    assert_eq!(stay(&node, json!([tolerate("a", Some(-3)), tolerate("b", None)])), Some(Duration::ZERO));
}
