//! Programs that speak OpenCensus, and nothing newer, send through the collector.

use kubewake_e2e::{CollectorProcess, ConfigBuilder, SinkProcess, TestAuthority, curl, grpc_to, python, wait_until};
use kubewake_otlp::Signal;
use serde_json::{Value, json};

fn config(sink: &SinkProcess, more: &str) -> ConfigBuilder {
    // One at a time, so that requests arrive in their order.
    let exporter = grpc_to(sink.address()).with_setting("sending_queue: {num_consumers: 1}");
    ConfigBuilder::new()
        .receiver("opencensus", format!(r#"{{endpoint: "127.0.0.1:0", {more}}}"#))
        .exporter("otlp", exporter)
        .pipeline_of("traces", "otlp, opencensus", "", "otlp")
}

/// The requests that arrive: the exporter sends a span as soon as it ends, the inner one first.
fn received(sink: &SinkProcess) -> [Value; 2] {
    sink.wait_for_items(2);
    sink.received(Signal::Traces).try_into().unwrap()
}

fn attributes(of: &Value) -> Vec<(&str, &Value)> {
    let pairs = of["attributes"].as_array().map(Vec::as_slice).unwrap_or_default();
    pairs.iter().map(|pair| (pair["key"].as_str().unwrap(), &pair["value"])).collect()
}

fn has(of: &Value, expected: &[(&str, Value)]) {
    let found = attributes(of);
    for (key, value) in expected {
        assert!(found.contains(&(key, value)), "{key} is not {value} in {found:?}");
    }
}

#[test]
fn the_python_exporter_sends_a_trace() {
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(config(&sink, "")).start();
    let endpoint = collector.listener("opencensus/grpc").to_string();
    let sent = python::run_opencensus("opencensus_send.py", &[&endpoint]);
    let requests = received(&sink);
    has(
        &requests[0]["resourceSpans"][0]["resource"],
        &[
            ("service.name", json!({"stringValue": "shop ü"})),
            ("host.name", json!({"stringValue": "till-1"})),
            ("telemetry.sdk.language", json!({"stringValue": "python"})),
            ("telemetry.sdk.version", json!({"stringValue": "0.11.4"})),
        ],
    );
    let [pay, order] = requests.each_ref().map(|request| &request["resourceSpans"][0]["scopeSpans"][0]["spans"][0]);
    assert_eq!((&order["name"], &pay["name"]), (&json!("order"), &json!("pay")));
    assert_eq!((&order["kind"], &pay["kind"]), (&json!(2), &json!(3)));
    assert_eq!(pay["parentSpanId"], order["spanId"]);
    assert_eq!(pay["traceId"], order["traceId"]);
    assert_eq!(pay["status"], json!({"message": "no such card ✗", "code": 2}));
    has(
        order,
        &[
            ("text", json!({"stringValue": "Grüße, 世界 🚢"})),
            ("number", json!({"intValue": "-7"})),
            ("flag", json!({"boolValue": true})),
            ("ratio", json!({"doubleValue": 0.1})),
        ],
    );
    let events = order["events"].as_array().unwrap();
    assert_eq!(events[0]["name"], "packed");
    has(&events[0], &[("boxes", json!({"intValue": "3"})), ("fragile", json!({"boolValue": true}))]);
    assert_eq!((&events[1]["name"], &events[1]["timeUnixNano"]), (&json!("message"), &json!("1769860800250000000")));
    has(
        &events[1],
        &[("message.type", json!({"stringValue": "SENT"})), ("messaging.message.id", json!({"intValue": "9"}))],
    );
    let link = json!({"traceId": "1234567890abcdef1234567890abcdef", "spanId": "fedcba0987654321"});
    assert_eq!(order["links"], json!([link]));
    assert_eq!(collector.metric("otelcol_receiver_accepted_spans", &[r#"receiver="opencensus""#]), 2.0);

    // The same requests in Google's JSON become the same OTLP.
    let other = SinkProcess::start();
    let collector = CollectorProcess::with_config(config(&other, "")).start();
    let url = format!("http://{}/v1/trace", collector.listener("opencensus/grpc"));
    for request in sent.as_array().unwrap() {
        let args = ["-H", "content-type: application/json", "--data-binary", "@-", &url];
        let answer = curl(args, request.to_string().as_bytes()).unwrap();
        assert_eq!((answer.status, answer.text()), (200, "{}".to_owned()));
    }
    assert_eq!(received(&other).map(sorted), requests.map(sorted));
}

/// Attributes are a map in OpenCensus, whose order each library makes up for itself.
fn sorted(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => fields.values_mut().for_each(|inner| *inner = sorted(inner.take())),
        Value::Array(items) => {
            items.iter_mut().for_each(|inner| *inner = sorted(inner.take()));
            items.sort_by_key(|item| item["key"].as_str().map(str::to_owned));
        }
        _ => {}
    }
    value
}

#[test]
fn the_python_exporter_sends_over_tls() {
    let sink = SinkProcess::start();
    let authority = TestAuthority::new("tests");
    let server = authority.sign("server");
    let tls = r#"tls: {cert_file: "${env:DIR}/server.pem", key_file: "${env:DIR}/server.key"}"#;
    let builder = CollectorProcess::with_config(config(&sink, tls));
    let collector =
        builder.file("server.pem", server.cert).file("server.key", server.key).file("ca.pem", authority.pem()).start();
    let endpoint = format!("localhost:{}", collector.listener("opencensus/grpc").port());
    let ca = collector.folder().join("ca.pem").display().to_string();
    python::run_opencensus("opencensus_send.py", &[&endpoint, &ca]);
    sink.wait_for_items(2);
    let url = format!("https://{endpoint}/v1/trace");
    let body = br#"{"node": {}, "spans": [{"name": {"value": "json"}}]}"#;
    for version in ["--http1.1", "--http2"] {
        let answer = curl(["--cacert", &ca, version, "--data-binary", "@-", &url], body).unwrap();
        assert_eq!(answer.status, 200, "{version}: {}", answer.text());
    }
    sink.wait_for_items(4);
    assert_eq!(sink.span_names(), ["json", "json", "order", "pay"]);
}

#[test]
fn a_stream_waits_for_a_backend_that_hangs() {
    let sink = SinkProcess::hanging();
    let settings = grpc_to(sink.address()).with_setting("sending_queue: {queue_size: 1, num_consumers: 1}");
    let config = config(&sink, "").exporter("otlp", settings);
    let mut collector = CollectorProcess::with_config(config).start();
    let endpoint = collector.listener("opencensus/grpc").to_string();
    // One is on its way, one is in the queue, and the others are held by their senders.
    let senders: Vec<_> = (0..4)
        .map(|_| {
            let endpoint = endpoint.clone();
            std::thread::spawn(move || python::run_opencensus("opencensus_send.py", &[&endpoint]))
        })
        .collect();
    let full = r#"exporter="otlp""#;
    wait_until("the queue is full", || collector.metric("otelcol_exporter_enqueue_failed_spans", &[full]) > 0.0);
    sink.recover();
    senders.into_iter().for_each(|sender| drop(sender.join().unwrap()));
    sink.wait_for_items(8);
    assert_eq!(sink.count("duplicates"), 0);
    assert_eq!(collector.metric("otelcol_receiver_refused_spans", &[]), 0.0, "nobody was refused");
    assert!(collector.stop().success());
}
