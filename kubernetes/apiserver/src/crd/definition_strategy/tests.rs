use serde_json::json;

use super::DefinitionStrategy;
use crate::registry::Strategy;

#[test]
fn names_and_conversion_are_filled_in() {
    let mut crd = json!({"spec": {"names": {"plural": "widgets", "kind": "Widget"}}});
    DefinitionStrategy.default(&mut crd);
    assert_eq!(
        crd["spec"]["names"],
        json!({"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"})
    );
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
}

#[test]
fn a_new_crd_has_an_empty_status() {
    let mut crd = json!({"metadata": {}, "spec": {"versions": [{"name": "v1", "storage": true}]}, "status": {"x": 1}});
    DefinitionStrategy.prepare_create(&mut crd);
    assert_eq!(
        crd["status"],
        json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]})
    );
    assert_eq!(crd["metadata"]["generation"], 1);
}

#[test]
fn a_new_storage_version_is_remembered() {
    let old = json!({"metadata": {"generation": 3}, "spec": {"versions": [{"name": "v1", "storage": true}]}, "status": {"storedVersions": ["v1"]}});
    let mut new = json!({"metadata": {}, "spec": {"versions": [{"name": "v2", "storage": true}]}, "status": {"storedVersions": []}});
    DefinitionStrategy.prepare_update(&mut new, &old, "");
    assert_eq!(new["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(new["metadata"]["generation"], 4);
    let mut status = json!({"metadata": {"generation": 3}, "spec": {}, "status": {"storedVersions": ["v2"]}});
    DefinitionStrategy.prepare_update(&mut status, &old, "status");
    assert_eq!(status["spec"], old["spec"]);
    assert_eq!(status["status"]["storedVersions"], json!(["v2"]));
}

#[test]
fn unknown_formats_are_told() {
    let schema = json!({"properties": {"a": {"type": "string", "format": "made-up"}, "b": {"type": "string", "format": "date-time"}}});
    let crd = json!({"spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
    assert_eq!(DefinitionStrategy.warnings(&crd), ["unrecognized format \"made-up\""]);
    assert!(DefinitionStrategy.warnings_on_update(&crd, &crd).is_empty());
}
