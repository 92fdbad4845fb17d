//! Every field of every message, under its name and in its form, both ways.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use kubewake_otlp::json;
use std::fmt::Debug;

use kubewake_otlp::Signal;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::summary_data_point::ValueAtQuantile;
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint, exemplar, metric,
    number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;
use serde_json::{Value as Json, json};

const TRACE: &str = "0102030405060708090a0b0c0d0e0fff";
const SPAN: &str = "f1f2f3f4f5f6f7f8";

fn trace_id() -> Vec<u8> {
    vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255]
}

fn span_id() -> Vec<u8> {
    (0xf1..=0xf8).collect()
}

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(any(value)), key_strindex: 0 }
}

fn attributes() -> (Vec<KeyValue>, Json) {
    (vec![attribute("a", Value::IntValue(-1))], json!([{"key": "a", "value": {"intValue": "-1"}}]))
}

fn resource() -> (Option<Resource>, Json) {
    let entity = EntityRef {
        schema_url: "s".into(),
        r#type: "service".into(),
        id_keys: vec!["a".into(), "b".into()],
        description_keys: vec!["c".into()],
    };
    let resource = Resource { attributes: attributes().0, dropped_attributes_count: 1, entity_refs: vec![entity] };
    let json = json!({
        "attributes": attributes().1,
        "droppedAttributesCount": 1,
        "entityRefs": [{"schemaUrl": "s", "type": "service", "idKeys": ["a", "b"], "descriptionKeys": ["c"]}],
    });
    (Some(resource), json)
}

fn scope() -> (Option<InstrumentationScope>, Json) {
    let scope = InstrumentationScope {
        name: "n".into(),
        version: "v".into(),
        attributes: attributes().0,
        dropped_attributes_count: 2,
    };
    let json = json!({"name": "n", "version": "v", "attributes": attributes().1, "droppedAttributesCount": 2});
    (Some(scope), json)
}

/// Both are the same request: the message becomes this JSON, the JSON in either spelling becomes this message.
fn assert_same<M: Message + Default + PartialEq + Debug>(signal: Signal, message: &M, json: &Json) {
    let mut text = Vec::new();
    json::encode(signal, &message.encode_to_vec(), &mut text).unwrap();
    assert_eq!(&serde_json::from_slice::<Json>(&text).unwrap(), json);
    for spelling in [json, &snake_case(json)] {
        let bytes = json::decode(signal, spelling.to_string().as_bytes()).unwrap();
        assert_eq!(&M::decode(bytes.as_slice()).unwrap(), message);
    }
}

fn snake_case(json: &Json) -> Json {
    let name = |camel: &String| {
        let split = |letter: char| {
            if letter.is_uppercase() { format!("_{}", letter.to_lowercase()) } else { letter.to_string() }
        };
        camel.chars().map(split).collect::<String>()
    };
    match json {
        Json::Object(members) => members.iter().map(|(key, member)| (name(key), snake_case(member))).collect(),
        Json::Array(elements) => elements.iter().map(snake_case).collect(),
        other => other.clone(),
    }
}

fn span() -> (Span, Json) {
    let event = Event { time_unix_nano: 1, name: "e".into(), attributes: attributes().0, dropped_attributes_count: 3 };
    let link = Link {
        trace_id: trace_id(),
        span_id: span_id(),
        trace_state: "l=1".into(),
        attributes: attributes().0,
        dropped_attributes_count: 4,
        flags: 5,
    };
    let span = Span {
        trace_id: trace_id(),
        span_id: span_id(),
        trace_state: "a=b".into(),
        parent_span_id: vec![0x10; 8],
        flags: 0x301,
        name: "x".into(),
        kind: 3,
        start_time_unix_nano: u64::MAX,
        end_time_unix_nano: 6,
        attributes: attributes().0,
        dropped_attributes_count: 7,
        events: vec![event],
        dropped_events_count: 8,
        links: vec![link],
        dropped_links_count: u32::MAX,
        status: Some(Status { message: "m".into(), code: 2 }),
    };
    let json = json!({
        "traceId": TRACE, "spanId": SPAN, "traceState": "a=b", "parentSpanId": "1010101010101010", "flags": 0x301,
        "name": "x", "kind": 3, "startTimeUnixNano": u64::MAX.to_string(), "endTimeUnixNano": "6",
        "attributes": attributes().1, "droppedAttributesCount": 7,
        "events": [{"timeUnixNano": "1", "name": "e", "attributes": attributes().1, "droppedAttributesCount": 3}],
        "droppedEventsCount": 8,
        "links": [{
            "traceId": TRACE, "spanId": SPAN, "traceState": "l=1", "attributes": attributes().1,
            "droppedAttributesCount": 4, "flags": 5,
        }],
        "droppedLinksCount": u32::MAX,
        "status": {"message": "m", "code": 2},
    });
    (span, json)
}

#[test]
fn traces() {
    let (span, span_json) = span();
    let scope_spans = ScopeSpans { scope: scope().0, spans: vec![span], schema_url: "u".into() };
    let resource_spans =
        ResourceSpans { resource: resource().0, scope_spans: vec![scope_spans], schema_url: "t".into() };
    let request = ExportTraceServiceRequest { resource_spans: vec![resource_spans] };
    let json = json!({"resourceSpans": [{
        "resource": resource().1,
        "scopeSpans": [{"scope": scope().1, "spans": [span_json], "schemaUrl": "u"}],
        "schemaUrl": "t",
    }]});
    assert_same(Signal::Traces, &request, &json);
}

#[test]
fn one_record_by_itself() {
    let (span, json) = span();
    let mut text = b"> ".to_vec();
    json::encode_record(json::RecordKind::Span, &span.encode_to_vec(), &mut text).unwrap();
    assert_eq!(serde_json::from_slice::<Json>(text.strip_prefix(b"> ").unwrap()).unwrap(), json);
    assert!(!text.contains(&b'\n'));
}

#[test]
fn logs() {
    let list = ArrayValue { values: vec![any(Value::BoolValue(false)), AnyValue::default()] };
    let map = vec![
        attribute("list", Value::ArrayValue(list)),
        attribute("bytes", Value::BytesValue(vec![0xfb, 0xff])),
        attribute("double", Value::DoubleValue(-0.5)),
        attribute("index", Value::StringValueStrindex(-9)),
        attribute("text", Value::StringValue("\"\\\n\u{1}é😀".into())),
        KeyValue { key: String::new(), value: None, key_strindex: 4 },
    ];
    let record = LogRecord {
        time_unix_nano: 1,
        observed_time_unix_nano: 2,
        severity_number: 17,
        severity_text: "ERROR".into(),
        body: Some(any(Value::KvlistValue(KeyValueList { values: map }))),
        attributes: attributes().0,
        dropped_attributes_count: 3,
        flags: 1,
        trace_id: trace_id(),
        span_id: span_id(),
        event_name: "boot".into(),
    };
    let record_json = json!({
        "timeUnixNano": "1", "observedTimeUnixNano": "2", "severityNumber": 17, "severityText": "ERROR",
        "eventName": "boot", "attributes": attributes().1, "droppedAttributesCount": 3, "flags": 1,
        "traceId": TRACE, "spanId": SPAN,
        "body": {"kvlistValue": {"values": [
            {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": false}, {}]}}},
            {"key": "bytes", "value": {"bytesValue": "+/8="}},
            {"key": "double", "value": {"doubleValue": -0.5}},
            {"key": "index", "value": {"stringValueStrindex": -9}},
            {"key": "text", "value": {"stringValue": "\"\\\n\u{1}é😀"}},
            {"keyStrindex": 4},
        ]}},
    });
    let scope_logs = ScopeLogs { scope: scope().0, log_records: vec![record], schema_url: "u".into() };
    let resource_logs = ResourceLogs { resource: resource().0, scope_logs: vec![scope_logs], schema_url: "t".into() };
    let request = ExportLogsServiceRequest { resource_logs: vec![resource_logs] };
    let json = json!({"resourceLogs": [{
        "resource": resource().1,
        "scopeLogs": [{"scope": scope().1, "logRecords": [record_json], "schemaUrl": "u"}],
        "schemaUrl": "t",
    }]});
    assert_same(Signal::Logs, &request, &json);
}

fn exemplars() -> (Vec<Exemplar>, Json) {
    let exemplar = |value| Exemplar {
        filtered_attributes: attributes().0,
        time_unix_nano: 1,
        span_id: span_id(),
        trace_id: trace_id(),
        value: Some(value),
    };
    let json = |name: &str, value: Json| {
        let mut json =
            json!({"filteredAttributes": attributes().1, "timeUnixNano": "1", "spanId": SPAN, "traceId": TRACE});
        json[name] = value;
        json
    };
    (
        vec![exemplar(exemplar::Value::AsDouble(0.0)), exemplar(exemplar::Value::AsInt(i64::MIN))],
        json!([json("asDouble", json!(0.0)), json("asInt", json!(i64::MIN.to_string()))]),
    )
}

fn number_points() -> (Vec<NumberDataPoint>, Json) {
    let int = NumberDataPoint {
        attributes: attributes().0,
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        exemplars: exemplars().0,
        flags: 1,
        value: Some(number_data_point::Value::AsInt(-3)),
    };
    let double = NumberDataPoint { value: Some(number_data_point::Value::AsDouble(1e300)), ..Default::default() };
    let json = json!([
        {
            "attributes": attributes().1, "startTimeUnixNano": "1", "timeUnixNano": "2", "exemplars": exemplars().1,
            "flags": 1, "asInt": "-3",
        },
        {"asDouble": 1e300},
    ]);
    (vec![int, double], json)
}

fn histogram() -> (Histogram, Json) {
    let point = HistogramDataPoint {
        attributes: attributes().0,
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: Some(0.0),
        bucket_counts: vec![0, 1, u64::MAX],
        explicit_bounds: vec![0.0, -1.5],
        exemplars: exemplars().0,
        flags: 4,
        min: Some(5.0),
        max: Some(6.0),
    };
    let json = json!({"dataPoints": [{
        "attributes": attributes().1, "startTimeUnixNano": "1", "timeUnixNano": "2", "count": "3", "sum": 0.0,
        "bucketCounts": ["0", "1", u64::MAX.to_string()], "explicitBounds": [0.0, -1.5],
        "exemplars": exemplars().1, "flags": 4, "min": 5.0, "max": 6.0,
    }], "aggregationTemporality": 1});
    (Histogram { data_points: vec![point], aggregation_temporality: 1 }, json)
}

fn exponential_histogram() -> (ExponentialHistogram, Json) {
    let point = ExponentialHistogramDataPoint {
        attributes: attributes().0,
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: Some(4.0),
        scale: i32::MIN,
        zero_count: 5,
        positive: Some(Buckets { offset: -6, bucket_counts: vec![0, 300] }),
        negative: Some(Buckets { offset: i32::MAX, bucket_counts: vec![] }),
        flags: 7,
        exemplars: exemplars().0,
        min: Some(8.0),
        max: Some(9.0),
        zero_threshold: 0.25,
    };
    let json = json!({"dataPoints": [{
        "attributes": attributes().1, "startTimeUnixNano": "1", "timeUnixNano": "2", "count": "3", "sum": 4.0,
        "scale": i32::MIN, "zeroCount": "5", "positive": {"offset": -6, "bucketCounts": ["0", "300"]},
        "negative": {"offset": i32::MAX}, "flags": 7, "exemplars": exemplars().1, "min": 8.0, "max": 9.0,
        "zeroThreshold": 0.25,
    }], "aggregationTemporality": 2});
    (ExponentialHistogram { data_points: vec![point], aggregation_temporality: 2 }, json)
}

fn summary() -> (Summary, Json) {
    let point = SummaryDataPoint {
        attributes: attributes().0,
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: 4.0,
        quantile_values: vec![ValueAtQuantile { quantile: 0.5, value: f64::NEG_INFINITY }],
        flags: 5,
    };
    let json = json!({"dataPoints": [{
        "attributes": attributes().1, "startTimeUnixNano": "1", "timeUnixNano": "2", "count": "3", "sum": 4.0,
        "quantileValues": [{"quantile": 0.5, "value": "-Infinity"}], "flags": 5,
    }]});
    (Summary { data_points: vec![point] }, json)
}

#[test]
fn metrics() {
    let (points, points_json) = number_points();
    let sum = Sum { data_points: points.clone(), aggregation_temporality: 2, is_monotonic: true };
    let kinds = [
        ("gauge", metric::Data::Gauge(Gauge { data_points: points }), json!({"dataPoints": points_json})),
        (
            "sum",
            metric::Data::Sum(sum),
            json!({"dataPoints": points_json, "aggregationTemporality": 2, "isMonotonic": true}),
        ),
        ("histogram", metric::Data::Histogram(histogram().0), histogram().1),
        (
            "exponentialHistogram",
            metric::Data::ExponentialHistogram(exponential_histogram().0),
            exponential_histogram().1,
        ),
        ("summary", metric::Data::Summary(summary().0), summary().1),
    ];
    for (name, data, data_json) in kinds {
        let metric = Metric {
            name: "n".into(),
            description: "d".into(),
            unit: "1".into(),
            metadata: attributes().0,
            data: Some(data),
        };
        let mut metric_json = json!({"name": "n", "description": "d", "unit": "1", "metadata": attributes().1});
        metric_json[name] = data_json;
        let scope_metrics = ScopeMetrics { scope: scope().0, metrics: vec![metric], schema_url: "u".into() };
        let resource_metrics =
            ResourceMetrics { resource: resource().0, scope_metrics: vec![scope_metrics], schema_url: "t".into() };
        let json = json!({"resourceMetrics": [{
            "resource": resource().1,
            "scopeMetrics": [{"scope": scope().1, "metrics": [metric_json], "schemaUrl": "u"}],
            "schemaUrl": "t",
        }]});
        assert_same(Signal::Metrics, &ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }, &json);
    }
}
