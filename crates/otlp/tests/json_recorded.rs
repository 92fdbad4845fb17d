//! Recorded responses of an OpenTelemetry Collector (v0.155.0) to OTLP in JSON, and its output. Ours must
//! agree.
//!
//! Empty messages do not count: the Collector adds and drops some.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use kubewake_otlp::Signal;
use kubewake_otlp::json::{self, JsonErrorKind};
use serde_json::{Value, json};

enum Answer {
    /// Status 400.
    Refused,
    /// Status 200, and this output.
    Accepted(&'static str),
}
use Answer::{Accepted, Refused};

/// One span, and that span in the output.
const SPANS: &[(&str, &str, Answer)] = &[
    (
        "snake-case-inner",
        r#"{"trace_id":"00000000000000000000000000000abc","span_id":"0000000000000001","name":"x","start_time_unix_nano":"5"}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":"5"}"#,
        ),
    ),
    (
        "upper-hex",
        r#"{"traceId":"00000000000000000000000000000ABC","spanId":"00000000000000FF","name":"x"}"#,
        Accepted(r#"{"traceId":"00000000000000000000000000000abc","spanId":"00000000000000ff","name":"x"}"#),
    ),
    ("bad-hex", r#"{"traceId":"zz000000000000000000000000000abc","spanId":"0000000000000001"}"#, Refused),
    ("odd-id", r#"{"traceId":"00000000000000000000000000000ab","spanId":"0000000000000001"}"#, Refused),
    ("base64-id", r#"{"traceId":"AAAAAAAAAAAAAAAAAAAKvA==","spanId":"AAAAAAAAAAE="}"#, Refused),
    ("empty-id", r#"{"traceId":"","spanId":"","name":"x"}"#, Accepted(r#"{"name":"x"}"#)),
    (
        "time-number",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":1700000000000000001}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":"1700000000000000001"}"#,
        ),
    ),
    (
        "time-float",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":1.5}"#,
        Refused,
    ),
    (
        "time-exponent",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":1e3}"#,
        Refused,
    ),
    (
        "time-text",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":"soon"}"#,
        Refused,
    ),
    (
        "time-overflow",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":"99999999999999999999"}"#,
        Refused,
    ),
    (
        "int-number",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"intValue":42}}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"intValue":"42"}}]}"#,
        ),
    ),
    (
        "int-float",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"intValue":4.5}}]}"#,
        Refused,
    ),
    (
        "double-string",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"doubleValue":"1.25"}}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"doubleValue":1.25}}]}"#,
        ),
    ),
    (
        "double-nan",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"doubleValue":"NaN"}}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"doubleValue":"NaN"}}]}"#,
        ),
    ),
    (
        "bool-string",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"boolValue":"true"}}]}"#,
        Refused,
    ),
    (
        "bytes",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"bytesValue":"AQID"}}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"bytesValue":"AQID"}}]}"#,
        ),
    ),
    (
        "bytes-bad",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"bytesValue":"!!!"}}]}"#,
        Refused,
    ),
    (
        "nested-values",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[{"stringValue":"s"},{"intValue":"1"},{}]}}}]}}}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{"values":[{"stringValue":"s"},{"intValue":"1"},{}]}}}]}}}]}"#,
        ),
    ),
    (
        "value-null",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":null}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k"}]}"#,
        ),
    ),
    (
        "value-two",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"stringValue":"s","intValue":"1"}}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"intValue":"1"}}]}"#,
        ),
    ),
    (
        "value-snake",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"string_value":"s"}}]}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","attributes":[{"key":"k","value":{"stringValue":"s"}}]}"#,
        ),
    ),
    (
        "enum-name",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","kind":"SPAN_KIND_SERVER","status":{"code":"STATUS_CODE_ERROR"}}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","kind":2,"status":{"code":2}}"#,
        ),
    ),
    (
        "enum-out-of-range",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","kind":99}"#,
        Accepted(r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","kind":99}"#),
    ),
    (
        "enum-number-string",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","kind":"2"}"#,
        Refused,
    ),
    (
        "unknown-span",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","more":{"a":[1,2,{"b":null}]}}"#,
        Accepted(r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x"}"#),
    ),
    (
        "null-name",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":null}"#,
        Accepted(r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001"}"#),
    ),
    ("name-number", r#"{"traceId":"00000000000000000000000000000abc","name":5}"#, Refused),
    (
        "lone-surrogate",
        r#"{"traceId":"00000000000000000000000000000abc","name":"a\ud83d"}"#,
        Accepted(r#"{"traceId":"00000000000000000000000000000abc","name":"a�"}"#),
    ),
    (
        "flags",
        r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","flags":257,"droppedAttributesCount":3,"events":[{"timeUnixNano":"5","name":"e"}],"links":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","flags":1}],"traceState":"a=b"}"#,
        Accepted(
            r#"{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","traceState":"a=b","name":"x","droppedAttributesCount":3,"events":[{"timeUnixNano":"5","name":"e"}],"links":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","flags":1}],"flags":257}"#,
        ),
    ),
];

/// Whole requests for traces. Without output, the request was empty.
const DOCUMENTS: &[(&str, &str, Answer)] = &[
    (
        "snake-case",
        r#"{"resource_spans":[{"resource":{},"scope_spans":[{"spans":[{"trace_id":"00000000000000000000000000000abc","span_id":"0000000000000001","name":"x","start_time_unix_nano":"5"}]}]}]}"#,
        Accepted(
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x","startTimeUnixNano":"5"}]}]}]}"#,
        ),
    ),
    ("unknown-top", r#"{"resourceSpans":[],"more":{"a":[1]}}"#, Accepted("{}")),
    ("null-list", r#"{"resourceSpans":[{"scopeSpans":[{"spans":null}]}]}"#, Accepted("{}")),
    ("object-for-list", r#"{"resourceSpans":{}}"#, Refused),
    ("empty-body", r#""#, Refused),
    ("null", r#"null"#, Accepted("{}")),
    ("list", r#"[]"#, Refused),
    ("string", r#""x""#, Refused),
    (
        "trailing",
        r#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x"}]}]}]} x"#,
        Accepted(
            r#"{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x"}]}]}]}"#,
        ),
    ),
    (
        "two-documents",
        r#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x"}]}]}]}{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x"}]}]}]}"#,
        Accepted(
            r#"{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"00000000000000000000000000000abc","spanId":"0000000000000001","name":"x"}]}]}]}"#,
        ),
    ),
    ("comment", r#"/* c */ {}"#, Refused),
    ("charset", r#"{"resourceSpans":[]}"#, Accepted("{}")),
];

#[test]
fn a_span_is_answered_as_the_collector_does() {
    for (case, span, answer) in SPANS {
        let request = format!(
            r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"scope":{{"name":"lib"}},"spans":[{span}]}}]}}]}}"#
        );
        let expected = match answer {
            Refused => None,
            Accepted(span) => Some(json!({"resourceSpans": [{"scopeSpans": [{
                "scope": {"name": "lib"},
                "spans": [serde_json::from_str::<Value>(span).unwrap()],
            }]}]})),
        };
        assert_eq!(passed_on(Signal::Traces, request.as_bytes()), expected, "{case}");
    }
}

#[test]
fn a_document_is_answered_as_the_collector_does() {
    for (case, document, answer) in DOCUMENTS {
        let expected = match answer {
            Refused => None,
            Accepted(expected) => Some(serde_json::from_str(expected).unwrap()),
        };
        assert_eq!(passed_on(Signal::Traces, document.as_bytes()), expected, "{case}");
    }
}

#[test]
fn metrics_are_answered_as_the_collector_does() {
    let document = br#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","gauge":{"dataPoints":[{"asDouble":1.5,"timeUnixNano":"5"},{"asInt":"7"}]}}]}]}]}"#;
    let expected = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{
        "name": "m",
        "gauge": {"dataPoints": [{"timeUnixNano": "5", "asDouble": 1.5}, {"asInt": "7"}]},
    }]}]}]});
    assert_eq!(passed_on(Signal::Metrics, document), Some(expected));
}

#[test]
fn a_name_that_is_not_utf8_is_passed_on_as_it_is() {
    let mut document = br#"{"resourceSpans":[{"resource":{},"scopeSpans":[{"scope":{"name":"lib"},"spans":[{"traceId":"00000000000000000000000000000abc","name":"a"#.to_vec();
    document.extend_from_slice(b"\xff\"}]}]}]}");
    let protobuf = json::decode(Signal::Traces, &document).unwrap();
    assert!(protobuf.windows(4).any(|bytes| bytes == [0x2a, 0x02, b'a', 0xff]), "{protobuf:x?}");
    let shown = passed_on(Signal::Traces, &document).unwrap();
    assert_eq!(shown["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"], "a\u{fffd}");
}

/// The Collector fails on its own message here and answers 500. The request is at fault, so ours is refused
/// with 400.
#[test]
fn a_byte_order_mark_is_refused() {
    let error = json::decode(Signal::Traces, "\u{feff}{}".as_bytes()).unwrap_err();
    assert_eq!((error.reason(), error.offset()), (JsonErrorKind::Expected("an object"), 0));
}

/// The encoding of a body follows from its content type alone.
#[test]
fn json_that_is_said_to_be_protobuf_is_refused() {
    let mut out = Vec::new();
    assert!(json::encode(Signal::Traces, br#"{"resourceSpans":[]}"#, &mut out).is_err());
}

/// The output of a request, without empty messages; `None` if it is refused.
fn passed_on(signal: Signal, document: &[u8]) -> Option<Value> {
    let protobuf = json::decode(signal, document).ok()?;
    let mut text = Vec::new();
    json::encode(signal, &protobuf, &mut text).unwrap();
    let mut value = serde_json::from_slice(&text).unwrap();
    drop_empty(&mut value);
    let only_empty = value.pointer("/resourceSpans").is_some_and(|list| list == &json!([{"scopeSpans": [{}]}]));
    Some(if only_empty { json!({}) } else { value })
}

fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(drop_empty);
            members.retain(|_, member| *member != json!({}) && *member != json!([]));
        }
        Value::Array(elements) => elements.iter_mut().for_each(drop_empty),
        _ => {}
    }
}
