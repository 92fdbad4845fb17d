use kubewake_otlp::Signal;
use serde_json::{Value, json};

use crate::exporter::bulk_index::tests::{documents, request};

const LOG: &str = r#"{"resourceLogs":[{"schemaUrl":"https://r","resource":{"droppedAttributesCount":1,"attributes":[
    {"key":"k8s.namespace.name","value":{"stringValue":"shop"}},{"key":"host.name","value":{"stringValue":"n1"}},
    {"key":"data_stream.dataset","value":{"stringValue":"Web-App"}}]},
  "scopeLogs":[{"schemaUrl":"https://s","scope":{"name":"lib","version":"1"},"logRecords":[
    {"timeUnixNano":"1700000000123000005","observedTimeUnixNano":"1700000001000000000","severityNumber":9,
     "severityText":"INFO","traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","eventName":"e",
     "body":{"stringValue":"hello"},"attributes":[{"key":"n","value":{"intValue":"7"}},
       {"key":"k8s.namespace.name","value":{"stringValue":"evil"}},{"key":"f","value":{"doubleValue":2}}]}]}]}]}"#;

const SPAN: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},
  "scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174",
    "parentSpanId":"eee19b7ec3c1b175","name":"buy","kind":2,"startTimeUnixNano":"1700000000000000000",
    "endTimeUnixNano":"1700000000250000000","status":{"code":2,"message":"no"},
    "attributes":[{"key":"exception.type","value":{"stringValue":"E"}}],
    "events":[{"timeUnixNano":"1700000000100000000","name":"paid","attributes":[{"key":"a","value":{"boolValue":true}}]}],
    "links":[{"traceId":"5b8efff798038103d269b633813fc60d","spanId":"eee19b7ec3c1b176"}]}]}]}]}"#;

/// The action and the document of each record.
fn all(signal: Signal, mapping: &str, text: &str) -> Vec<(Value, Value)> {
    documents(&format!("{{endpoint: 'http://x', document_ids: none, mapping: {mapping}}}"), &request(signal, text))
}

fn only(signal: Signal, mapping: &str, text: &str) -> Value {
    let mut all = all(signal, mapping, text);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).1
}

#[test]
fn otel_log_has_the_structure_of_opentelemetry() {
    let mut all = all(Signal::Logs, "{mode: otel}", LOG);
    let (action, document) = all.remove(0);
    assert_eq!(action, json!({"create": {"_index": "logs-web_app.otel-default", "require_data_stream": true}}));
    assert_eq!(
        document,
        json!({
            "@timestamp": "1700000000123.000005",
            "observed_timestamp": "1700000001000.000000",
            "data_stream": {"type": "logs", "dataset": "web_app.otel", "namespace": "default"},
            "severity_text": "INFO",
            "severity_number": 9,
            "trace_id": "5b8efff798038103d269b633813fc60c",
            "span_id": "eee19b7ec3c1b174",
            "attributes": {"n": 7, "k8s.namespace.name": "evil", "f": 2.0},
            "event_name": "e",
            "resource": {"schema_url": "https://r", "dropped_attributes_count": 1,
                "attributes": {"k8s.namespace.name": "shop", "host.name": "n1"}},
            "scope": {"schema_url": "https://s", "name": "lib", "version": "1"},
            "body": {"text": "hello"},
        })
    );
}

#[test]
fn otel_body_is_text_or_a_structure() {
    for (body, expected) in [
        (r#"{"kvlistValue":{"values":[{"key":"a.b","value":{"intValue":"1"}}]}}"#, json!({"structured": {"a.b": 1}})),
        (r#"{"arrayValue":{"values":[{"intValue":"1"}]}}"#, json!({"structured": {"value": [1]}})),
        (
            r#"{"arrayValue":{"values":[{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"1"}}]}}]}}"#,
            json!({"structured": [{"a": 1}]}),
        ),
        (r#"{"intValue":"42"}"#, json!({"text": "42"})),
        (r#"{"bytesValue":"qww="}"#, json!({"text": "ab0c"})),
    ] {
        let text = format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"body":{body}}}]}}]}}]}}"#);
        let document = only(Signal::Logs, "{mode: otel}", &text);
        assert_eq!(document["body"], expected);
        assert!(document["@timestamp"].is_string(), "a record without a time gets one");
    }
}

#[test]
fn otel_span_and_its_events_are_documents_of_their_own() {
    let all = all(Signal::Traces, "{mode: otel}", SPAN);
    assert_eq!(all[0].0["create"]["_index"], "traces-generic.otel-default");
    assert_eq!(
        all[0].1,
        json!({
            "@timestamp": "1700000000000.000000",
            "data_stream": {"type": "traces", "dataset": "generic.otel", "namespace": "default"},
            "trace_id": "5b8efff798038103d269b633813fc60c",
            "span_id": "eee19b7ec3c1b174",
            "parent_span_id": "eee19b7ec3c1b175",
            "name": "buy",
            "kind": "Server",
            "duration": 250_000_000,
            "attributes": {"exception.type": "E"},
            "links": [{"trace_id": "5b8efff798038103d269b633813fc60d", "span_id": "eee19b7ec3c1b176"}],
            "status": {"code": "Error", "message": "no"},
            "resource": {"attributes": {"service.name": "shop"}},
            "scope": {},
        })
    );
    assert_eq!(all[1].0["create"]["_index"], "logs-generic.otel-default");
    assert_eq!(
        all[1].1,
        json!({
            "@timestamp": "1700000000100.000000",
            "data_stream": {"type": "logs", "dataset": "generic.otel", "namespace": "default"},
            "trace_id": "5b8efff798038103d269b633813fc60c",
            "span_id": "eee19b7ec3c1b174",
            "event_name": "paid",
            "attributes": {"a": true},
            "resource": {"attributes": {"service.name": "shop"}},
            "scope": {},
        })
    );
    assert_eq!(all.len(), 2);
}

#[test]
fn ecs_log_has_the_names_of_the_schema_and_the_resource_wins() {
    assert_eq!(
        only(Signal::Logs, "{mode: ecs}", LOG),
        json!({
            "@timestamp": "2023-11-14T22:13:20.123000005Z",
            "trace": {"id": "5b8efff798038103d269b633813fc60c"},
            "span": {"id": "eee19b7ec3c1b174"},
            "event": {"severity": 9, "action": "e"},
            "log": {"level": "INFO"},
            "message": "hello",
            "data_stream": {"type": "logs", "dataset": "web_app", "namespace": "default"},
            "kubernetes": {"namespace": "shop"},
            "host": {"hostname": "n1", "name": "n1"},
            "k8s": {"namespace": {"name": "evil"}},
            "n": 7,
            "f": 2.0,
        })
    );
}

#[test]
fn ecs_span_has_the_names_of_the_schema() {
    let document = only(Signal::Traces, "{mode: ecs}", SPAN);
    assert_eq!(document["span"]["name"], "buy");
    assert_eq!(document["span"]["kind"], "SERVER");
    assert_eq!(document["parent"]["id"], "eee19b7ec3c1b175");
    assert_eq!(document["event"], json!({"outcome": "failure", "duration": 250_000_000}));
    assert_eq!(document["error"]["type"], "E");
    assert_eq!(document["service"]["name"], "shop");
    assert_eq!(document["span"]["events"][0]["name"], "paid");
}

#[test]
fn modes_none_and_raw_have_the_fields_of_the_record() {
    let document = only(Signal::Logs, "{mode: none}", LOG);
    assert_eq!(document["Body"], "hello");
    assert_eq!(document["Resource.k8s.namespace.name"], "shop");
    assert_eq!(document["Attributes.k8s.namespace.name"], "evil");
    assert_eq!(document["Scope.name"], "lib");
    assert_eq!(document["@timestamp"], "2023-11-14T22:13:20.123000005Z");
    let document = only(Signal::Logs, "{mode: raw}", LOG);
    assert_eq!((&document["n"], &document["SeverityNumber"]), (&json!(7), &json!(9)));
    let document = only(Signal::Traces, "{mode: none, dedot: nested}", SPAN);
    assert_eq!(document["Duration"], 250_000);
    assert_eq!(document["Kind"], "SPAN_KIND_SERVER");
    assert_eq!(document["Attributes"]["exception"]["type"], "E");
    assert_eq!(document["Link"][0]["spanID"], "eee19b7ec3c1b176");
}

#[test]
fn body_is_the_document_in_bodymap() {
    let text = |body: &str| {
        format!(r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"timeUnixNano":"1","body":{body}}}]}}]}}]}}"#)
    };
    let map = text(r#"{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"1"}}]}}"#);
    let time = "1970-01-01T00:00:00.000000001Z";
    assert_eq!(only(Signal::Logs, "{mode: bodymap}", &map), json!({"a": 1, "@timestamp": time}));
    let own = text(r#"{"kvlistValue":{"values":[{"key":"@timestamp","value":{"stringValue":"x"}}]}}"#);
    assert_eq!(only(Signal::Logs, "{mode: bodymap}", &own), json!({"@timestamp": "x"}));
    let plain = text(r#"{"stringValue":"hello"}"#);
    assert_eq!(only(Signal::Logs, "{mode: bodymap}", &plain), json!({"message": "hello", "@timestamp": time}));
}

#[test]
fn ss4o_documents_follow_the_simple_schema() {
    assert_eq!(
        only(Signal::Logs, "{mode: ss4o}", LOG),
        json!({
            "@timestamp": "2023-11-14T22:13:20.123000005Z",
            "observedTimestamp": "2023-11-14T22:13:21.000000000Z",
            "body": "hello",
            "severity": {"text": "INFO", "number": 9},
            "attributes": {"n": 7, "f": 2.0, "k8s.namespace.name": "evil",
                "data_stream": {"type": "logs", "dataset": "web_app", "namespace": "default"}},
            "eventName": "e",
            "traceId": "5b8efff798038103d269b633813fc60c",
            "spanId": "eee19b7ec3c1b174",
            "resource": {"k8s.namespace.name": "shop", "host.name": "n1", "data_stream.dataset": "Web-App"},
            "schemaUrl": "https://r",
            "instrumentationScope": {"name": "lib", "version": "1", "schemaUrl": "https://s"},
        })
    );
    let span = only(Signal::Traces, "{mode: ss4o}", SPAN);
    assert_eq!(span["startTime"], "2023-11-14T22:13:20.000000000Z");
    assert_eq!(span["events"][0]["@timestamp"], "2023-11-14T22:13:20.100000000Z");
    assert_eq!(span["status"], json!({"code": "Error", "message": "no"}));
    assert_eq!(span["links"][0]["traceId"], "5b8efff798038103d269b633813fc60d");
}

#[test]
fn keys_are_dedotted_everywhere() {
    let document = only(Signal::Logs, "{mode: otel, dedot: all_keys}", LOG);
    assert_eq!(document["resource"]["attributes"], json!({"k8s_namespace_name": "shop", "host_name": "n1"}));
    assert_eq!(document["attributes"]["k8s_namespace_name"], "evil");
}
