use serde_json::json;

use super::compare::{contains, overlay};

#[test]
fn what_others_added_is_no_difference() {
    let desired = json!({"spec": {"ports": [{"name": "otlp", "port": 4317}], "selector": {"a": "b"}}});
    let live = json!({
        "metadata": {"uid": "1"},
        "spec": {
            "clusterIP": "10.0.0.1",
            "ports": [{"name": "mesh", "port": 1}, {"name": "otlp", "port": 4317, "protocol": "TCP"}],
            "selector": {"a": "b"},
        },
    });
    assert!(contains(&live, &desired));
}

#[test]
fn what_others_changed_is_a_difference() {
    let changed = |live: serde_json::Value, desired: serde_json::Value| !contains(&live, &desired);
    assert!(changed(json!({"a": 1}), json!({"a": 2})));
    assert!(changed(json!({}), json!({"a": 2})));
    assert!(changed(json!({"args": ["x", "y"]}), json!({"args": ["x"]})), "an argument more");
    let more = json!({"rules": [{"verbs": ["get"]}, {"verbs": ["*"]}]});
    assert!(changed(more, json!({"rules": [{"verbs": ["get"]}]})), "a rule more is a right more");
    assert!(changed(json!({"ports": [{"port": 2}]}), json!({"ports": [{"port": 1}]})));
}

#[test]
fn what_the_api_server_writes_in_its_own_way_is_no_difference() {
    let same = |live: serde_json::Value, desired: serde_json::Value| contains(&live, &desired);
    assert!(same(json!({"cpu": "100m", "memory": "1Gi"}), json!({"cpu": "0.1", "memory": "1024Mi"})));
    assert!(!same(json!({"cpu": "100m"}), json!({"cpu": "0.2"})));
    assert!(same(json!({"volumes": [{"name": "x"}]}), json!({"volumes": [{"name": "x", "emptyDir": {}}]})));
    assert!(same(json!({}), json!({"list": [], "null": null})));
    assert!(!same(json!({"text": "1.2.3"}), json!({"text": "1.2.4"})), "not every text is a number");
}

#[test]
fn what_is_replaced_keeps_what_others_noted_on_it() {
    let mut base = json!({
        "metadata": {"annotations": {"theirs": "1"}, "ownerReferences": [{"uid": "old"}]},
        "data": {"old": "1"},
    });
    overlay(
        &mut base,
        &json!({
            "metadata": {"annotations": {"ours": "2"}, "ownerReferences": [{"uid": "new"}]},
            "data": {"new": "2"},
        }),
    );
    let expected = json!({
        "metadata": {"annotations": {"theirs": "1", "ours": "2"}, "ownerReferences": [{"uid": "new"}]},
        "data": {"new": "2"},
    });
    assert_eq!(base, expected);
}
