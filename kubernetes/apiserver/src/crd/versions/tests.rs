use serde_json::json;

use super::*;
use crate::{
    api::{GroupResource, ObjectKey},
    crd::{SchemaHistory, resources},
};

/// `v1` is stored and has `size` and, with a default, `color`; `v2` has `size` and `shape`.
fn served(since: u64) -> Vec<ServedResource> {
    resources(&definition("v1"), since)
}

fn definition(stored: &str) -> Value {
    let version = |name: &str, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        json!({"name": name, "served": true, "storage": name == stored, "schema": schema})
    };
    let integer = json!({"type": "integer"});
    let string = json!({"type": "string"});
    let first = version("v1", json!({"size": integer, "color": {"type": "string", "default": "red"}}));
    let second = version("v2", json!({"size": integer, "shape": string}));
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [first, second]},
        "status": {"acceptedNames": names, "conditions": [{"type": "Established", "status": "True"}]},
    })
}

#[test]
fn object_of_a_former_storage_version_is_read_by_its_schema_until_it_is_written_again() {
    let before = served(3);
    let second = definition("v2");
    let history = SchemaHistory::after_schema_change(before[0].custom.as_ref().unwrap(), &second, 10);
    let [first, second] = <[_; 2]>::try_from(resources(&second, history)).unwrap();
    let shown = |resource: &ServedResource, revision: u64| {
        let mut object = widget(json!({"size": 1, "shape": "round"}));
        convert_to_served(resource, revision, &mut object);
        object["spec"].take()
    };
    // Up to revision 10 it was stored in v1, which has a default of its own and no shape.
    assert_eq!(shown(&first, 10), json!({"size": 1, "color": "red"}));
    assert_eq!(shown(&second, 10), json!({"size": 1}));
    assert_eq!(shown(&first, 11), json!({"size": 1}));
    assert_eq!(shown(&second, 11), json!({"size": 1, "shape": "round"}));
}

fn widget(spec: Value) -> Value {
    json!({"metadata": {"name": "w", "generation": 1}, "spec": spec})
}

#[test]
fn read_object_is_pruned_by_stored_version_and_by_version_asked_for() {
    let [first, second] = <[_; 2]>::try_from(served(0)).unwrap();
    let shown = |resource: &ServedResource, spec: Value| {
        let mut object = widget(spec);
        convert_to_served(resource, 1, &mut object);
        object["spec"].take()
    };
    let stored = json!({"size": 1, "color": "blue", "shape": "round", "old": true});
    assert_eq!(shown(&first, stored.clone()), json!({"size": 1, "color": "blue"}));
    // Fields that the storage version does not have are lost, although the requested version has them.
    assert_eq!(shown(&second, stored), json!({"size": 1}));
    // Defaults are those of the storage version.
    assert_eq!(shown(&first, json!({"size": 1})), json!({"size": 1, "color": "red"}));
}

#[test]
fn written_object_loses_what_stored_version_does_not_know() {
    let [first, second] = <[_; 2]>::try_from(served(0)).unwrap();
    let mut object = widget(json!({"size": 1, "shape": "round"}));
    store(&second, &mut object);
    assert_eq!(object, widget(json!({"size": 1, "color": "red"})));
    let mut object = widget(json!({"size": 1, "color": "blue"}));
    store(&first, &mut object);
    assert_eq!(object, widget(json!({"size": 1, "color": "blue"})));
}

#[test]
fn object_is_shown_as_stored_where_version_and_schema_are_its_own() {
    let [first, second] = <[_; 2]>::try_from(served(7)).unwrap();
    let key = ObjectKey::new(GroupResource::new("example.com", "widgets"), "n", "w");
    let at = |revision| Stored::from_value(key.clone(), revision, &widget(json!({"size": 1}))).unwrap();
    assert!(differs_from_stored(&first, &at(7)) && !differs_from_stored(&first, &at(8)));
    assert!(differs_from_stored(&second, &at(8)));
}

#[test]
fn missing_generation_of_old_object_is_repaired() {
    let [first, _] = <[_; 2]>::try_from(served(0)).unwrap();
    let mut object = json!({"metadata": {"name": "w"}});
    convert_to_served(&first, 1, &mut object);
    assert_eq!(object["metadata"]["generation"], 1);
}
