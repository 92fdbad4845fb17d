use std::sync::Arc;

use serde_json::{Value, json};

use super::CustomStrategy;
use crate::{
    api::GroupVersion,
    crd::structural,
    registry::{CustomResourceInfo, ScalePaths, Strategy},
    schema::SchemaNode,
};

fn strategy(has_status: bool) -> CustomStrategy {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}, "on": {"type": "boolean"}, "replicas": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}}}});
    let schema = Arc::new(structural::build_schema(&schema, &SchemaNode::default()));
    let scale = ScalePaths {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        label_selector: None,
    };
    let custom = Arc::new(CustomResourceInfo { has_status, scale: Some(scale), ..CustomResourceInfo::default() });
    let selectable = vec!["spec.size".into(), "spec.on".into()];
    CustomStrategy::new(&GroupVersion::new("example.com", "v1"), &"Widget".into(), &custom, &schema, selectable)
}

fn widget(spec: Value, status: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "generation": 4}, "spec": spec, "status": status})
}

fn updated(has_status: bool, mut new: Value, old: &Value, subresource: &str) -> Value {
    strategy(has_status).prepare_update(&mut new, old, subresource);
    new
}

#[test]
fn status_is_not_set_on_the_main_path() {
    let mut new = widget(json!({"size": 1}), json!({"ready": true}));
    strategy(true).prepare_create(&mut new);
    assert_eq!(new.get("status"), None);
    assert_eq!(new["metadata"]["generation"], 1);
    let old = widget(json!({"size": 1}), json!({"ready": false}));
    let same = updated(true, widget(json!({"size": 1}), json!({"ready": true})), &old, "");
    assert_eq!(same, old);
    let changed = updated(true, widget(json!({"size": 2}), json!({})), &old, "");
    assert_eq!(changed["metadata"]["generation"], 5);
}

#[test]
fn without_the_subresource_status_is_plain_data() {
    let old = widget(json!({}), json!({"ready": false}));
    let changed = updated(false, widget(json!({}), json!({"ready": true})), &old, "");
    assert_eq!((&changed["status"]["ready"], &changed["metadata"]["generation"]), (&json!(true), &json!(5)));
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(updated(false, labelled, &old, "")["metadata"]["generation"], 4);
    let mut gone = old.clone();
    gone.as_object_mut().unwrap().remove("spec");
    assert_eq!(updated(false, gone, &old, "")["metadata"]["generation"], 5);
}

#[test]
fn the_status_path_changes_nothing_else() {
    let mut old = widget(json!({"size": 1}), json!({}));
    // The form in the store.
    old.as_object_mut().unwrap().retain(|name, _| name != "kind" && name != "apiVersion");
    let mut new = widget(json!({"size": 9}), json!({"ready": true}));
    new["metadata"]["labels"] = json!({"x": "y"});
    new["metadata"]["managedFields"] = json!([1]);
    let new = updated(true, new, &old, "status");
    assert_eq!(
        new,
        json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "generation": 4, "managedFields": [1]},
               "spec": {"size": 1}, "status": {"ready": true}})
    );
}

#[test]
fn an_object_of_another_kind_is_refused() {
    let mut other = widget(json!({"size": "x"}), json!({}));
    other["kind"] = json!("Other");
    let mut errors = Vec::new();
    strategy(true).validate_create(&other, &mut errors);
    assert_eq!(
        errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["kind: Invalid value: \"Other\": must be Widget"]
    );
}

#[test]
fn replicas_are_counts() {
    let mut errors = Vec::new();
    strategy(true).validate_create(&widget(json!({"replicas": -1}), json!({})), &mut errors);
    assert_eq!(errors[0].to_string(), ".spec.replicas: Invalid value: -1: should be a non-negative integer");
}

#[test]
fn fields_can_be_selected() {
    let widget = widget(json!({"size": 3, "on": true}), json!({}));
    let value = |path: &str| strategy(true).field_value(&widget, path);
    assert_eq!(value("spec.size").as_deref(), Some("3"));
    assert_eq!(value("spec.on").as_deref(), Some("true"));
    assert_eq!(value("spec.name"), None);
}

#[test]
fn finalizers_should_have_a_domain() {
    let mut new = widget(json!({}), json!({}));
    new["metadata"]["finalizers"] = json!(["mine", "example.com", "example.com/x", "foregroundDeletion"]);
    let advice = "to avoid accidental conflicts with other finalizer writers";
    assert_eq!(
        strategy(true).warnings(&new),
        [
            format!("metadata.finalizers: \"mine\": prefer a domain-qualified finalizer name {advice}"),
            format!(
                "metadata.finalizers: \"example.com\": prefer a domain-qualified finalizer name including a path (/) {advice}"
            ),
        ]
    );
    assert!(strategy(true).warnings_on_update(&new, &new).is_empty());
}
