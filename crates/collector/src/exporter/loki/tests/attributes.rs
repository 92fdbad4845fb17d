//! Labels, tenants and metadata.

use super::*;

/// The labels, lines and tenant that a resource becomes.
async fn stored(more: &str, request: ResourceLogs) -> ((String, String), Vec<Line>) {
    let loki = StrictLoki::storing(Limits::default()).await;
    exporter(&loki, more).send(&batch(vec![request])).await.unwrap();
    loki.only_stream()
}

fn metadata(line: &Line) -> Vec<(&str, &str)> {
    line.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

#[tokio::test]
async fn record_becomes_a_line_with_labels_and_metadata() {
    let mut one = record(5, "GET / 200");
    one.severity_number = 9;
    one.severity_text = "INFO".into();
    one.trace_id = vec![0xab; 16];
    one.span_id = vec![1; 8];
    one.attributes = attributes(vec![("http.status", number(200)), ("tags", list(vec![text("a"), number(1)]))]);
    let mut request = resource(
        vec![("k8s.namespace.name", text("shop")), ("service.name", text("cart")), ("k8s.pod.name", text("cart-1"))],
        vec![one],
    );
    request.scope_logs[0].scope =
        Some(opentelemetry_proto::tonic::common::v1::InstrumentationScope { name: "lib".into(), ..Default::default() });
    let ((tenant, labels), lines) = stored("", request).await;
    assert_eq!((tenant.as_str(), labels.as_str()), ("", r#"{k8s_namespace_name="shop", service_name="cart"}"#));
    let [line] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((line.time, line.text.as_str()), (TIME + 5, "GET / 200"));
    let expected = [
        ("http_status", "200"),
        ("k8s_pod_name", "cart-1"),
        ("scope_name", "lib"),
        ("severity_number", "9"),
        ("severity_text", "INFO"),
        ("span_id", "0101010101010101"),
        ("tags", r#"["a",1]"#),
        ("trace_id", "abababababababababababababababab"),
    ];
    assert_eq!(metadata(line), expected);
}

#[tokio::test]
async fn body_that_is_no_text_is_json() {
    let body = map(vec![("a", number(1)), ("b", list(vec![text("x\"y")]))]);
    let one = LogRecord { body: Some(body), ..record(0, "") };
    let (_, lines) = stored("", namespace("shop", vec![one, LogRecord { body: None, ..record(1, "") }])).await;
    assert_eq!((lines[0].text.as_str(), lines[1].text.as_str()), (r#"{"a":1,"b":["x\"y"]}"#, ""));
}

#[tokio::test]
async fn configured_labels_replace_the_default_ones() {
    let more = ", labels: {cluster: prod, ns: 'n-%{k8s.namespace.name}', pod: '%{k8s.pod.name}'}";
    let ((_, labels), lines) = stored(more, namespace("a\"b\\c\nd", vec![record(0, "x")])).await;
    assert_eq!(labels, r#"{cluster="prod", ns="n-a\"b\\c_d"}"#);
    assert_eq!(metadata(&lines[0]), [("k8s_namespace_name", "a\"b\\c\nd")], "the label is more than the attribute");
}

#[tokio::test]
async fn record_without_labels_is_of_an_unknown_service() {
    let ((_, labels), _) = stored("", resource(vec![], vec![record(0, "x")])).await;
    assert_eq!(labels, r#"{service_name="unknown_service"}"#);
    let ((_, labels), _) = stored(", labels: {}", namespace("shop", vec![record(0, "x")])).await;
    assert_eq!(labels, r#"{service_name="unknown_service"}"#);
}

#[tokio::test]
async fn line_does_not_choose_its_tenant_or_labels() {
    let mut one = record(0, "x");
    one.attributes = attributes(vec![
        ("k8s.namespace.name", text("kube-system")),
        ("k8s_namespace_name", text("again")),
        ("loki.tenant", text("admin")),
        ("service.name", text("other")),
    ]);
    let more = ", tenant: '%{k8s.namespace.name}'";
    let ((tenant, labels), lines) = stored(more, namespace("shop", vec![one.clone()])).await;
    assert_eq!((tenant.as_str(), labels.as_str()), ("shop", r#"{k8s_namespace_name="shop"}"#));
    let expected = [
        ("k8s_namespace_name_extracted", "kube-system"),
        ("loki_tenant", "admin"),
        ("service_name_extracted", "other"),
    ];
    assert_eq!(metadata(&lines[0]), expected, "the first attribute of a name counts");

    let more = ", tenant: '%{k8s.namespace.name:-none}', allow_record_attributes: [k8s.namespace.name]";
    let ((tenant, _), _) = stored(more, namespace("shop", vec![one.clone()])).await;
    assert_eq!(tenant, "shop", "the resource wins");
    let ((tenant, _), _) = stored(more, resource(vec![], vec![one])).await;
    assert_eq!(tenant, "kube-system", "the settings allow it");
}

#[tokio::test]
async fn tenants_have_only_characters_that_loki_allows() {
    for (name, tenant) in [("a/b|c", "a_b_c"), ("ä", "_"), ("a\r\nX-Other: b", "a__X-Other__b")] {
        let ((stored, _), _) = stored(", tenant: '%{k8s.namespace.name}'", namespace(name, vec![record(0, "x")])).await;
        assert_eq!(stored, tenant);
    }
}

#[tokio::test]
async fn record_without_a_tenant_is_rejected_and_the_others_are_sent() {
    let loki = StrictLoki::storing(Limits::default()).await;
    let exporter = exporter(&loki, ", tenant: '%{k8s.namespace.name}'");
    let unnamed = || resource(vec![], vec![record(0, "no tenant")]);
    let dots = namespace("..", vec![record(0, "no tenant")]);
    let success = exporter.send(&batch(vec![unnamed(), namespace("a", vec![record(1, "x")]), dots])).await.unwrap();
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::Target, 2)]);
    assert_eq!(loki.texts("a"), ["x"]);
    assert_eq!(exporter.send(&batch(vec![unnamed()])).await.unwrap().rejected.total(), 1);
    assert_eq!(loki.requests().len(), 1, "there is nothing to send");
}

#[tokio::test]
async fn streams_beyond_the_maximum_have_the_fixed_labels_and_their_attributes_in_the_metadata() {
    let loki = StrictLoki::storing(Limits::default()).await;
    let exporter = exporter(&loki, ", max_streams: 2, labels: {cluster: prod, ns: '%{k8s.namespace.name}'}");
    for name in ["a", "b", "c", "a", "d"] {
        exporter.send(&batch(vec![namespace(name, vec![record(0, name)])])).await.unwrap();
    }
    let stored = loki.stored();
    let labels: Vec<&str> = stored.keys().map(|(_, labels)| labels.as_str()).collect();
    assert_eq!(labels, [r#"{cluster="prod", ns="a"}"#, r#"{cluster="prod", ns="b"}"#, r#"{cluster="prod"}"#]);
    let rest = &stored[&(String::new(), r#"{cluster="prod"}"#.to_owned())];
    let named: Vec<_> = rest.iter().map(|line| (line.text.as_str(), metadata(line))).collect();
    assert_eq!(named, [("c", vec![("k8s_namespace_name", "c")]), ("d", vec![("k8s_namespace_name", "d")])]);
}

#[tokio::test]
async fn tenants_beyond_the_maximum_are_rejected() {
    let loki = StrictLoki::storing(Limits::default()).await;
    let exporter = exporter(&loki, ", max_tenants: 1, tenant: '%{k8s.namespace.name}'");
    let both = batch(vec![namespace("a", vec![record(0, "x")]), namespace("b", vec![record(0, "y")])]);
    let success = exporter.send(&both).await.unwrap();
    assert_eq!(success.rejected.iter().collect::<Vec<_>>(), [(RejectReason::Cardinality, 1)]);
    assert_eq!((loki.texts("a"), loki.texts("b")), (vec!["x".to_owned()], vec![]));
}

#[tokio::test]
async fn maps_are_flattened_and_names_are_those_of_labels() {
    let mut one = record(0, "x");
    one.attributes = attributes(vec![
        ("a", map(vec![("b.c", number(1)), ("d", map(vec![("", text("x"))]))])),
        ("1st", text("digit")),
        ("", text("no name")),
        ("a.b.c", text("taken")),
        ("empty", text("")),
    ]);
    let (_, lines) = stored(", labels: {job: x}", resource(vec![], vec![one])).await;
    assert_eq!(metadata(&lines[0]), [("_1st", "digit"), ("a_b_c", "1"), ("a_b_c_extracted", "taken"), ("a_d_", "x")]);
}

#[tokio::test]
async fn metadata_can_be_switched_off() {
    let (_, lines) = stored(", structured_metadata: {enabled: false}", namespace("shop", vec![record(0, "x")])).await;
    assert_eq!(lines, [line(0, "x")]);
}
