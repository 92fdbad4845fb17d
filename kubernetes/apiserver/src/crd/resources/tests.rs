use serde_json::{Value, json};

use super::resources;
use crate::crd::names;

fn crd(version: Value) -> Value {
    let mut crd = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
        "status": {},
    });
    json_patch::merge(&mut crd["spec"]["versions"][0], &version);
    crd["status"] = names::status(&crd, [], "now").unwrap();
    crd
}

#[test]
fn a_version_is_a_resource() {
    let crd = crd(json!({
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
        "selectableFields": [{"jsonPath": ".spec.name"}],
    }));
    let [widgets] = <[_; 1]>::try_from(resources(&crd, 0)).unwrap();
    assert_eq!((&*widgets.plural, &*widgets.kind, widgets.namespaced), ("widgets", "Widget", true));
    assert_eq!(widgets.verbs, ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]);
    let subresources: Vec<_> = widgets.subresources.iter().map(|part| (&*part.name, &*part.kind)).collect();
    assert_eq!(subresources, [("status", "Widget"), ("scale", "Scale")]);
    assert_eq!(widgets.selectable, ["spec.name".into()]);
    assert_eq!(widgets.storage_version_hash.len(), 12);
    let custom = widgets.custom.unwrap();
    assert_eq!((&*custom.storage_version, custom.has_status, &custom.deprecation_warning), ("v1", true, &None));
}

#[test]
fn only_what_is_served_and_established() {
    assert!(resources(&crd(json!({"served": false})), 0).is_empty());
    let mut pending = crd(json!({}));
    pending["status"]["conditions"] = json!([]);
    assert!(resources(&pending, 0).is_empty());
}

#[test]
fn deprecated_versions_warn() {
    let warning = |version: Value| resources(&crd(version), 0)[0].custom.as_ref().unwrap().deprecation_warning.clone();
    assert_eq!(warning(json!({"deprecated": true})).as_deref(), Some("example.com/v1 Widget is deprecated"));
    assert_eq!(
        warning(json!({"deprecated": true, "deprecationWarning": "use another"})).as_deref(),
        Some("use another")
    );
}

#[test]
fn a_terminating_crd_creates_nothing() {
    let mut crd = crd(json!({}));
    names::set_terminating(&mut crd, names::DeletionProgress::Pending, "now");
    let resources = resources(&crd, 0);
    assert_eq!(resources[0].verbs, ["delete", "deletecollection", "get", "list", "watch"]);
    assert!(resources[0].custom.as_ref().unwrap().terminating);
}

#[test]
fn metadata_is_the_built_in_one() {
    let widgets = &resources(&crd(json!({})), 0)[0];
    let labels = widgets.schema.field("metadata").and_then(|metadata| metadata.field("labels"));
    assert!(labels.is_some());
}
