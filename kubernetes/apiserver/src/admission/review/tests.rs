use http::Method;

use super::{
    super::testing::{Stage, core, object, serve_widgets},
    *,
};

fn sent(stage: &Stage, as_gv: Option<&str>, new: Option<&Value>, old: Option<&Value>) -> Value {
    let request = stage.request();
    let subject = AdmissionAttributes { request: &request, object: new, old };
    let own = request.on.resource;
    let resource =
        as_gv.and_then(|gv| request.on.call.catalog.get(&GroupVersion::parse(gv)?, &own.plural)).unwrap_or(own);
    let bytes = VersionedAttributes::for_version(subject, resource).review("v1", "the-uid").unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[tokio::test]
async fn a_review_says_who_does_what_to_which_object() {
    let stage = Stage::new(&core().await, Method::POST, "/api/v1/namespaces/prod/configmaps?dryRun=All&fieldManager=m");
    let new = object("a", ("x", "1"));
    let kind = json!({ "group": "", "version": "v1", "kind": "ConfigMap" });
    let resource = json!({ "group": "", "version": "v1", "resource": "configmaps" });
    let options =
        json!({ "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"], "fieldManager": "m" });
    let wanted = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "the-uid", "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "a", "namespace": "prod", "operation": "CREATE",
            "userInfo": { "username": "jane", "groups": ["system:authenticated"] },
            "object": new, "oldObject": null, "dryRun": true, "options": options,
        },
    });
    assert_eq!(sent(&stage, None, Some(&new), None), wanted);
}

#[tokio::test]
async fn a_name_that_is_still_to_be_generated_is_left_out() {
    let stage = Stage::new(&core().await, Method::POST, "/api/v1/namespaces/prod/configmaps");
    let review = sent(&stage, None, Some(&json!({ "metadata": { "generateName": "a-" } })), None);
    assert_eq!(review.pointer("/request/name"), None);
}

#[tokio::test]
async fn a_part_of_an_object_has_its_own_kind() {
    let stage = Stage::new(
        &core().await,
        Method::PUT,
        "/apis/apps/v1/namespaces/prod/deployments/d/scale?fieldValidation=Strict",
    );
    let request = sent(&stage, None, Some(&json!({})), Some(&json!({})))["request"].clone();
    assert_eq!(request["kind"], json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" }));
    assert_eq!(request["resource"]["resource"], "deployments");
    assert_eq!((&request["subResource"], &request["requestSubResource"]), (&json!("scale"), &json!("scale")));
    assert_eq!((&request["name"], &request["operation"]), (&json!("d"), &json!("UPDATE")));
    let options = json!({ "kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1", "fieldValidation": "Strict" });
    assert_eq!(request["options"], options);
}

#[tokio::test]
async fn another_version_is_shown_as_the_webhook_asked_for_it() {
    let core = core().await;
    serve_widgets(&core, &["v1", "v1beta1"]);
    let stage = Stage::new(&core, Method::POST, "/apis/example.com/v1beta1/namespaces/prod/widgets");
    let new = json!({ "apiVersion": "example.com/v1beta1", "kind": "Widget", "metadata": { "name": "w" } });
    let request = sent(&stage, Some("example.com/v1"), Some(&new), None)["request"].clone();
    assert_eq!((&request["kind"]["version"], &request["requestKind"]["version"]), (&json!("v1"), &json!("v1beta1")));
    assert_eq!(request["object"]["apiVersion"], "example.com/v1");
}

#[tokio::test]
async fn a_namespace_is_in_itself() {
    let stage = Stage::new(&core().await, Method::POST, "/api/v1/namespaces");
    let request = sent(&stage, None, Some(&object("new", ("a", "b"))), None)["request"].clone();
    assert_eq!((&request["namespace"], &request["name"]), (&json!("new"), &json!("new")));
}

#[tokio::test]
async fn a_deletion_has_its_options_and_no_new_object() {
    let stage = Stage::new(&core().await, Method::DELETE, "/api/v1/namespaces/prod/configmaps/a");
    let given = DeleteOptions {
        grace_period_seconds: Some(0),
        propagation_policy: Some(DeletionPropagation::Orphan),
        uid: Some("u".into()),
        ..DeleteOptions::default()
    };
    let old = object("a", ("x", "1"));
    let request = super::super::Request { options: Options::Delete(&given), ..stage.request() };
    let subject = AdmissionAttributes { request: &request, object: None, old: Some(&old) };
    let bytes = VersionedAttributes::for_version(subject, request.on.resource).review("v1", "u").unwrap();
    let review: Value = serde_json::from_slice(&bytes).unwrap();
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 0, "propagationPolicy": "Orphan",
        "preconditions": { "uid": "u" },
    });
    assert_eq!(review["request"]["options"], options);
    assert_eq!((&review["request"]["object"], &review["request"]["oldObject"]), (&Value::Null, &old));
}
