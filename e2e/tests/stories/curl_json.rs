//! Somebody tries the collector with `curl` and JSON.

use kubewake_e2e::{
    CollectorProcess, ConfigBuilder, SinkProcess, curl, grpc_to,
    otlp::{gzip, log_json, metric_json, spans_json},
};
use kubewake_otlp::Signal;
use serde_json::{Value, json};

fn post(collector: &CollectorProcess, signal: Signal, headers: &[&str], body: &[u8]) -> (u16, String, Value) {
    let url = format!("http://{}/v1/{signal}", collector.http());
    let mut args = vec!["-H", "content-type: application/json", "--data-binary", "@-", &url];
    args.extend(headers.iter().flat_map(|header| ["-H", header]));
    let answer = curl(args, body).unwrap();
    (answer.status, answer.header("content-type").to_owned(), answer.json())
}

fn taken() -> (u16, String, Value) {
    (200, "application/json".to_owned(), json!({"partialSuccess": {}}))
}

#[test]
fn json_is_taken_and_answered_in_json() {
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))).start();
    let sent = [
        (Signal::Traces, spans_json(&["buy", "pay ✓"])),
        (Signal::Logs, log_json("sold out")),
        (Signal::Metrics, metric_json("sales")),
    ];
    for (signal, body) in &sent {
        assert_eq!(post(&collector, *signal, &[], body.as_bytes()), taken(), "{signal}");
    }
    sink.wait_for_items(4);
    for (signal, body) in sent {
        assert_eq!(sink.received(signal), [serde_json::from_str::<Value>(&body).unwrap()], "{signal}");
    }
}

#[test]
fn json_may_be_compressed() {
    let sink = SinkProcess::start();
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("otlp", grpc_to(sink.address()))).start();
    let body = gzip(spans_json(&["buy"]).as_bytes());
    assert_eq!(post(&collector, Signal::Traces, &["content-encoding: gzip"], &body), taken());
    sink.wait_for_items(1);
    assert_eq!(sink.span_names(), ["buy"]);
}

#[test]
fn a_refusal_is_json_too() {
    let collector = CollectorProcess::with_config(ConfigBuilder::exporting_to("nop", "")).start();
    let (status, content_type, answer) = post(&collector, Signal::Traces, &[], b"{\"resourceSpans\": [{]}");
    assert_eq!((status, &*content_type, &answer["code"]), (400, "application/json", &json!(3)));
    assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer}");
}
