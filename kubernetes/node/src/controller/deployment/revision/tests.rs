use serde_json::{Value, json};

use super::*;

fn set(annotations: Value) -> ReplicaSet {
    serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
}

fn deployment(annotations: Value) -> Deployment {
    serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap()
}

fn changes(set: &ReplicaSet, deployment: &Deployment, highest: i64) -> Value {
    serde_json::to_value(newest_annotations(set, deployment, highest)).unwrap()
}

#[test]
fn the_newest_has_the_highest_number() {
    let plain = deployment(json!({}));
    assert_eq!(changes(&set(json!({})), &plain, 0), json!({REVISION_ANNOTATION: "1"}));
    assert_eq!(changes(&set(json!({})), &plain, 4), json!({REVISION_ANNOTATION: "5"}));
    assert_eq!(changes(&set(json!({REVISION_ANNOTATION: "5"})), &plain, 4), json!({}));
    assert_eq!(changes(&set(json!({REVISION_ANNOTATION: "5"})), &plain, 1), json!({}), "others were removed since");
}

#[test]
fn one_that_comes_back_remembers_its_numbers() {
    let plain = deployment(json!({}));
    assert_eq!(
        changes(&set(json!({REVISION_ANNOTATION: "1"})), &plain, 2),
        json!({REVISION_ANNOTATION: "3", REVISION_HISTORY_ANNOTATION: "1"})
    );
    let back = set(json!({REVISION_ANNOTATION: "3", REVISION_HISTORY_ANNOTATION: "1"}));
    assert_eq!(changes(&back, &plain, 4), json!({REVISION_ANNOTATION: "5", REVISION_HISTORY_ANNOTATION: "1,3"}));
}

#[test]
fn memory_is_bounded() {
    let long = (0..700).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let history = append_to_history(Some(&long), "700").unwrap();
    assert!(history.len() <= MAX_HISTORY_BYTES);
    assert!(history.ends_with(",699,700"));
}

#[test]
fn annotations_come_along_except_those_that_are_no_business_of_the_set() {
    let annotated = deployment(json!({
        "cause": "new", "same": "same", REVISION_ANNOTATION: "9", DESIRED_REPLICAS_ANNOTATION: "9", "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }));
    let held = set(json!({"cause": "old", "same": "same", REVISION_ANNOTATION: "1"}));
    assert_eq!(changes(&held, &annotated, 0), json!({"cause": "new"}));
}

#[test]
fn a_number_that_is_none_is_left_alone() {
    assert_eq!(changes(&set(json!({REVISION_ANNOTATION: "mine"})), &deployment(json!({})), 4), json!({}));
    assert_eq!(revision_number(&set(json!({REVISION_ANNOTATION: "mine"}))), 0);
}

#[test]
fn sizes_are_written_where_they_differ() {
    let limits = RolloutLimits { replicas: 4, max_surge: 1, max_unavailable: 1, is_rolling: true };
    let held = set(json!({DESIRED_REPLICAS_ANNOTATION: "4", MAX_REPLICAS_ANNOTATION: "9"}));
    assert_eq!(serde_json::to_value(size_annotations(&held, &limits)).unwrap(), json!({MAX_REPLICAS_ANNOTATION: "5"}));
    assert_eq!((desired_replicas(&held), max_replicas(&held)), (Some(4), Some(9)));
    assert_eq!(desired_replicas(&set(json!({DESIRED_REPLICAS_ANNOTATION: "-4"}))), None);
}
