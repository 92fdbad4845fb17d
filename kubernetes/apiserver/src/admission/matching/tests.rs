use http::Method;
use serde_json::json;

use super::{
    super::{
        WebhookConfiguration,
        testing::{Stage, core, object, serve_widgets},
    },
    *,
};

fn hook(more: Value) -> AdmissionWebhook {
    let mut hook = json!({
        "name": "a.example.com",
        "rules": [{ "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "scope": "*" }],
    });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    WebhookConfiguration::compile(&json!({ "metadata": { "name": "c" }, "webhooks": [hook] })).hooks.remove(0)
}

fn seen(
    stage: &Stage,
    hook: &AdmissionWebhook,
    new: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<String>, StatusError> {
    let request = stage.request();
    let subject = AdmissionAttributes { request: &request, object: new, old };
    Ok(subject.match_webhook(hook)?.map(|resource| resource.gv.to_string()))
}

const MAPS: &str = "/api/v1/namespaces/prod/configmaps";

#[tokio::test]
async fn namespaces_are_selected_by_the_labels_that_are_stored() {
    let stage = Stage::new(&core().await, Method::POST, MAPS);
    let labels = |tier: &str| json!({ "namespaceSelector": { "matchLabels": { "tier": tier } } });
    let new = object("a", ("tier", "lead"));
    assert!(seen(&stage, &hook(labels("gold")), Some(&new), None).unwrap().is_some());
    assert!(seen(&stage, &hook(labels("lead")), Some(&new), None).unwrap().is_none());
}

#[tokio::test]
async fn a_namespace_that_is_written_is_selected_by_its_own_labels() {
    let core = core().await;
    let gold = hook(json!({ "namespaceSelector": { "matchLabels": { "tier": "gold" } } }));
    let lead = object("prod", ("tier", "lead"));
    let put = Stage::new(&core, Method::PUT, "/api/v1/namespaces/prod");
    assert!(seen(&put, &gold, Some(&lead), None).unwrap().is_none());
    let delete = Stage::new(&core, Method::DELETE, "/api/v1/namespaces/prod");
    assert!(seen(&delete, &gold, None, Some(&lead)).unwrap().is_some());
}

#[tokio::test]
async fn what_lives_in_no_namespace_is_not_exempted_by_one() {
    let stage = Stage::new(&core().await, Method::POST, "/api/v1/nodes");
    let none = hook(json!({ "namespaceSelector": { "matchLabels": { "no": "where" } } }));
    assert!(seen(&stage, &none, Some(&object("a", ("a", "b"))), None).unwrap().is_some());
}

#[tokio::test]
async fn an_absent_namespace_is_not_found() {
    let stage = Stage::new(&core().await, Method::POST, "/api/v1/namespaces/none/configmaps");
    let gold = hook(json!({ "namespaceSelector": { "matchLabels": { "tier": "gold" } } }));
    assert_eq!(seen(&stage, &gold, Some(&object("a", ("a", "b"))), None).unwrap_err().code, 404);
}

#[tokio::test]
async fn objects_are_selected_by_the_old_or_the_new() {
    let stage = Stage::new(&core().await, Method::PUT, "/api/v1/namespaces/prod/configmaps/a");
    let hook = hook(json!({ "objectSelector": { "matchExpressions": [{ "key": "x", "operator": "Exists" }] } }));
    let with = object("a", ("x", "1"));
    let without = object("a", ("y", "1"));
    for (new, old, wanted) in
        [(&with, &without, true), (&without, &with, true), (&with, &with, true), (&without, &without, false)]
    {
        assert_eq!(seen(&stage, &hook, Some(new), Some(old)).unwrap().is_some(), wanted);
    }
}

#[tokio::test]
async fn other_versions_of_a_kind_count_unless_the_match_is_exact() {
    let core = core().await;
    serve_widgets(&core, &["v1", "v1beta1"]);
    let stage = Stage::new(&core, Method::POST, "/apis/example.com/v1beta1/namespaces/prod/widgets");
    let rules = |policy: &str| {
        let rule = json!({ "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"], "operations": ["*"] });
        json!({ "matchPolicy": policy, "rules": [rule] })
    };
    let new = object("w", ("a", "b"));
    let seen_as = |policy| seen(&stage, &hook(rules(policy)), Some(&new), None).unwrap();
    assert_eq!(seen_as("Equivalent").as_deref(), Some("example.com/v1"));
    assert_eq!(seen_as("Exact"), None);
}

#[tokio::test]
async fn a_condition_that_is_false_outweighs_one_that_fails() {
    let stage = Stage::new(&core().await, Method::POST, MAPS);
    let new = object("a", ("x", "1"));
    let outcome = |policy: &str, expressions: &[&str]| {
        let all: Vec<Value> = expressions.iter().map(|text| json!({ "name": "c", "expression": text })).collect();
        let hook = hook(json!({ "failurePolicy": policy, "matchConditions": all }));
        seen(&stage, &hook, Some(&new), None).map(|seen| seen.is_some())
    };
    let (holds, fails, breaks) =
        ("object.metadata.labels.x == '1'", "request.operation == 'DELETE'", "object.nope == 1");
    assert_eq!(outcome("Fail", &[holds, "request.userInfo.username == 'jane' && oldObject == null"]), Ok(true));
    assert_eq!(outcome("Fail", &[breaks, fails]), Ok(false));
    assert_eq!(outcome("Ignore", &[holds, breaks]), Ok(false));
    let refused = outcome("Fail", &[holds, breaks]).unwrap_err();
    let message = "configmaps \"a\" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope";
    assert_eq!((refused.code, refused.message.as_str()), (403, message));
    assert!(outcome("Fail", &["object.("]).unwrap_err().message.contains("compilation error"));
}

#[tokio::test]
async fn a_broken_selector_fails_only_what_its_rules_want() {
    let core = core().await;
    let bad = json!({ "matchExpressions": [{ "key": "x", "operator": "Near" }] });
    let rule = json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"] });
    let hook = hook(json!({ "objectSelector": bad, "rules": [rule] }));
    let new = object("a", ("x", "1"));
    assert_eq!(seen(&Stage::new(&core, Method::POST, MAPS), &hook, Some(&new), None).unwrap_err().code, 500);
    let secrets = Stage::new(&core, Method::POST, "/api/v1/namespaces/prod/secrets");
    assert_eq!(seen(&secrets, &hook, Some(&new), None), Ok(None));
}

#[test]
fn refusal_names_what_has_no_name_yet_by_its_prefix() {
    let named = |name: &str, object: Option<Value>| refused_name(name, object.as_ref()).to_owned();
    let prefixed = || Some(json!({ "metadata": { "generateName": "made-" } }));
    assert_eq!(named("a", prefixed()), "a");
    assert_eq!(named("", prefixed()), "made-");
    assert_eq!((named("", None), named("", Some(json!({})))), ("Unknown".to_owned(), "Unknown".to_owned()));
}
