use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::testing::{schema, widget};

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

/// What is left of a spec, and what was reported.
fn pruned(spec: Value, schema: &Schema) -> (Value, Vec<String>) {
    let mut object = object(spec);
    let dropped = prune(&mut object, schema).unwrap();
    (object["spec"].take(), dropped)
}

#[test]
fn unknown_fields_are_dropped_and_reported() {
    let schema = widget(json!({"type": "object", "properties": {"size": {"type": "integer"}}}));
    let mut widget = object(json!({"size": 1, "zzz": {"y": 2}}));
    widget["top"] = json!(1);
    widget["metadata"]["lbls"] = json!({});
    assert_eq!(prune(&mut widget, &schema).unwrap(), ["metadata.lbls", "spec.zzz", "top"]);
    assert_eq!(widget, object(json!({"size": 1})));
    assert_eq!(pruned(json!({"zzz": 2}), &schema).0, json!({}));
}

#[test]
fn preserved_fields_stay_and_known_children_are_still_pruned() {
    let schema = widget(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "size": {"type": "integer"}, "inner": {"type": "object", "properties": {"a": {"type": "string"}}},
    }}));
    let given = json!({"size": 1, "zzz": {"deep": [1, null, {"x": null}]}, "inner": {"a": "x", "gone": 1}});
    let left = json!({"size": 1, "zzz": {"deep": [1, null, {"x": null}]}, "inner": {"a": "x"}});
    assert_eq!(pruned(given, &schema), (left, vec!["spec.inner.gone".to_owned()]));
}

#[test]
fn embedded_objects_have_metadata_of_their_own() {
    let schema = widget(json!({"type": "object", "properties": {"obj": {
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true,
    }}}));
    let given = json!({"obj": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "zzz": 1}, "data": 1}});
    let left = json!({"obj": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "data": 1}});
    assert_eq!(pruned(given, &schema), (left, vec!["spec.obj.metadata.zzz".to_owned()]));
    let error = prune(&mut object(json!({"obj": {"kind": 1}})), &schema).unwrap_err();
    assert_eq!(error.to_string(), "spec.obj.kind: Invalid value: 1: must be a string");
    let error = prune(&mut object(json!({"obj": {"metadata": {"labels": 1}}})), &schema).unwrap_err();
    let expected = "spec.obj.metadata: Invalid value: {\"labels\":1}: json: cannot unmarshal number into Go struct field \
                    ObjectMeta.labels of type map[string]string";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_embedded_object_that_is_closed_keeps_only_its_metadata() {
    let schema = widget(
        json!({"type": "object", "properties": {"obj": {"type": "object", "x-kubernetes-embedded-resource": true}}}),
    );
    let given = json!({"obj": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "data": 1}});
    let left = json!({"obj": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}}});
    assert_eq!(pruned(given, &schema), (left, vec!["spec.obj.data".to_owned()]));
}

#[test]
fn metadata_is_read_as_that_of_built_in_kinds() {
    let schema = widget(json!({"type": "object"}));
    let mut widget = object(json!({}));
    widget["metadata"]["labels"] = json!("x");
    let error = prune(&mut widget, &schema).unwrap_err();
    let expected = "json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string";
    assert_eq!(error.to_string(), expected);
    let mut widget = object(json!({}));
    widget["metadata"] = json!({"name": "w", "creationTimestamp": null, "labels": {}, "generation": 0});
    prune(&mut widget, &schema).unwrap();
    assert_eq!(widget, object(json!({})));
}

#[test]
fn nulls_go_where_null_is_no_value() {
    let schema = widget(json!({"type": "object", "properties": {
        "n": {"type": "string", "nullable": true}, "d": {"type": "string", "default": "x"}, "plain": {"type": "string"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
    }}));
    let given = json!({"n": null, "d": null, "plain": null, "map": {"a": null, "b": "c"}, "list": [null]});
    let left = json!({"n": null, "d": null, "map": {"b": "c"}, "list": [null]});
    assert_eq!(pruned(given, &schema), (left, vec![]));
}

#[test]
fn values_without_structure_lose_their_members_and_are_left_to_validation() {
    let schema =
        widget(json!({"type": "object", "properties": {"size": {"type": "integer"}, "obj": {"type": "object"}}}));
    let given = json!({"size": {"a": 1}, "obj": [{"b": 1}, "x"]});
    let dropped = vec!["spec.obj[0].b".to_owned(), "spec.size.a".to_owned()];
    assert_eq!(pruned(given, &schema), (json!({"size": {}, "obj": [{}, "x"]}), dropped));
    assert_eq!(pruned(json!("x"), &schema), (json!("x"), vec![]));
}

#[test]
fn paths_go_through_lists_and_maps() {
    let item = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let schema = widget(json!({"type": "object", "properties": {
        "list": {"type": "array", "items": item}, "map": {"type": "object", "additionalProperties": item},
    }}));
    let given = json!({"list": [{"a": "x"}, {"z": 1}], "map": {"k": {"z": 1}}});
    let dropped = vec!["spec.list[1].z".to_owned(), "spec.map.k.z".to_owned()];
    assert_eq!(pruned(given, &schema), (json!({"list": [{"a": "x"}, {}], "map": {"k": {}}}), dropped));
}

#[test]
fn depth_is_bounded() {
    let mut deep = json!(1);
    for _ in 0..1000 {
        deep = Value::Array(vec![deep]);
    }
    let schema = widget(json!({"type": "object", "properties": {"size": {"type": "integer"}}}));
    let mut widget = object(json!({"size": null}));
    widget["spec"]["size"] = deep;
    assert_eq!(prune(&mut widget, &schema).unwrap_err().to_string(), "exceeded max depth");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<i8>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
    leaf.prop_recursive(5, 40, 5, |inner| {
        let names = prop::sample::select(vec!["spec", "size", "obj", "map", "list", "metadata", "kind", "name", "zzz"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(names.prop_map(str::to_owned), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn pruning_again_changes_nothing(mut value in any_json()) {
        let inner = json!({"type": "object", "properties": {"name": {"type": "string", "nullable": true}}});
        let schema = schema(&json!({"type": "object", "properties": {
            "spec": inner, "list": {"type": "array", "items": inner}, "zzz": {"x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": inner},
            "obj": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": inner}},
        }}));
        if prune(&mut value, &schema).is_ok() {
            let first = value.clone();
            prop_assert_eq!(prune(&mut value, &schema).unwrap(), Vec::<String>::new());
            prop_assert_eq!(value, first);
        }
    }
}
