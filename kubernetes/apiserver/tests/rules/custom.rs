//! Custom resources in several versions, and their scale.

use serde_json::{Value, json};

use crate::stage::{MERGE, Stage};

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const SECOND: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// `v1` is stored and has `size`, `replicas` and, with a default, `color`; `v2` has `size` and `shape`.
async fn with_widgets() -> Stage {
    let stage = Stage::new().await;
    let version = |name: &str, stored: bool, fields: Value| {
        let spec = json!({"type": "object", "properties": fields});
        let status = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
        let properties = json!({"spec": spec, "status": status});
        json!({"name": name, "served": true, "storage": stored,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}}})
    };
    let integer = json!({"type": "integer"});
    let color = json!({"type": "string", "default": "red"});
    let first = version("v1", true, json!({"size": integer, "replicas": integer, "color": color}));
    let second = version("v2", false, json!({"size": integer, "shape": {"type": "string"}}));
    let names = json!({"plural": "widgets", "kind": "Widget"});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [first, second]});
    let crd = json!({"metadata": {"name": "widgets.example.com"}, "spec": spec});
    let created = stage.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).await;
    assert_eq!(created.code, 201, "{created:?}");
    while stage.get(WIDGETS).await.code != 200 {}
    stage
}

fn widget(version: &str, spec: Value) -> Value {
    let api_version = format!("example.com/{version}");
    json!({"apiVersion": api_version, "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

#[tokio::test]
async fn custom_resource_is_shown_by_the_schema_of_the_version_asked_for() {
    let stage = with_widgets().await;
    let created = stage.post(WIDGETS, widget("v1", json!({"size": 1}))).await;
    assert_eq!(created.body["spec"], json!({"size": 1, "color": "red"}));
    let second = stage.get(&format!("{SECOND}/w")).await.body;
    assert_eq!((&second["apiVersion"], &second["spec"]), (&json!("example.com/v2"), &json!({"size": 1})));
    assert_eq!(stage.get(SECOND).await.body["items"][0]["spec"], json!({"size": 1}));
    let watch = stage.get(&format!("{SECOND}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(watch.body["object"]["spec"], json!({"size": 1}));
    // An object that is written through `v2` has the fields of both versions, and the defaults of the storage
    // version.
    let patch = json!({"spec": {"shape": "round", "size": 2}});
    let patched = stage.send("PATCH", &format!("{SECOND}/w"), MERGE, patch).await;
    assert_eq!(patched.body["spec"], json!({"size": 2}));
    assert_eq!(stage.get(&format!("{WIDGETS}/w")).await.body["spec"], json!({"size": 2, "color": "red"}));
}

#[tokio::test]
async fn body_of_a_custom_resource_is_read_by_the_schema_of_the_version_that_it_names() {
    let stage = with_widgets().await;
    let expected = |found: &str| {
        format!("the API version in the data ({found}) does not match the expected API version (example.com/v1)")
    };
    let other = stage.post(WIDGETS, widget("v9", json!({"size": 1}))).await;
    assert_eq!(other.message(), (400, expected("example.com/v9").as_str()));
    assert_eq!(other.warnings, [r#"299 - "unknown field \"spec\"""#]);
    let second = stage.post(WIDGETS, widget("v2", json!({"size": 1, "color": "x"}))).await;
    assert_eq!(second.message(), (400, expected("example.com/v2").as_str()));
    assert_eq!(second.warnings, [r#"299 - "unknown field \"spec.color\"""#]);
    let none = stage.post(WIDGETS, json!({"kind": "Widget", "metadata": {"name": "w"}})).await;
    assert_eq!(none.message(), (400, expected("").as_str()));
}

#[tokio::test]
async fn scale_of_a_custom_resource_needs_no_resource_version() {
    let stage = with_widgets().await;
    assert_eq!(stage.post(WIDGETS, widget("v1", json!({"size": 1}))).await.code, 201);
    let path = format!("{WIDGETS}/w/scale");
    let scale = |replicas: i64, version: &str| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w", "resourceVersion": version},
            "spec": {"replicas": replicas}})
    };
    // A patch that does not set the replicas is accepted.
    let empty = stage.send("PATCH", &path, MERGE, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(empty.message(), (400, "the spec replicas field \".spec.replicas\" cannot be empty"));
    let put = stage.put(&path, scale(3, "")).await;
    assert_eq!((put.code, &put.body["spec"]["replicas"]), (200, &json!(3)));
    assert_eq!(stage.get(&format!("{WIDGETS}/w")).await.body["spec"]["replicas"], 3);
    assert_eq!(stage.put(&path, scale(4, "1")).await.code, 409);
    let negative = stage.put(&path, scale(-1, "")).await;
    let why =
        "Widget.example.com \"w\" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer";
    assert_eq!(negative.message(), (422, why));
}

#[tokio::test]
async fn object_that_etcd_would_not_take_is_refused_as_etcd_refuses_it() {
    let stage = Stage::new().await;
    // Built-in kinds have lower limits of their own; kinds without any are limited by the size of stored
    // objects.
    let large = json!({"metadata": {"name": "l"}, "webhooks": [{
        "name": "h.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [],
        "objectSelector": {"matchExpressions": [{"key": "k", "operator": "In",
            "values": (0..30_000).map(|at| format!("{at:060}")).collect::<Vec<_>>()}]},
        "clientConfig": {"url": "https://example.com/"}}]});
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let refused = stage.post(path, large).await;
    assert_eq!(refused.message(), (500, "etcdserver: request is too large"));
    let body = json!({"metadata": {"name": "m"}, "data": {"k": "x".repeat((1 << 20) + 1)}});
    assert_eq!(stage.post("/api/v1/namespaces/default/configmaps", body).await.code, 422);
}

#[tokio::test]
async fn object_of_a_former_storage_version_is_read_as_that_version_until_it_is_written() {
    let stage = with_widgets().await;
    assert_eq!(stage.post(WIDGETS, widget("v1", json!({"size": 1, "color": "blue"}))).await.code, 201);
    let crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let hash = async || stage.get("/apis/example.com/v1").await.body["resources"][0]["storageVersionHash"].clone();
    let before = hash().await;
    let swap = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    assert_eq!(stage.send("PATCH", crd, "application/json-patch+json", swap).await.code, 200);
    assert_eq!(stage.get(crd).await.body["status"]["storedVersions"], json!(["v1", "v2"]));
    while hash().await == before {}
    let spec = |answer: crate::stage::Answer| answer.body["spec"].clone();
    assert_eq!(spec(stage.get(&format!("{WIDGETS}/w")).await), json!({"size": 1, "color": "blue"}));
    assert_eq!(stage.get(WIDGETS).await.body["items"][0]["spec"], json!({"size": 1, "color": "blue"}));
    assert_eq!(spec(stage.get(&format!("{SECOND}/w")).await), json!({"size": 1}));
    // When it is written again, it is stored in v2.
    let patch = json!({"spec": {"size": 2}});
    assert_eq!(stage.send("PATCH", &format!("{SECOND}/w"), MERGE, patch).await.code, 200);
    assert_eq!(spec(stage.get(&format!("{WIDGETS}/w")).await), json!({"size": 2}));
}
