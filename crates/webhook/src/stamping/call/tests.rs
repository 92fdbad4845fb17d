//! Calls, their responses and their spans.

use std::sync::Arc;

use http::HeaderValue;
use kubewake_trail::{NamespaceTrust, Options};
use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use serde_json::json;

use super::*;

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const WRITER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const SAME_TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01";
const PARENT: &str = "tracing.k8s.io/traceparent";

struct Stage {
    webhook: StampWebhook,
    exporter: InMemorySpanExporter,
    _provider: SdkTracerProvider,
}

fn stage() -> Stage {
    stage_with(Options::default())
}

fn stage_with(options: Options) -> Stage {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let tracer = BoxedTracer::new(Box::new(provider.tracer("test")));
    Stage { webhook: StampWebhook::new(tracer, options), exporter, _provider: provider }
}

fn object(data: &str, annotations: Value) -> Value {
    json!({ "metadata": { "name": "a", "annotations": annotations }, "data": { "a": data } })
}

fn review(old: Value, new: Value) -> Value {
    let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {
        "uid": "call", "operation": operation, "name": "a", "namespace": "shop", "dryRun": false, "userInfo": {},
        "kind": { "group": "", "version": "v1", "kind": "ConfigMap" },
        "resource": { "group": "", "version": "v1", "resource": "configmaps" },
        "object": new, "oldObject": old,
    } })
}

impl Stage {
    /// The annotations under our keys after a call, and its span.
    fn call(&self, review: &Value, caller: Option<&str>) -> (Value, SpanData) {
        let mut headers = HeaderMap::new();
        caller.map(|caller| headers.insert("traceparent", HeaderValue::from_str(caller).unwrap()));
        let answer = self.webhook.handle_call(&headers, review.to_string().as_bytes(), SystemTime::now());
        assert_eq!(answer.status, StatusCode::OK);
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("call"), &json!(true)));
        let patch = &answer["response"]["patch"];
        let mut patched = review["request"]["object"].clone();
        if !patch.is_null() {
            let bytes: k8s_openapi::ByteString = serde_json::from_value(patch.clone()).unwrap();
            for operation in serde_json::from_slice::<Vec<Value>>(&bytes.0).unwrap() {
                apply(&mut patched, &operation);
            }
        }
        let spans = self.exporter.get_finished_spans().unwrap();
        self.exporter.reset();
        let [span] = &spans[..] else { panic!("{spans:?}") };
        (patched["metadata"]["annotations"].clone(), span.clone())
    }
}

/// The subset of JSON Patch that the tests need.
fn apply(object: &mut Value, operation: &Value) {
    let path = operation["path"].as_str().unwrap().strip_prefix("/metadata/annotations").unwrap();
    let annotations = &mut object["metadata"]["annotations"];
    let key = path.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
    match (operation["op"].as_str(), key.is_empty()) {
        (Some("add"), true) => *annotations = operation["value"].clone(),
        (Some("add"), false) => annotations[key] = operation["value"].clone(),
        _ => drop(annotations.as_object_mut().unwrap().remove(&key)),
    }
}

fn attribute(span: &SpanData, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

fn own(span: &SpanData) -> String {
    context::traceparent(&span.span_context)
}

fn links(span: &SpanData) -> Vec<String> {
    span.links.iter().map(|link| context::traceparent(&link.span_context)).collect()
}

#[test]
fn a_new_object_continues_the_trace_of_the_api_server() {
    let stage = stage();
    let (annotations, span) = stage.call(&review(json!(null), object("1", json!({ "other": "x" }))), Some(CALLER));
    assert_eq!((&*span.name, span.span_kind.clone()), ("stamp ConfigMap", SpanKind::Server));
    assert_eq!(
        (span.span_context.trace_id().to_string(), span.parent_span_id.to_string()),
        (CALLER[3..35].into(), CALLER[36..52].into())
    );
    assert_eq!((&annotations[PARENT], &annotations["other"]), (&json!(own(&span)), &json!("x")));
    assert_eq!(attribute(&span, "trail.outcome"), "stamped");
    assert_eq!(attribute(&span, "k8s.namespace.name"), "shop");
    assert_eq!(stage.webhook.counters().calls(CallOutcome::Stamped), 1);
}

#[test]
fn without_a_caller_a_trace_begins() {
    let (annotations, span) = stage().call(&review(json!(null), json!({ "metadata": {} })), None);
    assert_eq!(span.parent_span_id, SpanId::INVALID);
    assert_eq!(annotations[PARENT], own(&span));
}

#[test]
fn what_is_replaced_is_linked() {
    let stage = stage();
    let before = object("1", json!({ PARENT: WRITER }));
    let after = object("2", json!({ PARENT: WRITER }));
    let (annotations, span) = stage.call(&review(before, after), Some(CALLER));
    assert_eq!(links(&span), [WRITER]);
    assert_eq!(
        (&annotations[PARENT], &annotations["trail.kubewake.io/previous"]),
        (&json!(own(&span)), &json!(WRITER))
    );
}

#[test]
fn a_writers_own_context_is_continued_and_the_api_server_is_linked() {
    let stage = stage();
    let (annotations, span) = stage.call(&review(json!(null), object("1", json!({ PARENT: WRITER }))), Some(CALLER));
    assert_eq!(annotations[PARENT], WRITER);
    assert_eq!((span.parent_span_id.to_string(), links(&span)), (WRITER[36..52].to_owned(), vec![CALLER.to_owned()]));
    assert_eq!(attribute(&span, "trail.outcome"), "kept");
    // Both contexts are in one trace, so there is no link.
    let (annotations, span) =
        stage.call(&review(json!(null), object("1", json!({ PARENT: SAME_TRACE }))), Some(CALLER));
    assert_eq!(annotations[PARENT], SAME_TRACE);
    assert_eq!((span.parent_span_id.to_string(), links(&span)), (CALLER[36..52].to_owned(), vec![]));
}

#[test]
fn a_dropped_context_comes_back_and_labels_make_no_stamp() {
    let stage = stage();
    let old = object("1", json!({ PARENT: WRITER }));
    let (annotations, span) =
        stage.call(&review(old.clone(), json!({ "metadata": {}, "data": { "a": "1" } })), Some(CALLER));
    assert_eq!((&annotations[PARENT], &*attribute(&span, "trail.outcome")), (&json!(WRITER), "restored"));
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    let (annotations, span) = stage.call(&review(old, labelled), Some(CALLER));
    assert_eq!((annotations, &*attribute(&span, "trail.outcome")), (json!({ PARENT: WRITER }), "unchanged"));
}

#[test]
fn who_is_not_believed_is_stamped_over() {
    for (trust, linked) in
        [(NamespaceTrust::except(["shop"]), vec![]), (NamespaceTrust::only(["other"]).link_others(), vec![WRITER])]
    {
        let stage = stage_with(Options { trust, ..Options::default() });
        let (annotations, span) =
            stage.call(&review(json!(null), object("1", json!({ PARENT: WRITER }))), Some(CALLER));
        assert_eq!(annotations[PARENT], own(&span));
        assert_eq!(span.parent_span_id.to_string(), CALLER[36..52]);
        assert_eq!(links(&span), linked);
    }
}

#[test]
fn parts_of_objects_deletions_and_reviews_are_let_alone() {
    let stage = stage();
    let plain = || review(json!(null), object("1", json!({})));
    let mut status = plain();
    let mut deleted = plain();
    let mut lease = plain();
    let mut access = plain();
    status["request"]["subResource"] = json!("status");
    deleted["request"]["operation"] = json!("DELETE");
    lease["request"]["resource"] = json!({ "group": "coordination.k8s.io", "version": "v1", "resource": "leases" });
    access["request"]["resource"] =
        json!({ "group": "authorization.k8s.io", "version": "v1", "resource": "subjectaccessreviews" });
    for review in [status, deleted, lease, access] {
        let (annotations, span) = stage.call(&review, Some(CALLER));
        assert_eq!((annotations, &*attribute(&span, "trail.outcome")), (json!({}), "skipped"));
    }
    assert_eq!(stage.webhook.counters().calls(CallOutcome::Skipped), 4);
}

#[test]
fn garbage_is_ignored_and_counted() {
    let stage = stage();
    let (annotations, span) = stage.call(&review(json!(null), object("1", json!({ PARENT: "??" }))), Some(CALLER));
    assert_eq!(annotations[PARENT], own(&span));
    assert_eq!(stage.webhook.counters().unreadable_annotations(), 1);
}

#[test]
fn names_that_are_too_long_are_cut() {
    let mut review = review(json!(null), object("1", json!({})));
    review["request"]["kind"]["kind"] = json!("é".repeat(1 << 20));
    let (_, span) = stage().call(&review, None);
    assert!(span.name.len() <= 6 + MAX_NAME_BYTES && attribute(&span, "k8s.object.kind").len() <= MAX_NAME_BYTES);
}

#[test]
fn a_dry_run_is_answered_alike_and_says_so() {
    let mut review = review(json!(null), object("1", json!({})));
    review["request"]["dryRun"] = json!(true);
    let (annotations, span) = stage().call(&review, Some(CALLER));
    assert_eq!((&annotations[PARENT], &*attribute(&span, "trail.dry_run")), (&json!(own(&span)), "true"));
}

#[test]
fn bad_objects_pass_unchanged_and_are_counted() {
    let stage = stage();
    let full = json!({ "a": "x".repeat(256 << 10) });
    for (new, trouble) in [
        (json!({ "metadata": { "annotations": [] } }), CallTrouble::BadObject),
        (object("1", full), CallTrouble::NoRoom),
    ] {
        let (annotations, span) = stage.call(&review(json!(null), new.clone()), Some(CALLER));
        assert_eq!(annotations, new["metadata"]["annotations"]);
        assert!(matches!(span.status, Status::Error { .. }));
        assert_eq!(attribute(&span, "error.type"), trouble.name());
        assert_eq!(stage.webhook.counters().troubles(trouble), 1);
    }
}

#[test]
fn what_is_no_review_is_told_so() {
    let stage = stage();
    let answer = stage.webhook.handle_call(&HeaderMap::new(), b"{", SystemTime::now());
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(stage.webhook.counters().troubles(CallTrouble::NoReview), 1);
    let mut odd = review(json!(null), json!({}));
    odd["request"]["operation"] = json!("FLY");
    let (_, span) = stage.call_after_reset(&odd);
    assert_eq!(attribute(&span, "error.type"), "no_review");
}

impl Stage {
    fn call_after_reset(&self, review: &Value) -> (Value, SpanData) {
        self.exporter.reset();
        self.call(review, None)
    }
}

#[test]
fn where_nothing_is_recorded_the_api_servers_context_is_passed_on() {
    let tracer = BoxedTracer::new(Box::new(opentelemetry::trace::noop::NoopTracer::new()));
    let webhook = Arc::new(StampWebhook::new(tracer, Options::default()));
    let mut headers = HeaderMap::new();
    let body = review(json!(null), object("1", json!({}))).to_string();
    let unchanged = webhook.handle_call(&headers, body.as_bytes(), SystemTime::now());
    assert!(!String::from_utf8(unchanged.body).unwrap().contains("patch"));
    headers.insert("traceparent", HeaderValue::from_static(CALLER));
    let answer = webhook.handle_call(&headers, body.as_bytes(), SystemTime::now());
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    let patch: k8s_openapi::ByteString = serde_json::from_value(answer["response"]["patch"].clone()).unwrap();
    assert!(String::from_utf8(patch.0).unwrap().contains(CALLER));
}

#[test]
fn what_has_no_name_yet_is_called_by_none() {
    let stage = stage();
    let named = stage.call(&review(Value::Null, object("x", json!({}))), None).1;
    assert_eq!(
        (attribute(&named, "k8s.object.name"), attribute(&named, "k8s.object.generate_name")),
        ("a".into(), String::new())
    );
    let mut unnamed = review(Value::Null, json!({ "metadata": { "generateName": "web-" } }));
    unnamed["request"]["name"] = json!("");
    let span = stage.call(&unnamed, None).1;
    assert_eq!(
        (attribute(&span, "k8s.object.name"), attribute(&span, "k8s.object.generate_name")),
        (String::new(), "web-".into())
    );
}
