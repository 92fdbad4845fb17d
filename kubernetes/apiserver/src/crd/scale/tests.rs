use serde_json::json;

use super::{SPEC_REPLICAS_PATH, custom_scale, replicas, selector_text, workload_scale, write};
use crate::registry::ScalePaths;

#[test]
fn a_deployment_has_a_scale() {
    let deployment = json!({
        "metadata": {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "5", "creationTimestamp": "t", "labels": {}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}},
        "status": {},
    });
    let scale = json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web", "namespace": "ns", "uid": "u", "resourceVersion": "5", "creationTimestamp": "t"},
        "spec": {"replicas": 2}, "status": {"replicas": 0, "selector": "app=web"}});
    assert_eq!(workload_scale(&deployment), scale);
    let mut none = deployment;
    write(&mut none, SPEC_REPLICAS_PATH, 0);
    assert_eq!(workload_scale(&none)["spec"], json!({}));
}

#[test]
fn a_custom_resource_says_where() {
    let paths = ScalePaths {
        spec_replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        label_selector: Some(".status.selector".into()),
    };
    let mut object = json!({"metadata": {"name": "w"}, "spec": {}, "status": {"replicas": 1, "selector": "a=b"}});
    assert_eq!(custom_scale(&object, &paths).unwrap_err(), "the spec replicas field \".spec.replicas\" does not exist");
    write(&mut object, ".spec.replicas", 3);
    let scale = custom_scale(&object, &paths).unwrap();
    assert_eq!(
        (&scale["spec"], &scale["status"]),
        (&json!({"replicas": 3}), &json!({"replicas": 1, "selector": "a=b"}))
    );
}

#[test]
fn replicas_are_not_negative() {
    assert_eq!(replicas(&json!({"spec": {"replicas": 4}})), Ok(4));
    assert_eq!(replicas(&json!({"spec": {}})), Ok(0));
    let error = replicas(&json!({"spec": {"replicas": -1}})).unwrap_err();
    assert_eq!(error[0].to_string(), "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
}

#[test]
fn selectors_are_texts() {
    let selector = json!({"matchLabels": {"b": "2"}, "matchExpressions": [
        {"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "c", "operator": "Exists"}, {"key": "d", "operator": "DoesNotExist"}]});
    assert_eq!(selector_text(&selector), "a in (x,y),b=2,c,!d");
    assert_eq!(selector_text(&json!({"app": "web"})), "app=web");
}
