use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn spec(endpoint: &str) -> Value {
    json!({"output": {"otlp": {
        "endpoint": {"value": endpoint},
        "authentication": {"basic": {
            "user": {"value": "me"},
            "password": {"valueFrom": {"secretKeyRef": {"name": "backend", "namespace": "shop", "key": "password"}}},
        }},
    }}})
}

fn object(spec: &Value) -> Value {
    json!({
        "apiVersion": "telemetry.kubewake.io/v1alpha1", "kind": "TracePipeline",
        "metadata": {"name": "backend"}, "spec": spec,
    })
}

fn review(operation: &str, object: &Value, old: &Value) -> ReviewRequest {
    let body = json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "1", "name": "backend", "operation": operation, "object": object, "oldObject": old,
            "kind": {"group": "telemetry.kubewake.io", "version": "v1alpha1", "kind": "TracePipeline"},
            "resource": {"group": "telemetry.kubewake.io", "version": "v1alpha1", "resource": "tracepipelines"},
        },
    });
    ReviewRequest::parse(body.to_string().as_bytes()).unwrap()
}

fn case(operation: &str, new: &Value, old: &Value) -> Option<ReviewedObject> {
    ReviewedObject::from_review(&review(operation, new, old), "kubewake-system", NOW).unwrap()
}

fn named(case: &ReviewedObject) -> Vec<String> {
    case.access_targets.iter().map(ToString::to_string).collect()
}

#[test]
fn who_creates_a_pipeline_must_be_allowed_to_read_what_it_names() {
    let case = case("CREATE", &object(&spec("https://backend.example:4317")), &Value::Null).unwrap();
    assert_eq!(named(&case), ["Secret shop/backend"]);
    assert_eq!(case.problems, []);
}

#[test]
fn who_names_a_secret_to_pull_with_must_be_allowed_to_read_it() {
    let of = |new: &Value, old: &Value| {
        let mut review = review(
            "UPDATE",
            &json!({"metadata": {"name": "default"}, "spec": new}),
            &json!({"metadata": {"name": "default"}, "spec": old}),
        );
        review.resource.resource = "telemetries".to_owned();
        named(&ReviewedObject::from_review(&review, "kubewake-system", NOW).unwrap().unwrap())
    };
    let plain = json!({});
    let with = json!({"image": "a.example/b", "imagePullSecrets": [{"name": "pull"}]});
    assert_eq!(of(&with, &plain), ["Secret kubewake-system/pull"]);
    let mut other = with.clone();
    other["logLevel"] = "debug".into();
    assert_eq!(of(&other, &with), Vec::<String>::new(), "the rest is everybody's");
    other["image"] = "mine.example/b".into();
    assert_eq!(of(&other, &with), ["Secret kubewake-system/pull"], "it would be shown elsewhere");
}

#[test]
fn who_changes_the_rest_need_not() {
    let old = spec("https://backend.example:4317");
    let mut new = old.clone();
    new["paused"] = true.into();
    new["output"]["otlp"]["timeout"] = "7s".into();
    new["output"]["otlp"]["queue"] = json!({"sizeBytes": 1_000_000});
    let case = case("UPDATE", &object(&new), &object(&old)).unwrap();
    assert_eq!(named(&case), Vec::<String>::new());
}

#[test]
fn who_sends_a_secret_elsewhere_must_again() {
    let old = spec("https://backend.example:4317");
    for (pointer, value) in [
        ("/output/otlp/endpoint", json!({"value": "https://mine.example:4317"})),
        ("/output/otlp/tls", json!({"insecureSkipVerify": true})),
        ("/output/otlp/headers", json!([{"name": "x-one", "value": "1"}])),
    ] {
        let mut new = old.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        new.pointer_mut(parent).unwrap()[field] = value;
        let case = case("UPDATE", &object(&new), &object(&old)).unwrap();
        assert_eq!(named(&case), ["Secret shop/backend"], "{pointer}");
    }
}

#[test]
fn deletions_subresources_and_unchanged_specs_pass_unseen() {
    let bad = object(&json!({"output": {"otlp": {"endpoint": {"value": "::"}}}}));
    assert!(!case("CREATE", &bad, &Value::Null).unwrap().problems.is_empty());
    assert!(case("DELETE", &Value::Null, &bad).is_none());
    let mut labelled = bad.clone();
    labelled["metadata"]["labels"] = json!({"team": "shop"});
    assert!(case("UPDATE", &labelled, &bad).is_none());
    let mut going = object(&json!({"output": {}}));
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert!(case("UPDATE", &going, &bad).is_none(), "it names nothing");
    let mut status = review("UPDATE", &object(&spec("other:1")), &bad);
    status.sub_resource = "status".into();
    assert!(ReviewedObject::from_review(&status, "kubewake-system", NOW).unwrap().is_none());
}

#[test]
fn writer_of_a_pipeline_that_is_being_deleted_must_be_allowed_to_read_what_is_added() {
    let plain = json!({"output": {"otlp": {"endpoint": {"value": "https://backend.example:4317"}}}});
    let [mut before, mut after] = [object(&plain), object(&spec("https://backend.example:4317"))];
    for going in [&mut before, &mut after] {
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        going["metadata"]["finalizers"] = json!(["example.com/hold"]);
    }
    let asked = case("UPDATE", &after, &before).unwrap();
    assert_eq!(named(&asked), ["Secret shop/backend"]);
    assert_eq!((asked.problems, asked.warnings), (Vec::new(), Vec::new()), "whether it is right does not matter");
    let mut released = after.clone();
    released["metadata"]["finalizers"] = json!([]);
    assert!(case("UPDATE", &released, &after).is_none(), "who takes a finalizer away reads nothing");
    assert!(case("UPDATE", &before, &after).is_none(), "nor who names less");
}

#[test]
fn all_that_is_wrong_is_found_at_once() {
    let bad = json!({
        "sampling": {"percentage": 101},
        "output": {"otlp": {"endpoint": {"value": "not an address"}, "timeout": "soon"}},
    });
    let paths: Vec<String> =
        case("CREATE", &object(&bad), &Value::Null).unwrap().problems.into_iter().map(|one| one.path).collect();
    assert!(paths.len() >= 3, "{paths:?}");
    assert!(paths.iter().any(|path| path.contains("endpoint")), "{paths:?}");
    assert!(paths.iter().any(|path| path.contains("percentage")), "{paths:?}");
}

#[test]
fn a_name_that_is_yet_to_be_found_is_none_to_complain_about() {
    let mut new = object(&spec("https://backend.example:4317"));
    new["metadata"] = json!({"generateName": "backend-"});
    let mut review = review("CREATE", &new, &Value::Null);
    review.name = String::new();
    assert_eq!(ReviewedObject::from_review(&review, "kubewake-system", NOW).unwrap().unwrap().problems, []);
}
