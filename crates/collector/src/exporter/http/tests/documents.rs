//! What documents look like.

use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs};
use proptest::prelude::*;
use serde_json::json;

use super::*;

async fn document(more: &str, request: ResourceLogs) -> Value {
    let backend = taking().await;
    exporter(&backend, more).send(&batch(vec![request])).await.unwrap();
    documents(&backend.seen()).remove(0)
}

fn pod() -> Vec<(&'static str, opentelemetry_proto::tonic::common::v1::AnyValue)> {
    vec![
        ("k8s.namespace.name", text("shop")),
        ("k8s.pod.name", text("cart-1")),
        ("k8s.pod.uid", text("u-1")),
        ("k8s.container.name", text("main")),
        ("k8s.node.name", text("node-a")),
        ("k8s.pod.label.app.kubernetes.io/name", text("cart")),
        ("k8s.pod.annotation.a/b", text("c")),
        ("service.name", text("cart")),
    ]
}

#[tokio::test]
async fn document_has_the_pod_the_body_and_the_attributes() {
    let mut one = record(123_456_789, "bought");
    one.severity_number = 9;
    one.trace_id = vec![0xab; 16];
    one.attributes = attributes(vec![
        ("log.iostream", text("stdout")),
        ("log.original", text(r#"{"msg":"bought"}"#)),
        ("user.id", number(7)),
        ("items", list(vec![text("a"), map(vec![("b", number(1))])])),
    ]);
    let expected = json!({
        "date": "2023-11-14T22:13:20.123456Z",
        "time": "2023-11-14T22:13:20.123456789Z",
        "stream": "stdout",
        "level": "info",
        "trace_id": "abababababababababababababababab",
        "message": "bought",
        "log": r#"{"msg":"bought"}"#,
        "kubernetes": {
            "namespace_name": "shop", "pod_name": "cart-1", "pod_id": "u-1", "container_name": "main", "host": "node-a",
            "labels": {"app.kubernetes.io/name": "cart"}, "annotations": {"a/b": "c"},
        },
        "resource": {"service.name": "cart"},
        "user.id": 7,
        "items": ["a", {"b": 1}],
    });
    assert_eq!(document("", resource(pod(), vec![one])).await, expected);
}

#[tokio::test]
async fn record_does_not_replace_what_says_where_it_is_from() {
    let mut one = record(0, "own");
    let claims = ["kubernetes", "resource", "stream", "date", "time", "log", "message", "trace_id"];
    one.attributes = attributes(claims.iter().map(|claim| (*claim, map(vec![("pod_name", text("other"))]))).collect());
    one.trace_id = vec![1; 16];
    let document = document("", resource(pod(), vec![one])).await;
    assert_eq!(document["kubernetes"]["pod_name"], "cart-1");
    assert_eq!((&document["message"], &document["resource"]), (&"own".into(), &json!({"service.name": "cart"})));
    assert_eq!(document["date"], document["time"].as_str().unwrap().replace("000Z", "Z"));
    assert_eq!(document["stream"], json!({"pod_name": "other"}), "the source names no stream");
}

#[tokio::test]
async fn attributes_can_have_an_object_of_their_own() {
    let mut one = record(0, "x");
    one.attributes = attributes(vec![("kubernetes", text("own")), ("a.b", number(1))]);
    let document = document(", merge_attributes: false, dedot: nested", resource(vec![], vec![one])).await;
    assert_eq!(document["attributes"], json!({"kubernetes": "own", "a": {"b": 1}}));
    assert_eq!(document.get("kubernetes"), None);
}

#[tokio::test]
async fn dots_are_replaced_where_the_settings_say_so() {
    let mut one = record(0, "x");
    one.attributes = attributes(vec![("a.b", number(1))]);
    let request = || resource(pod(), vec![one.clone()]);
    let kubernetes = document(", dedot: kubernetes", request()).await;
    assert_eq!(kubernetes["kubernetes"]["labels"], json!({"app_kubernetes_io_name": "cart"}));
    assert_eq!(kubernetes["kubernetes"]["annotations"], json!({"a_b": "c"}));
    assert_eq!((&kubernetes["a.b"], &kubernetes["resource"]["service.name"]), (&1.into(), &"cart".into()));
    let all = document(", dedot: all_keys", request()).await;
    assert_eq!((&all["a_b"], &all["resource"]["service_name"]), (&1.into(), &"cart".into()));
}

#[tokio::test]
async fn keys_of_date_and_body_are_configurable() {
    let mut one = record(0, "body");
    let more = ", date_key: time, date_format: epoch, body_key: log";
    let plain = document(more, resource(vec![], vec![one.clone()])).await;
    assert_eq!(plain, json!({"time": TIME / 1_000_000_000, "log": "body"}));
    one.attributes = attributes(vec![("log.original", text("line"))]);
    let kept = document(more, resource(vec![], vec![one.clone()])).await;
    assert_eq!((&kept["log"], &kept["message"]), (&"line".into(), &"body".into()));
    assert_eq!(document(", date_key: ''", resource(vec![], vec![one])).await.get("date"), None);
}

#[tokio::test]
async fn body_that_is_no_text_stays_what_it_is() {
    let one = LogRecord { body: Some(map(vec![("a", number(1))])), ..record(0, "") };
    assert_eq!(document("", resource(vec![], vec![one])).await["message"], json!({"a": 1}));
}

#[tokio::test]
async fn lines_are_documents_of_their_own() {
    let backend = taking().await;
    let lines = vec![record(0, "one\ntwo"), record(1, "three")];
    exporter(&backend, ", format: json_lines, method: put").send(&batch(vec![namespace("a", lines)])).await.unwrap();
    let seen = backend.only();
    assert_eq!((seen.method, seen.headers["content-type"].to_str().unwrap()), (Method::PUT, "application/x-ndjson"));
    let text = std::str::from_utf8(&seen.body).unwrap();
    let messages: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&messages[0]["message"], &messages[1]["message"]), (&"one\ntwo".into(), &"three".into()));
    assert!(text.ends_with('\n') && messages.len() == 2);
}

#[tokio::test]
async fn body_is_compressed_and_its_type_can_be_another_one() {
    let backend = taking().await;
    let mut settings = settings(&backend, ", headers: {Content-Type: application/logs}");
    settings.http.compression = kubewake_config::model::CompressionType::Gzip;
    build(&settings, None).unwrap().exporter.send(&batch(vec![namespace("a", vec![record(0, "x")])])).await.unwrap();
    let seen = backend.only();
    assert_eq!((seen.header("content-encoding"), seen.header("content-type")), ("gzip", "application/logs"));
    assert_eq!((seen.uri.path(), &seen.method), ("/in", &Method::POST));
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&seen.body[..]).read_to_end(&mut plain).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&plain).unwrap()[0]["message"], "x");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes in a request of the right shape become documents, one for each record.
    #[test]
    fn any_record_is_one_document(records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..5)) {
        use kubewake_otlp::wire::put_bytes;
        let mut scope = Vec::new();
        let mut count = 0;
        for record in &records {
            let mut with_record = scope.clone();
            put_bytes(&mut with_record, 2, record);
            // Only what the receiver takes reaches the exporter.
            let mut request = Vec::new();
            let mut entry = Vec::new();
            put_bytes(&mut entry, 2, &with_record);
            put_bytes(&mut request, 1, &entry);
            if kubewake_otlp::scan(Signal::Logs, &request).is_ok() {
                scope = with_record;
                count += 1;
            }
        }
        let mut entry = Vec::new();
        put_bytes(&mut entry, 2, &scope);
        let mut request = Vec::new();
        put_bytes(&mut request, 1, &entry);
        let mut one = crate::net::testing::batch(Signal::Logs, &[&request]);
        one.retain_mut(|part| {
            part.items = count;
            true
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let seen = runtime.block_on(async {
            let backend = taking().await;
            exporter(&backend, "").send(&one).await.unwrap();
            backend.seen()
        });
        prop_assert_eq!(documents(&seen).len(), count);
    }
}
