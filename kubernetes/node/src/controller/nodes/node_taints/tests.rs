use serde_json::Value;

use super::*;

/// The keys of the desired taints, if they differ.
fn taints(conditions: &[(&str, &str)], mut spec: Value, held: &[(&str, &str)]) -> Option<Vec<String>> {
    let conditions: Vec<Value> =
        conditions.iter().map(|(kind, status)| json!({ "type": kind, "status": status })).collect();
    let held: Vec<Value> = held.iter().map(|(key, effect)| json!({ "key": key, "effect": effect })).collect();
    spec["taints"] = held.into();
    let node = json!({ "metadata": { "name": "n" }, "spec": spec, "status": { "conditions": conditions } });
    let changed = updated_taints(&serde_json::from_value(node).unwrap());
    changed.map(|taints| taints.into_iter().map(|taint| taint.key).collect())
}

#[test]
fn a_node_that_is_ready_loses_the_taint_that_it_came_with_and_no_other() {
    let held = [(NOT_READY, NO_SCHEDULE), ("mine", NO_SCHEDULE), (NOT_READY, "NoExecute")];
    assert_eq!(taints(&[("Ready", "True")], json!({}), &held), Some(vec!["mine".into(), NOT_READY.into()]));
    assert_eq!(taints(&[("Ready", "True")], json!({}), &[("mine", NO_SCHEDULE)]), None);
}

#[test]
fn a_node_that_does_not_say_that_it_is_ready_keeps_it() {
    assert_eq!(taints(&[], json!({}), &[(NOT_READY, NO_SCHEDULE)]), None);
    assert_eq!(taints(&[("Ready", "False")], json!({}), &[(NOT_READY, NO_SCHEDULE)]), None);
    let unknown = taints(&[("Ready", "Unknown")], json!({}), &[(NOT_READY, NO_SCHEDULE)]);
    assert_eq!(unknown, Some(vec![UNREACHABLE.to_owned()]));
}

#[test]
fn pressure_and_cordons_are_taints() {
    let conditions = [("Ready", "True"), ("DiskPressure", "True"), ("MemoryPressure", "False")];
    let wanted = vec!["node.kubernetes.io/disk-pressure".to_owned(), UNSCHEDULABLE.to_owned()];
    assert_eq!(taints(&conditions, json!({ "unschedulable": true }), &[]), Some(wanted));
}
