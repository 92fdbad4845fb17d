//! Admission webhooks over the network: the reviews that the API server sends, and its reactions to the
//! responses.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod stage;

use http::{HeaderMap, Method};
use serde_json::{Value, json};
use stage::{SERVICE, Stage, hex};

const MUTATING: &str = "MutatingWebhookConfiguration";
const VALIDATING: &str = "ValidatingWebhookConfiguration";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

fn caller() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", format!("00-{TRACE}-{CALLER}-01").parse().unwrap());
    headers.insert("tracestate", "vendor=value".parse().unwrap());
    headers.insert("baggage", "key=value".parse().unwrap());
    headers
}

fn message(answer: &Value) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_patch_changes_the_object_and_a_warning_reaches_the_caller() {
    let stage = Stage::start(false).await;
    stage.configure(MUTATING, "/mutate", json!({})).await;
    stage.in_force().await;
    let (code, headers, object) = stage.create("a", &HeaderMap::new()).await;
    assert_eq!((code, &object["data"], object.get("odd")), (201, &json!({ "added": "by-webhook" }), None));
    assert_eq!(headers["warning"], "299 - \"have a look\"");
    let [call] = stage.hook.take().try_into().unwrap();
    assert_eq!(call.target, "/mutate?timeout=10s");
    assert_eq!(call.headers["accept"], "application/json, */*");
    assert_eq!(call.review["request"]["userInfo"]["username"], "admin");
    assert_eq!(call.headers.get("traceparent"), None, "nobody began a trace");
}

#[tokio::test]
async fn what_a_webhook_put_back_is_no_new_generation() {
    let stage = Stage::start(false).await;
    let operations = json!(["CREATE", "UPDATE"]);
    let core =
        json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": operations });
    let apps = json!({ "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["*"], "operations": operations });
    stage.configure(MUTATING, "/keep", json!({ "rules": [core, apps] })).await;
    stage.in_force().await;
    let all = "/apis/apps/v1/namespaces/default/deployments";
    let template =
        json!({ "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let mut deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "a" } }, "template": template },
    });
    let none = HeaderMap::new();
    let (code, _, made) = stage.ask(Method::POST, all, &none, Some(deployment.clone())).await;
    assert_eq!((code, &made["metadata"]["generation"]), (201, &json!(1)));
    deployment["spec"]["replicas"] = 5.into();
    let (code, _, same) = stage.ask(Method::PUT, &format!("{all}/a"), &none, Some(deployment)).await;
    assert_eq!((code, &same["spec"]["replicas"], &same["metadata"]["generation"]), (200, &json!(1), &json!(1)));
}

#[tokio::test]
async fn a_refusal_is_the_answer_and_nothing_is_stored() {
    let stage = Stage::start(false).await;
    stage.configure(VALIDATING, "/deny", json!({})).await;
    stage.in_force().await;
    let (code, _, answer) = stage.create("a", &HeaderMap::new()).await;
    assert_eq!((code, &answer["reason"]), (403, &json!("Closed")));
    assert_eq!(message(&answer), "admission webhook \"hook.example.com\" denied the request: not today");
    let (code, ..) = stage.ask(Method::GET, "/api/v1/namespaces/default/configmaps/a", &HeaderMap::new(), None).await;
    assert_eq!(code, 404);
}

#[tokio::test]
async fn a_webhook_that_hangs_fails_the_request_when_its_time_is_over() {
    let stage = Stage::start(false).await;
    stage.configure(VALIDATING, "/hang", json!({ "timeoutSeconds": 1 })).await;
    stage.in_force().await;
    let (code, _, answer) = stage.create("a", &HeaderMap::new()).await;
    let url = stage.hook.url("/hang");
    let said = format!(
        "Internal error occurred: failed calling webhook \"hook.example.com\": failed to call webhook: Post \"{url}?timeout=1s\": \
         context deadline exceeded"
    );
    assert_eq!((code, message(&answer)), (500, said.as_str()));
}

#[tokio::test]
async fn a_caller_need_not_wait_longer_than_it_likes() {
    let stage = Stage::start(false).await;
    stage.configure(VALIDATING, "/hang", json!({ "timeoutSeconds": 3 })).await;
    stage.in_force().await;
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    let path = "/api/v1/namespaces/default/configmaps";
    let (code, _, answer) =
        stage.ask(Method::POST, &format!("{path}?timeout=100ms"), &HeaderMap::new(), Some(body)).await;
    assert_eq!(
        (code, &answer["reason"], message(&answer)),
        (504, &json!("Timeout"), "Timeout: request did not complete within the allotted timeout")
    );
    let (code, ..) = stage.ask(Method::GET, &format!("{path}/a?timeout=1h0.5m"), &HeaderMap::new(), None).await;
    assert_eq!(code, 404, "what was given up is not made");
}

#[tokio::test]
async fn a_failure_matters_as_its_policy_says() {
    for (policy, wanted) in [("Ignore", 201), ("Fail", 500)] {
        let stage = Stage::start(false).await;
        stage.configure(VALIDATING, "/garbage", json!({ "failurePolicy": policy })).await;
        stage.in_force().await;
        let (code, _, answer) = stage.create("a", &HeaderMap::new()).await;
        assert_eq!(code, wanted, "{answer}");
        assert_eq!(stage.hook.take().len(), 1);
    }
}

#[tokio::test]
async fn a_webhook_is_believed_only_with_the_right_certificate() {
    let stage = Stage::start(false).await;
    let other = Stage::start(false).await;
    let place = json!({ "url": stage.hook.url("/x"), "caBundle": other.hook.bundle() });
    stage.configure_at(VALIDATING, place, json!({})).await;
    stage.in_force().await;
    let (code, _, answer) = stage.create("a", &HeaderMap::new()).await;
    assert_eq!(code, 500);
    assert!(message(&answer).contains("tls: failed to verify certificate: x509:"), "{answer}");
    assert!(stage.hook.take().is_empty());
}

#[tokio::test]
async fn a_webhook_behind_a_service_is_found_and_has_the_services_name() {
    let stage = Stage::start(false).await;
    let (namespace, name) = SERVICE;
    let service = json!({ "namespace": namespace, "name": name, "path": "/deny" });
    stage.configure_at(VALIDATING, json!({ "service": service, "caBundle": stage.hook.bundle() }), json!({})).await;
    stage.in_force().await;
    let (code, ..) = stage.create("a", &HeaderMap::new()).await;
    let [call] = stage.hook.take().try_into().unwrap();
    assert_eq!((code, call.target.as_str()), (403, "/deny?timeout=10s"));
    assert_eq!(call.headers["host"], "hook.hooks.svc");
}

#[tokio::test]
async fn a_service_that_is_not_there_cannot_be_called() {
    let stage = Stage::start(false).await;
    let service = json!({ "namespace": "nowhere", "name": "none", "path": "/x", "port": 8443 });
    stage.configure_at(VALIDATING, json!({ "service": service }), json!({})).await;
    stage.in_force().await;
    let (code, _, answer) = stage.create("a", &HeaderMap::new()).await;
    let said = "Post \"https://none.nowhere.svc:8443/x?timeout=10s\": service \"none\" not found";
    assert_eq!(code, 500);
    assert!(message(&answer).ends_with(said), "{answer}");
}

#[tokio::test]
async fn a_deletion_is_asked_about_with_the_object_that_goes() {
    let stage = Stage::start(false).await;
    stage.configure(MUTATING, "/x", json!({})).await;
    stage.in_force().await;
    stage.create("a", &HeaderMap::new()).await;
    stage.hook.take();
    let (code, ..) =
        stage.ask(Method::DELETE, "/api/v1/namespaces/default/configmaps/a", &HeaderMap::new(), None).await;
    let [call] = stage.hook.take().try_into().unwrap();
    let request = &call.review["request"];
    assert_eq!((code, &request["operation"], &request["object"]), (200, &json!("DELETE"), &Value::Null));
    assert_eq!(request["oldObject"]["metadata"]["name"], "a");
    assert_eq!(request["options"]["kind"], "DeleteOptions");
}

#[tokio::test]
async fn the_callers_trace_is_passed_on_although_nothing_is_exported() {
    let stage = Stage::start(false).await;
    stage.configure(MUTATING, "/x", json!({})).await;
    stage.in_force().await;
    stage.create("a", &caller()).await;
    let [call] = stage.hook.take().try_into().unwrap();
    assert_eq!(call.headers["traceparent"], format!("00-{TRACE}-{CALLER}-01"));
    assert_eq!(
        (&call.headers["tracestate"], &call.headers["baggage"]),
        (&"vendor=value".parse().unwrap(), &"key=value".parse().unwrap())
    );
}

/// The chain of KEP-647: client → API request → webhook → its call back, in one trace.
#[tokio::test]
async fn a_call_back_with_the_same_traceparent_is_in_the_same_trace() {
    let stage = Stage::start(true).await;
    stage.configure(MUTATING, "/back", json!({})).await;
    stage.in_force().await;
    let (code, ..) = stage.create("a", &caller()).await;
    assert_eq!(code, 201);
    let [call] = stage.hook.take().try_into().unwrap();
    let passed = call.headers["traceparent"].to_str().unwrap().to_owned();
    let spans = stage.spans_of(TRACE).await;
    let span = |name: &str| {
        let mut found = spans.iter().filter(|span| span.name == name);
        let span = found.next().unwrap_or_else(|| panic!("no span {name:?}"));
        assert!(found.next().is_none(), "one span {name:?}");
        span
    };
    let create = span("POST /api/v1/namespaces/{:namespace}/configmaps");
    let call = span("Call mutating webhook");
    let client = span("HTTP POST");
    let back = span("GET /api/v1/namespaces/{:namespace}/secrets/{:name}");
    assert_eq!(hex(&create.parent_span_id), CALLER);
    assert_eq!(call.parent_span_id, span("Create").span_id);
    assert_eq!(client.parent_span_id, call.span_id);
    assert_eq!(passed, format!("00-{TRACE}-{}-01", hex(&client.span_id)));
    assert_eq!(back.parent_span_id, client.span_id);
    assert!(call.events.iter().any(|event| event.name == "Request completed"));
}
